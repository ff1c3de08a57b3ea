//! Go's `Time.Format`.

use super::layout::{Element, Offset, next};
use super::zone::Shown;
use super::{Civil, Time, civil};

/// The layout of a date.
pub(crate) const DATE: &[u8] = b"2006-01-02";

/// Names of months.
pub(super) const MONTHS: [&str; 12] = [
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

/// Names of days, from Sunday.
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Time {
    /// The text of a layout, which is the date `Mon Jan 2 15:04:05 MST 2006`.
    pub(crate) fn format(&self, layout: &[u8]) -> Vec<u8> {
        let shown = self.zone.at(self.second);
        let civil = civil(self.second.saturating_add(shown.offset));
        let mut out = Vec::new();
        let mut rest = layout;
        while !rest.is_empty() {
            let (before, found, after) = next(rest);
            out.extend_from_slice(before);
            if let Some(element) = found {
                out.extend_from_slice(self.element(element, &civil, &shown).as_bytes());
            }
            rest = after;
        }
        out
    }

    /// As Go prints it.
    pub(crate) fn text(&self) -> String {
        self.ascii(b"2006-01-02 15:04:05.999999999 -0700 MST")
    }

    /// As JSON and YAML have it.
    pub(crate) fn rfc3339(&self) -> String {
        self.ascii(b"2006-01-02T15:04:05.999999999Z07:00")
    }

    fn ascii(&self, layout: &[u8]) -> String {
        String::from_utf8_lossy(&self.format(layout)).into_owned()
    }

    fn element(&self, element: Element, civil: &Civil, shown: &Shown) -> String {
        match element {
            Element::LongYear | Element::Year => year(element, civil.year),
            Element::LongMonth => month(civil).to_owned(),
            Element::Month => month(civil)[..3].to_owned(),
            Element::NumMonth => civil.month.to_string(),
            Element::ZeroMonth => format!("{:02}", civil.month),
            Element::LongWeekDay => DAYS[civil.weekday].to_owned(),
            Element::WeekDay => DAYS[civil.weekday][..3].to_owned(),
            Element::Day => civil.day.to_string(),
            Element::UnderDay => format!("{:2}", civil.day),
            Element::ZeroDay => format!("{:02}", civil.day),
            Element::UnderYearDay => format!("{:3}", civil.day_of_year),
            Element::ZeroYearDay => format!("{:03}", civil.day_of_year),
            Element::ZoneName if shown.name.is_empty() => {
                let plain = Offset { iso: false, colon: false, minutes: true, seconds: false };
                offset(plain, shown.offset)
            }
            Element::ZoneName => shown.name.clone(),
            Element::Offset(form) => offset(form, shown.offset),
            Element::Zeros(mark, count) => fraction(mark, &self.digits(count)),
            Element::Nines(mark, count) => fraction(mark, self.digits(count).trim_end_matches('0')),
            _ => clock(element, civil),
        }
    }

    fn digits(&self, count: usize) -> String {
        let digits = format!("{:09}", self.nano);
        match digits.get(..count) {
            Some(digits) => digits.to_owned(),
            None => digits,
        }
    }
}

fn month(civil: &Civil) -> &'static str {
    usize::try_from(civil.month - 1).ok().and_then(|month| MONTHS.get(month)).copied().unwrap_or("January")
}

fn year(element: Element, year: i64) -> String {
    match element {
        Element::Year => format!("{:02}", (year % 100).abs()),
        // Go's width is that of the digits.
        _ if year < 0 => format!("-{:04}", -year),
        _ => format!("{year:04}"),
    }
}

fn clock(element: Element, civil: &Civil) -> String {
    let hour12 = if civil.hour % 12 == 0 { 12 } else { civil.hour % 12 };
    let afternoon = civil.hour >= 12;
    match element {
        Element::Hour => format!("{:02}", civil.hour),
        Element::Hour12 => hour12.to_string(),
        Element::ZeroHour12 => format!("{hour12:02}"),
        Element::Minute => civil.minute.to_string(),
        Element::ZeroMinute => format!("{:02}", civil.minute),
        Element::Second => civil.second.to_string(),
        Element::ZeroSecond => format!("{:02}", civil.second),
        Element::UpperPm => if afternoon { "PM" } else { "AM" }.to_owned(),
        _ => if afternoon { "pm" } else { "am" }.to_owned(),
    }
}

fn offset(form: Offset, seconds: i64) -> String {
    if form.iso && seconds == 0 {
        return "Z".to_owned();
    }
    // Go cuts to minutes first: less than a minute west of UTC is written with a plus.
    let minutes = seconds / 60;
    let colon = if form.colon { ":" } else { "" };
    let mut text = format!("{}{:02}", if minutes < 0 { '-' } else { '+' }, minutes.abs() / 60);
    if form.minutes {
        text += &format!("{colon}{:02}", minutes.abs() % 60);
    }
    if form.seconds {
        text += &format!("{colon}{:02}", if minutes < 0 { -seconds % 60 } else { seconds % 60 });
    }
    text
}

fn fraction(mark: u8, digits: &str) -> String {
    if digits.is_empty() { String::new() } else { format!("{}{digits}", char::from(mark)) }
}
