//! Time zones, from a database that the program carries.

use std::sync::{Arc, LazyLock};

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A time zone as Go's `time.Location`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Zone {
    /// UTC, which is also the local zone: a rendering is the same on every machine.
    Utc,
    /// One that a text named: a name, which may be empty, and seconds east of UTC.
    Fixed(String, i64),
    /// One of the database.
    Named(TimeZone),
}

/// A zone at one moment.
pub(super) struct Shown {
    /// Abbreviation, empty if there is none.
    pub(super) name: String,
    /// Seconds east of UTC.
    pub(super) offset: i64,
}

static UTC: LazyLock<Arc<Zone>> = LazyLock::new(|| Arc::new(Zone::Utc));
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

impl Zone {
    pub(crate) fn utc() -> Arc<Self> {
        UTC.clone()
    }

    /// Abbreviation and offset at a second since 1970; those of the first and the last year that the database
    /// knows hold before and after.
    pub(super) fn at(&self, second: i64) -> Shown {
        match self {
            Self::Utc => Shown { name: "UTC".to_owned(), offset: 0 },
            Self::Fixed(name, offset) => Shown { name: name.clone(), offset: *offset },
            Self::Named(zone) => {
                let (min, max) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
                let moment = jiff::Timestamp::from_second(second.clamp(min, max));
                let moment = moment.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
                let info = zone.to_offset_info(moment);
                Shown { name: info.abbreviation().to_owned(), offset: i64::from(info.offset().seconds()) }
            }
        }
    }
}

/// Go's `time.LoadLocation`, and UTC for what it does not know, as sprig falls back to it.
pub(crate) fn zone(name: &[u8]) -> Arc<Zone> {
    let Ok(name) = std::str::from_utf8(name) else { return Zone::utc() };
    if matches!(name, "" | "UTC" | "Local") {
        return Zone::utc();
    }
    // Go finds files, so their names are case-sensitive.
    match DATABASE.get(name) {
        Ok(zone) if zone.iana_name() == Some(name) => Arc::new(Zone::Named(zone)),
        _ => Zone::utc(),
    }
}
