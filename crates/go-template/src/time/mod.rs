//! Go's `time.Time`: a moment in a time zone, its layouts and durations. No clock.

mod format;
mod layout;
mod parse;
mod zone;

use std::sync::Arc;

pub(super) use format::DATE;
pub(super) use parse::parse;
pub(super) use zone::{Zone, zone};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// A moment, and the zone that it is shown in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Time {
    /// Seconds since 1970.
    pub(super) second: i64,
    /// Nanoseconds of the second.
    pub(super) nano: u32,
    pub(super) zone: Arc<Zone>,
}

/// A moment as a calendar and a clock show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// From 1.
    pub(super) month: i64,
    pub(super) day: i64,
    /// From 0, Sunday.
    weekday: usize,
    /// From 1.
    pub(super) day_of_year: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
}

impl Time {
    /// A second since 1970, in UTC.
    pub(super) fn of_second(second: i64) -> Self {
        Self { second, nano: 0, zone: Zone::utc() }
    }

    /// Go's zero value: the year 1.
    pub(super) fn zero() -> Self {
        Self::of_second(-62_135_596_800)
    }

    pub(super) fn is_zero(&self) -> bool {
        let zero = Self::zero();
        (self.second, self.nano) == (zero.second, zero.nano)
    }

    /// The same moment in another zone.
    pub(super) fn within(&self, zone: Arc<Zone>) -> Self {
        Self { zone, ..*self }
    }

    /// Later by these nanoseconds, in the range that Go has.
    pub(super) fn plus(&self, nanos: i64) -> Self {
        let all = i128::from(self.nano) + i128::from(nanos);
        let (carry, nano) = (all.div_euclid(1_000_000_000), all.rem_euclid(1_000_000_000));
        let second = self.second.wrapping_add(i64::try_from(carry).unwrap_or(0));
        Self { second, nano: u32::try_from(nano).unwrap_or(0), zone: self.zone.clone() }
    }

    /// Nanoseconds between two moments; more than fit are the largest that do.
    pub(super) fn since(&self, earlier: &Self) -> i64 {
        let seconds = i128::from(self.second) - i128::from(earlier.second);
        let nanos = seconds * 1_000_000_000 + i128::from(self.nano) - i128::from(earlier.nano);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    pub(super) fn civil(&self) -> Civil {
        let local = self.second.saturating_add(self.zone.at(self.second).offset);
        civil(local)
    }
}

/// What a calendar shows in UTC (Howard Hinnant's `civil_from_days`).
fn civil(second: i64) -> Civil {
    let (days, clock) = (second.div_euclid(DAY), second.rem_euclid(DAY));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Civil {
        year,
        month,
        day,
        weekday: usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0),
        day_of_year: days - days_from_civil(year, 1, 1) + 1,
        hour: clock / 3600,
        minute: clock / 60 % 60,
        second: clock % 60,
    }
}

/// Days from 1970 to a date.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let year_of_era = year.rem_euclid(400);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

/// Days of a month.
pub(crate) fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, (1970, 1, 1, 4, 1))]
    #[case(951_782_400, (2000, 2, 29, 2, 60))]
    #[case(-1, (1969, 12, 31, 3, 365))]
    #[case(-62_135_596_800, (1, 1, 1, 1, 1))]
    #[case(-62_167_219_200, (0, 1, 1, 6, 1))]
    #[case(253_402_300_800, (10_000, 1, 1, 6, 1))]
    fn calendar(#[case] second: i64, #[case] expected: (i64, i64, i64, usize, i64)) {
        let civil = civil(second);
        assert_eq!((civil.year, civil.month, civil.day, civil.weekday, civil.day_of_year), expected);
        assert_eq!(days_from_civil(civil.year, civil.month, civil.day), second.div_euclid(DAY));
    }
}
