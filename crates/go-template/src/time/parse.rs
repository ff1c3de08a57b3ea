//! Go's `time.ParseInLocation`, in UTC.

use std::sync::Arc;

use super::format::{DAYS, MONTHS};
use super::layout::{Element, Offset, next};
use super::{Time, Zone, days_from_civil, days_in};

/// The fields of a date as far as they are read.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nano: u32,
    afternoon: Option<bool>,
    is_utc: bool,
    offset: Option<i64>,
    zone: String,
}

/// The moment that a text says in a layout; `None` if it does not fit.
pub(crate) fn parse(layout: &[u8], text: &[u8]) -> Option<Time> {
    let mut fields = Fields::default();
    let (mut layout, mut text) = (layout, text);
    loop {
        let (before, found, after) = next(layout);
        text = skip(text, before)?;
        let Some(element) = found else {
            return if text.is_empty() { fields.time() } else { None };
        };
        text = fields.read(element, text, after)?;
        layout = after;
    }
}

/// The text behind a literal of the layout, in which runs of spaces are equal.
fn skip<'t>(mut text: &'t [u8], mut literal: &[u8]) -> Option<&'t [u8]> {
    while let Some((&first, rest)) = literal.split_first() {
        if first == b' ' {
            if text.first().is_some_and(|&byte| byte != b' ') {
                return None;
            }
            literal = without_spaces(literal);
            text = without_spaces(text);
            continue;
        }
        text = text.strip_prefix(&[first])?;
        literal = rest;
    }
    Some(text)
}

fn without_spaces(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|&&byte| byte == b' ').count()..]
}

fn is_digit(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(u8::is_ascii_digit)
}

/// A number of one or two digits, or of exactly two.
fn two(text: &[u8], fixed: bool) -> Option<(i64, &[u8])> {
    match (is_digit(text, 0), is_digit(text, 1)) {
        (true, true) => Some((digits(&text[..2])?, &text[2..])),
        (true, false) if !fixed => Some((digits(&text[..1])?, &text[1..])),
        _ => None,
    }
}

fn digits(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// `strconv.Atoi` of the time package: digits with a sign.
fn signed(text: &[u8]) -> Option<i64> {
    match text.split_first() {
        Some((b'-', rest)) => digits(rest).map(|value| -value),
        Some((b'+', rest)) => digits(rest),
        _ => digits(text),
    }
}

/// A name of the table that the text begins with, in any case: its index and the rest.
fn name<'t>(names: &[&str], width: Option<usize>, text: &'t [u8]) -> Option<(i64, &'t [u8])> {
    let matches = |name: &str| {
        let name = &name.as_bytes()[..width.unwrap_or(name.len())];
        text.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name)).map(<[u8]>::len)
    };
    let (index, width) = names.iter().enumerate().find_map(|(i, name)| Some((i, matches(name)?)))?;
    Some((i64::try_from(index).ok()?, &text[width..]))
}

/// Nanoseconds of a mark and digits behind it, of which nine count.
fn nanos(text: &[u8]) -> Option<u32> {
    let (mark, fraction) = text.split_first()?;
    if !matches!(mark, b'.' | b',') {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(9)];
    let value = digits(fraction)?;
    u32::try_from(value * 10_i64.pow(9 - u32::try_from(fraction.len()).ok()?)).ok()
}

impl Fields {
    /// Reads an element; `after` is the rest of the layout. The rest of the text, or `None` if it does not
    /// fit.
    fn read<'t>(&mut self, element: Element, text: &'t [u8], after: &[u8]) -> Option<&'t [u8]> {
        let rest = match element {
            Element::Year => {
                let year = signed(text.get(..2)?)?;
                self.year = year + if year >= 69 { 1900 } else { 2000 };
                &text[2..]
            }
            Element::LongYear => {
                is_digit(text, 0).then_some(())?;
                self.year = signed(text.get(..4)?)?;
                &text[4..]
            }
            Element::Month | Element::LongMonth => {
                let width = (element == Element::Month).then_some(3);
                let (month, rest) = name(&MONTHS, width, text)?;
                self.month = Some(month + 1);
                rest
            }
            Element::NumMonth | Element::ZeroMonth => {
                let (month, rest) = two(text, element == Element::ZeroMonth)?;
                self.month = Some(month).filter(|month| (1..=12).contains(month));
                self.month?;
                rest
            }
            Element::WeekDay => name(&DAYS, Some(3), text)?.1,
            Element::LongWeekDay => name(&DAYS, None, text)?.1,
            Element::Offset(form) => self.offset(form, text)?,
            Element::ZoneName => self.zone_name(text)?,
            Element::Zeros(_, count) => {
                self.nano = nanos(text.get(..=count)?)?;
                &text[count + 1..]
            }
            Element::Nines(..) => self.any_fraction(text)?,
            _ => return self.read_number(element, text, after),
        };
        Some(rest)
    }

    fn read_number<'t>(&mut self, element: Element, text: &'t [u8], after: &[u8]) -> Option<&'t [u8]> {
        let bounded = |fixed: bool, end: i64| two(text, fixed).filter(|(value, _)| *value < end);
        match element {
            Element::Day | Element::UnderDay | Element::ZeroDay => {
                let text = match text.split_first() {
                    Some((b' ', rest)) if element == Element::UnderDay => rest,
                    _ => text,
                };
                let (day, rest) = two(text, element == Element::ZeroDay)?;
                self.day = Some(day);
                Some(rest)
            }
            Element::UnderYearDay | Element::ZeroYearDay => self.day_of_year(element, text),
            Element::Hour | Element::Hour12 | Element::ZeroHour12 => {
                let end = if element == Element::Hour { 24 } else { 13 };
                let (hour, rest) = bounded(element == Element::ZeroHour12, end)?;
                self.hour = hour;
                Some(rest)
            }
            Element::Minute | Element::ZeroMinute => {
                let (minute, rest) = bounded(element == Element::ZeroMinute, 60)?;
                self.minute = minute;
                Some(rest)
            }
            Element::Second | Element::ZeroSecond => {
                let (second, rest) = bounded(element == Element::ZeroSecond, 60)?;
                self.second = second;
                // A fraction may follow where the layout has none.
                let is_fraction = matches!(rest.first(), Some(b'.' | b',')) && is_digit(rest, 1);
                let is_expected = matches!(next(after).1, Some(Element::Zeros(..) | Element::Nines(..)));
                if is_fraction && !is_expected { self.any_fraction(rest) } else { Some(rest) }
            }
            _ => {
                let word = text.get(..2)?;
                let words: [&[u8]; 2] =
                    if element == Element::UpperPm { [b"PM", b"AM"] } else { [b"pm", b"am"] };
                let index = words.iter().position(|known| *known == word)?;
                // A text that says both is after noon.
                self.afternoon = Some(index == 0 || self.afternoon == Some(true));
                Some(&text[2..])
            }
        }
    }

    fn day_of_year<'t>(&mut self, element: Element, text: &'t [u8]) -> Option<&'t [u8]> {
        let mut text = text;
        for _ in 0..2 {
            if element == Element::UnderYearDay {
                text = text.strip_prefix(b" ").unwrap_or(text);
            }
        }
        let count = (0..3).take_while(|&at| is_digit(text, at)).count();
        if count == 0 || element == Element::ZeroYearDay && count != 3 {
            return None;
        }
        self.day_of_year = Some(digits(&text[..count])?);
        Some(&text[count..])
    }

    /// A fraction of any length, which may be absent.
    fn any_fraction<'t>(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        if !matches!(text.first(), Some(b'.' | b',')) || !is_digit(text, 1) {
            return Some(text);
        }
        let width = 1 + text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.nano = nanos(&text[..width])?;
        Some(&text[width..])
    }

    fn offset<'t>(&mut self, form: Offset, text: &'t [u8]) -> Option<&'t [u8]> {
        if let (true, Some((b'Z', rest))) = (form.iso, text.split_first()) {
            self.is_utc = true;
            return Some(rest);
        }
        let sign = match text.first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let (hours, mut rest) = two(&text[1..], true)?;
        let mut parts = [0, 0];
        for (part, _) in parts.iter_mut().zip([form.minutes, form.seconds]).filter(|(_, is_read)| *is_read) {
            rest = if form.colon { rest.strip_prefix(b":")? } else { rest };
            (*part, rest) = two(rest, true)?;
        }
        let [minutes, seconds] = parts;
        if hours > 24 || minutes > 60 || seconds > 60 {
            return None;
        }
        self.offset = Some(sign * ((hours * 60 + minutes) * 60 + seconds));
        Some(rest)
    }

    fn zone_name<'t>(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        if let Some(rest) = text.strip_prefix(b"UTC") {
            self.is_utc = true;
            return Some(rest);
        }
        let width = zone_width(text)?;
        self.zone = String::from_utf8_lossy(&text[..width]).into_owned();
        Some(&text[width..])
    }

    fn time(mut self) -> Option<Time> {
        match self.afternoon {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            _ => {}
        }
        let (month, day) = self.date()?;
        let days = days_from_civil(self.year, month, day);
        let local = days * 86_400 + self.hour * 3600 + self.minute * 60 + self.second;
        let (offset, zone) = self.zone();
        Some(Time { second: local - offset, nano: self.nano, zone })
    }

    fn date(&self) -> Option<(i64, i64)> {
        let Some(of_year) = self.day_of_year else {
            let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
            return (1..=days_in(self.year, month)).contains(&day).then_some((month, day));
        };
        let mut rest = of_year;
        let mut month = 1;
        while month <= 12 && rest > days_in(self.year, month) {
            rest -= days_in(self.year, month);
            month += 1;
        }
        let is_same = |given: Option<i64>, found: i64| given.is_none_or(|given| given == found);
        (rest >= 1 && month <= 12 && is_same(self.month, month) && is_same(self.day, rest))
            .then_some((month, rest))
    }

    /// Seconds that the text is east of UTC, and the zone of the result. The local zone is UTC.
    fn zone(&self) -> (i64, Arc<Zone>) {
        if self.is_utc {
            return (0, Zone::utc());
        }
        match self.offset {
            Some(0) if self.zone.is_empty() => (0, Zone::utc()),
            Some(offset) => (offset, Arc::new(Zone::Fixed(self.zone.clone(), offset))),
            None if self.zone.is_empty() => (0, Zone::utc()),
            // The moment of an unknown zone is that of UTC; only the zone that it is shown in has the hours of
            // its name.
            None => {
                let hours = self.zone.strip_prefix("GMT").and_then(|hours| signed(hours.as_bytes()));
                (0, Arc::new(Zone::Fixed(self.zone.clone(), hours.unwrap_or(0) * 3600)))
            }
        }
    }
}

/// Width of the abbreviation that a text begins with (`time.parseTimeZone`).
fn zone_width(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_hours(rest));
    }
    if matches!(text[0], b'+' | b'-') {
        return Some(signed_hours(text)).filter(|width| *width > 0);
    }
    let upper = text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    match upper {
        5 if text[4] == b'T' => Some(5),
        4 if text[3] == b'T' || text.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// Width of a sign and hours up to 23, or 0.
fn signed_hours(text: &[u8]) -> usize {
    if !matches!(text.first(), Some(b'+' | b'-')) {
        return 0;
    }
    let count = text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    match digits(&text[1..=count]) {
        Some(hours) if count > 0 && hours <= 23 => count + 1,
        _ => 0,
    }
}
