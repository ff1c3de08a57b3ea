//! One value under one verb, like `fmt/print.go` and `fmt/format.go`.

use crate::dynamic::Val;
use crate::error::Failure;
use crate::go::float::format_float;
use crate::go::quote::{Keep, quote, quote_char};
use crate::go::utf8;
use crate::limits::{LimitReached, MAX_VALUE_DEPTH, Meter};

/// Flags between `%` and the verb.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FormatFlags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%#v`: Go syntax.
    pub(super) sharp_v: bool,
}

/// Upper bound of the bytes that one byte becomes, quoted or in digits.
pub(crate) const ESCAPED: usize = 5;

/// Text being printed.
pub(super) struct Printer<'m> {
    pub(super) out: Vec<u8>,
    pub(super) flags: FormatFlags,
    meter: &'m Meter<'m>,
}

type Printed = Result<(), Failure>;

impl<'m> Printer<'m> {
    pub(super) fn new(meter: &'m Meter<'m>) -> Self {
        Self { out: Vec::new(), flags: FormatFlags::default(), meter }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Printed {
        self.meter.bytes(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// `printArg`.
    pub(super) fn arg(&mut self, value: &Val, verb: char) -> Printed {
        match (value, verb) {
            (Val::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (Val::Nil, _) => self.bad_verb(value, verb),
            (value, 'T') => self.string(value.type_name().as_bytes()),
            (Val::List(_) | Val::Map(_) | Val::Version(_), 'p') => self.pad(b"0xc000000000"),
            (_, 'p') => self.bad_verb(value, verb),
            _ => self.value(value, verb, 0),
        }
    }

    /// `%!d(string=x)`: a verb that does not fit the value.
    fn bad_verb(&mut self, value: &Val, verb: char) -> Printed {
        self.push(format!("%!{verb}(").as_bytes())?;
        match value {
            Val::Nil => self.push(b"<nil>")?,
            value => {
                self.push(format!("{}=", value.type_name()).as_bytes())?;
                self.arg(value, 'v')?;
            }
        }
        self.push(b")")
    }

    fn value(&mut self, value: &Val, verb: char, depth: usize) -> Printed {
        if depth > MAX_VALUE_DEPTH {
            return Err(LimitReached::ValueDepth.into());
        }
        self.meter.step()?;
        match value {
            Val::Nil if self.flags.sharp_v => self.push(b"interface {}(nil)"),
            Val::Nil => self.push(b"<nil>"),
            Val::Bool(value) => match verb {
                't' | 'v' => self.pad(if *value { b"true" } else { b"false" }),
                _ => self.bad_verb(&Val::Bool(*value), verb),
            },
            Val::Int(_) | Val::Int64(_) | Val::Byte(_) | Val::Float(_) => self.number(value, verb),
            Val::Str(text) => self.text(value, text, verb),
            Val::List(list) => self.list(list, verb, depth),
            Val::Map(map) => self.map(map, verb, depth),
            Val::Version(version) => self.textual(value, verb, || version.to_string()),
            Val::Time(time) => self.textual(value, verb, || time.text()),
            Val::Certificate(pair) => self.certificate(pair, verb),
        }
    }

    /// A value that Go prints as its text.
    fn textual(&mut self, value: &Val, verb: char, text: impl Fn() -> String) -> Printed {
        match verb {
            'v' | 's' | 'x' | 'X' | 'q' => self.text(value, text().as_bytes(), verb),
            _ => self.bad_verb(value, verb),
        }
    }

    fn certificate(&mut self, pair: &crate::dynamic::Certificate, verb: char) -> Printed {
        let go = self.flags.sharp_v;
        self.push(if go { b"sprig.certificate{Cert:" } else { b"{" })?;
        self.text(&Val::Str(pair.cert.clone()), &pair.cert, verb)?;
        self.push(if go { b", Key:" } else { b" " })?;
        self.text(&Val::Str(pair.key.clone()), &pair.key, verb)?;
        self.push(b"}")
    }

    fn list(&mut self, list: &crate::dynamic::List, verb: char, depth: usize) -> Printed {
        let go = self.flags.sharp_v;
        if go {
            self.push(Val::List(list.clone()).type_name().as_bytes())?;
        }
        self.push(if go { b"{" } else { b"[" })?;
        for (i, item) in list.items().iter().enumerate() {
            if i > 0 {
                self.push(if go { b", " } else { b" " })?;
            }
            self.value(item, verb, depth + 1)?;
        }
        self.push(if go { b"}" } else { b"]" })
    }

    fn map(&mut self, map: &crate::dynamic::Map, verb: char, depth: usize) -> Printed {
        let go = self.flags.sharp_v;
        if go {
            self.push(Val::Map(map.clone()).type_name().as_bytes())?;
            self.push(b"{")?;
        } else {
            self.push(b"map[")?;
        }
        self.meter.visit(map.len())?;
        for (i, (key, value)) in map.entries().iter().enumerate() {
            if i > 0 {
                self.push(if go { b", " } else { b" " })?;
            }
            self.value(&Val::Str(key.clone()), verb, depth + 1)?;
            self.push(b":")?;
            self.value(value, verb, depth + 1)?;
        }
        self.push(if go { b"}" } else { b"]" })
    }
}

// Text.
impl Printer<'_> {
    fn text(&mut self, value: &Val, text: &[u8], verb: char) -> Printed {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.string(text),
            'x' => self.hex(text, false),
            'X' => self.hex(text, true),
            'q' => self.quoted(text),
            _ => self.bad_verb(value, verb),
        }
    }

    fn string(&mut self, text: &[u8]) -> Printed {
        self.pad(truncate(text, self.flags.precision))
    }

    fn quoted(&mut self, text: &[u8]) -> Printed {
        let text = truncate(text, self.flags.precision);
        self.meter.bytes(text.len().saturating_mul(ESCAPED))?;
        let raw = std::str::from_utf8(text).ok().filter(|text| {
            self.flags.sharp && text.chars().all(|c| c == '\t' || (c >= ' ' && !"`\x7f\u{feff}".contains(c)))
        });
        let quoted = match raw {
            Some(raw) => format!("`{raw}`"),
            None => quote(text, if self.flags.plus { Keep::Ascii } else { Keep::Printable }),
        };
        self.pad(quoted.as_bytes())
    }

    fn hex(&mut self, text: &[u8], upper: bool) -> Printed {
        let kept = &text[..self.flags.precision.unwrap_or(text.len()).min(text.len())];
        self.meter.bytes(kept.len().saturating_mul(ESCAPED))?;
        let mut out = String::new();
        let prefix = match (self.flags.sharp, upper) {
            (false, _) => "",
            (true, false) => "0x",
            (true, true) => "0X",
        };
        for (i, byte) in kept.iter().enumerate() {
            if i > 0 && self.flags.space {
                out.push(' ');
            }
            if i == 0 || self.flags.space {
                out.push_str(prefix);
            }
            out.push_str(&if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        }
        self.pad(out.as_bytes())
    }

    /// Writes text padded to the width in characters.
    fn pad(&mut self, text: &[u8]) -> Printed {
        let missing = self.flags.width.unwrap_or(0).saturating_sub(utf8::chars(text).count());
        self.meter.bytes(missing)?;
        let fill = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        if !self.flags.minus {
            self.out.resize(self.out.len() + missing, fill);
        }
        self.push(text)?;
        if self.flags.minus {
            self.out.resize(self.out.len() + missing, fill);
        }
        Ok(())
    }

    fn pad_without_zeros(&mut self, text: &[u8]) -> Printed {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        let result = self.pad(text);
        self.flags.zero = zero;
        result
    }
}

fn truncate(text: &[u8], precision: Option<usize>) -> &[u8] {
    let Some(count) = precision else { return text };
    let mut end = 0;
    for _ in 0..count {
        if end >= text.len() {
            break;
        }
        end += utf8::decode(&text[end..]).1;
    }
    &text[..end]
}

// Numbers.
impl Printer<'_> {
    fn number(&mut self, value: &Val, verb: char) -> Printed {
        // The number is first written with all its zeros.
        let flags = self.flags;
        self.meter.bytes(flags.precision.unwrap_or(0).max(flags.width.unwrap_or(0)))?;
        match value {
            Val::Float(number) => self.float(value, *number, verb),
            Val::Byte(byte) => self.integer(value, i64::from(*byte), false, verb),
            value => self.integer(value, value.integer().unwrap_or(0), true, verb),
        }
    }

    fn integer(&mut self, value: &Val, number: i64, signed: bool, verb: char) -> Printed {
        match verb {
            'v' if self.flags.sharp_v && !signed => self.push(format!("{number:#x}").as_bytes()),
            'v' | 'd' => self.digits(number, 10, verb, false),
            'b' => self.digits(number, 2, verb, false),
            'o' | 'O' => self.digits(number, 8, verb, false),
            'x' => self.digits(number, 16, verb, false),
            'X' => self.digits(number, 16, verb, true),
            'c' => self.pad(character(number).encode_utf8(&mut [0; 4]).as_bytes()),
            'q' => {
                let keep = if self.flags.plus { Keep::Ascii } else { Keep::Printable };
                self.pad(quote_char(character(number), keep).as_bytes())
            }
            'U' => self.unicode(number),
            _ => self.bad_verb(value, verb),
        }
    }

    /// `fmtInteger`.
    fn digits(&mut self, number: i64, base: u32, verb: char, upper: bool) -> Printed {
        let flags = self.flags;
        let negative = number < 0;
        let magnitude = number.unsigned_abs();
        let mut wanted = 0;
        if let Some(precision) = flags.precision {
            if precision == 0 && number == 0 {
                return self.pad_without_zeros(b"");
            }
            wanted = precision;
        } else if let (true, false, Some(width)) = (flags.zero, flags.minus, flags.width) {
            wanted = width.saturating_sub(usize::from(negative || flags.plus || flags.space));
        }
        let digits = match base {
            2 => format!("{magnitude:b}"),
            8 => format!("{magnitude:o}"),
            16 if upper => format!("{magnitude:X}"),
            16 => format!("{magnitude:x}"),
            _ => magnitude.to_string(),
        };
        let mut text = "0".repeat(wanted.saturating_sub(digits.len())) + &digits;
        if flags.sharp {
            match base {
                2 => text.insert_str(0, "0b"),
                8 if !text.starts_with('0') => text.insert(0, '0'),
                16 => text.insert_str(0, if upper { "0X" } else { "0x" }),
                _ => {}
            }
        }
        if verb == 'O' {
            text.insert_str(0, "0o");
        }
        if negative {
            text.insert(0, '-');
        } else if flags.plus {
            text.insert(0, '+');
        } else if flags.space {
            text.insert(0, ' ');
        }
        self.pad_without_zeros(text.as_bytes())
    }

    fn unicode(&mut self, number: i64) -> Printed {
        let width = self.flags.precision.unwrap_or(4).max(4);
        let digits = format!("{number:X}");
        let mut text = format!("U+{}{digits}", "0".repeat(width.saturating_sub(digits.len())));
        if self.flags.sharp
            && let Some(c) =
                u32::try_from(number).ok().and_then(char::from_u32).filter(|&c| utf8::is_print(c))
        {
            text.push_str(&format!(" '{c}'"));
        }
        self.pad_without_zeros(text.as_bytes())
    }

    fn float(&mut self, value: &Val, number: f64, verb: char) -> Printed {
        match verb {
            'v' => self.float_text(number, 'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.float_text(number, verb, None),
            'f' | 'e' | 'E' => self.float_text(number, verb, Some(6)),
            'F' => self.float_text(number, 'f', Some(6)),
            _ => self.bad_verb(value, verb),
        }
    }

    /// `fmtFloat`.
    fn float_text(&mut self, number: f64, verb: char, precision: Option<usize>) -> Printed {
        let flags = self.flags;
        let precision = flags.precision.or(precision);
        let text = format_float(number, verb, precision);
        let (mut sign, mut body) = match text.strip_prefix('-') {
            Some(body) => ('-', body.to_owned()),
            None => ('+', text.strip_prefix('+').unwrap_or(&text).to_owned()),
        };
        if flags.space && sign == '+' && !flags.plus {
            sign = ' ';
        }
        if number.is_nan() || number.is_infinite() {
            // Go shows the sign of positive infinity, but none of NaN.
            let bare = number.is_nan() && !flags.space && !flags.plus;
            let shown = if bare { body } else { format!("{sign}{body}") };
            return self.pad_without_zeros(shown.as_bytes());
        }
        if flags.sharp && verb != 'b' {
            body = with_point(&body, verb, precision);
        }
        if flags.plus || sign != '+' {
            if let (true, false, Some(width)) = (flags.zero, flags.minus, flags.width)
                && width > body.len() + 1
            {
                let zeros = "0".repeat(width - body.len() - 1);
                return self.push(format!("{sign}{zeros}{body}").as_bytes());
            }
            return self.pad(format!("{sign}{body}").as_bytes());
        }
        self.pad(body.as_bytes())
    }
}

/// `%#g`: a decimal point always, and trailing zeros up to the precision. Go counts the `x` of `0x` as a digit.
fn with_point(body: &str, verb: char, precision: Option<usize>) -> String {
    let exponent = if matches!(verb, 'x' | 'X') { ['p', 'P'] } else { ['e', 'E'] };
    let (mantissa, tail) = match body.find(exponent) {
        Some(at) => body.split_at(at),
        None => (body, ""),
    };
    let mut missing = if matches!(verb, 'g' | 'G' | 'x') { precision.unwrap_or(6) } else { 0 };
    let mut out = mantissa.to_owned();
    let significant = mantissa.chars().filter(|&c| c != '.').skip_while(|&c| c == '0').count();
    missing = missing.saturating_sub(significant);
    if !mantissa.contains('.') {
        if mantissa == "0" {
            missing = missing.saturating_sub(1);
        }
        out.push('.');
    }
    out.push_str(&"0".repeat(missing));
    out.push_str(tail);
    out
}

fn character(number: i64) -> char {
    u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}
