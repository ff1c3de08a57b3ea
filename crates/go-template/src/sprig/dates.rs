//! Dates of a given second, in UTC. Functions that would need a clock or a time zone database fail, so that
//! a template renders the same text at any time on any machine.

use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::{Any, Str};
use crate::function::{Function, arg, fixed};
use crate::limits::Meter;

const DAY: &[u8] = b"2006-01-02";

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("date", &[Str, Any], |meter, args| formatted(meter, arg::text(args, 0), &args[1], b"Local")),
    fixed("dateInZone", &[Str, Any, Str], in_zone),
    fixed("date_in_zone", &[Str, Any, Str], in_zone),
    fixed("htmlDate", &[Any], |meter, args| formatted(meter, DAY, &args[0], b"Local")),
    fixed("htmlDateInZone", &[Any, Str], |meter, args| formatted(meter, DAY, &args[0], arg::text(args, 1))),
];

fn in_zone(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    formatted(meter, arg::text(args, 0), &args[1], arg::text(args, 2))
}

fn formatted(meter: &Meter, layout: &[u8], date: &Val, zone: &[u8]) -> Result<Val, Failure> {
    let (Val::Int(second) | Val::Int64(second)) = date else {
        let message =
            format!("a date of type {} would be the current time, which is not supported", date.type_name());
        return Err(Failure::new(message));
    };
    if !matches!(zone, b"" | b"UTC" | b"Local") {
        let zone = String::from_utf8_lossy(zone);
        return Err(Failure::new(format!("time zone {zone} is not supported: use UTC")));
    }
    let Some(moment) = Moment::of(*second) else {
        return Err(Failure::new(format!("second {second} is out of range")));
    };
    meter.bytes(layout.len().saturating_mul(4))?;
    // Every byte may start one of thirty elements.
    meter.read(layout.len().saturating_mul(256))?;
    Ok(Val::str(moment.format(layout)))
}

/// A second in UTC.
struct Moment {
    year: i64,
    month: usize,
    day: i64,
    weekday: usize,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Moment {
    fn of(unix: i64) -> Option<Self> {
        let timestamp = jiff::Timestamp::from_second(unix).ok()?;
        let date = timestamp.to_zoned(jiff::tz::TimeZone::UTC);
        Some(Self {
            year: i64::from(date.year()),
            month: usize::try_from(date.month()).ok()?,
            day: i64::from(date.day()),
            weekday: usize::try_from(date.weekday().to_sunday_zero_offset()).ok()?,
            day_of_year: i64::from(date.day_of_year()),
            hour: i64::from(date.hour()),
            minute: i64::from(date.minute()),
            second: i64::from(date.second()),
        })
    }

    /// Go's `Time.Format`: the layout is the date `Mon Jan 2 15:04:05 MST 2006`.
    fn format(&self, layout: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = layout;
        while !rest.is_empty() {
            match self.element(rest) {
                Some((width, text)) => {
                    out.extend_from_slice(text.as_bytes());
                    rest = &rest[width..];
                }
                None => {
                    out.push(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        out
    }

    /// The element that the layout starts with, and its value. Longer elements come first.
    fn element(&self, layout: &[u8]) -> Option<(usize, String)> {
        let month = MONTHS[self.month - 1];
        let weekday = DAYS[self.weekday];
        let hour12 = if self.hour % 12 == 0 { 12 } else { self.hour % 12 };
        let afternoon = self.hour >= 12;
        let next_is_lower = |at: usize| layout.get(at).is_some_and(u8::is_ascii_lowercase);
        let starts = |text: &str| layout.starts_with(text.as_bytes());
        let words: [(&str, bool, &str); 7] = [
            ("January", true, month),
            ("Jan", !next_is_lower(3), &month[..3]),
            ("Monday", true, weekday),
            ("Mon", !next_is_lower(3), &weekday[..3]),
            ("MST", true, "UTC"),
            ("PM", true, if afternoon { "PM" } else { "AM" }),
            ("pm", true, if afternoon { "pm" } else { "am" }),
        ];
        if let Some((word, _, value)) = words.iter().find(|(word, fits, _)| *fits && starts(word)) {
            return Some((word.len(), (*value).to_owned()));
        }
        if let Some(fraction) = fraction(layout) {
            return Some(fraction);
        }
        let zones = [
            ("-07:00:00", "+00:00:00"),
            ("-07:00", "+00:00"),
            ("-070000", "+000000"),
            ("-0700", "+0000"),
            ("-07", "+00"),
            ("Z07:00:00", "Z"),
            ("Z07:00", "Z"),
            ("Z070000", "Z"),
            ("Z0700", "Z"),
            ("Z07", "Z"),
        ];
        if let Some((zone, value)) = zones.iter().find(|(zone, _)| starts(zone)) {
            return Some((zone.len(), (*value).to_owned()));
        }
        // "_2006" is an underscore before a year, and "__2" the day of the year.
        if starts("_2006") {
            return Some((5, format!("_{:04}", self.year)));
        }
        let numbers = [
            ("2006", format!("{:04}", self.year)),
            ("__2", format!("{:3}", self.day_of_year)),
            ("002", format!("{:03}", self.day_of_year)),
            ("01", format!("{:02}", self.month)),
            ("02", format!("{:02}", self.day)),
            ("03", format!("{hour12:02}")),
            ("04", format!("{:02}", self.minute)),
            ("05", format!("{:02}", self.second)),
            ("06", format!("{:02}", self.year.rem_euclid(100))),
            ("15", format!("{:02}", self.hour)),
            ("_2", format!("{:2}", self.day)),
            ("1", self.month.to_string()),
            ("2", self.day.to_string()),
            ("3", hour12.to_string()),
            ("4", self.minute.to_string()),
            ("5", self.second.to_string()),
        ];
        numbers.into_iter().find(|(number, _)| starts(number)).map(|(number, value)| (number.len(), value))
    }
}

/// `.000` or `.999` after seconds: there is no fraction, so zeros are written and nines omitted.
fn fraction(layout: &[u8]) -> Option<(usize, String)> {
    let (mark, digits) = layout.split_first().filter(|(mark, _)| matches!(mark, b'.' | b','))?;
    let digit = *digits.first().filter(|digit| matches!(digit, b'0' | b'9'))?;
    let count = digits.iter().take_while(|&&other| other == digit).count();
    if digits.get(count).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let value =
        if digit == b'0' { format!("{}{}", char::from(*mark), "0".repeat(count)) } else { String::new() };
    Some((count + 1, value))
}
