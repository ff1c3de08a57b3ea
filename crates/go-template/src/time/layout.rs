//! Go's layouts: which element a layout begins with (`time.nextStdChunk`).

/// An element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekDay,
    WeekDay,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    Offset(Offset),
    /// Digits of a fraction; zeros at its end are written.
    Zeros(u8, usize),
    /// The same without the zeros.
    Nines(u8, usize),
}

/// How a zone is written as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// UTC is written as `Z`.
    pub(super) iso: bool,
    pub(super) colon: bool,
    pub(super) minutes: bool,
    pub(super) seconds: bool,
}

const NUMBERS: [(&[u8], Element); 19] = [
    (b"2006", Element::LongYear),
    (b"__2", Element::UnderYearDay),
    (b"002", Element::ZeroYearDay),
    (b"01", Element::ZeroMonth),
    (b"02", Element::ZeroDay),
    (b"03", Element::ZeroHour12),
    (b"04", Element::ZeroMinute),
    (b"05", Element::ZeroSecond),
    (b"06", Element::Year),
    (b"15", Element::Hour),
    (b"_2", Element::UnderDay),
    (b"1", Element::NumMonth),
    (b"2", Element::Day),
    (b"3", Element::Hour12),
    (b"4", Element::Minute),
    (b"5", Element::Second),
    (b"MST", Element::ZoneName),
    (b"PM", Element::UpperPm),
    (b"pm", Element::LowerPm),
];

/// After the `-` or `Z`.
const OFFSETS: [(&[u8], [bool; 3]); 5] = [
    (b"070000", [false, true, true]),
    (b"07:00:00", [true, true, true]),
    (b"0700", [false, true, false]),
    (b"07:00", [true, true, false]),
    (b"07", [false, false, false]),
];

/// The first element of a layout: the text before it, the element, and the rest.
pub(super) fn next(layout: &[u8]) -> (&[u8], Option<Element>, &[u8]) {
    for at in 0..layout.len() {
        let rest = &layout[at..];
        // `_2006` is an underscore and a year.
        if rest.starts_with(b"_2006") {
            let end = at + 5;
            return (&layout[..=at], Some(Element::LongYear), &layout[end..]);
        }
        if let Some((element, width)) = element(rest) {
            let end = at + width;
            return (&layout[..at], Some(element), &layout[end..]);
        }
    }
    (layout, None, &[])
}

fn element(layout: &[u8]) -> Option<(Element, usize)> {
    let starts = |text: &[u8]| layout.starts_with(text);
    let next_is_lower = |at: usize| layout.get(at).is_some_and(u8::is_ascii_lowercase);
    match layout.first()? {
        b'J' if starts(b"January") => Some((Element::LongMonth, 7)),
        b'J' if starts(b"Jan") && !next_is_lower(3) => Some((Element::Month, 3)),
        b'M' if starts(b"Monday") => Some((Element::LongWeekDay, 6)),
        b'M' if starts(b"Mon") && !next_is_lower(3) => Some((Element::WeekDay, 3)),
        mark @ (b'-' | b'Z') => {
            let (text, [colon, minutes, seconds]) =
                OFFSETS.iter().find(|(text, _)| layout[1..].starts_with(text))?;
            let offset = Offset { iso: *mark == b'Z', colon: *colon, minutes: *minutes, seconds: *seconds };
            Some((Element::Offset(offset), text.len() + 1))
        }
        mark @ (b'.' | b',') => fraction(*mark, &layout[1..]),
        _ => {
            let (text, element) = NUMBERS.iter().find(|(text, _)| starts(text))?;
            Some((*element, text.len()))
        }
    }
}

fn fraction(mark: u8, digits: &[u8]) -> Option<(Element, usize)> {
    let digit = *digits.first().filter(|digit| matches!(digit, b'0' | b'9'))?;
    let count = digits.iter().take_while(|&&other| other == digit).count();
    if digits.get(count).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let element = if digit == b'0' { Element::Zeros(mark, count) } else { Element::Nines(mark, count) };
    Some((element, count + 1))
}
