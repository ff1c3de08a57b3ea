//! The format string of `printf`: flags, widths, argument numbers, and Go's markers for misuse.

use super::verbs::{FormatFlags, Printer};
use crate::dynamic::Val;
use crate::error::Failure;
use crate::go::utf8;
use crate::limits::Meter;

/// Limit of widths and precisions (Go's own).
const MAX_NUMBER: usize = 1_000_000;

/// `fmt.Sprintf`.
pub(crate) fn sprintf(meter: &Meter, format: &[u8], args: &[Val]) -> Result<Vec<u8>, Failure> {
    let mut run = Run {
        printer: Printer::new(meter),
        format,
        at: 0,
        args,
        next_arg: 0,
        reordered: false,
        good_number: true,
        after_index: false,
    };
    while run.at < format.len() {
        run.literal()?;
        if run.at < format.len() {
            run.at += 1;
            run.directive()?;
        }
    }
    run.extra()?;
    Ok(run.printer.out)
}

struct Run<'a> {
    printer: Printer<'a>,
    format: &'a [u8],
    at: usize,
    args: &'a [Val],
    next_arg: usize,
    /// The format used an argument number: unused arguments are then allowed.
    reordered: bool,
    good_number: bool,
    /// The last token was an argument number.
    after_index: bool,
}

impl Run<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn literal(&mut self) -> Result<(), Failure> {
        let rest = &self.format[self.at..];
        let end = rest.iter().position(|&b| b == b'%').unwrap_or(rest.len());
        self.at += end;
        self.printer.push(&rest[..end])
    }

    /// The directive after a percent sign.
    fn directive(&mut self) -> Result<(), Failure> {
        self.printer.flags = FormatFlags::default();
        self.good_number = true;
        self.after_index = false;
        self.flags();
        self.argument_number();
        self.width()?;
        self.precision()?;
        if !self.after_index {
            self.argument_number();
        }
        let (verb, width) = utf8::decode(&self.format[self.at..]);
        if width == 0 {
            return self.printer.push(b"%!(NOVERB)");
        }
        self.at += width;
        self.verb(verb.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn verb(&mut self, verb: char) -> Result<(), Failure> {
        if verb == '%' {
            return self.printer.push(b"%");
        }
        if !self.good_number {
            return self.printer.push(format!("%!{verb}(BADINDEX)").as_bytes());
        }
        let Some(arg) = self.args.get(self.next_arg) else {
            return self.printer.push(format!("%!{verb}(MISSING)").as_bytes());
        };
        if verb == 'v' {
            let flags = &mut self.printer.flags;
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus = false;
        }
        self.next_arg += 1;
        self.printer.arg(arg, verb)
    }

    fn flags(&mut self) {
        while let Some(c) = self.peek() {
            let flags = &mut self.printer.flags;
            match c {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    fn width(&mut self) -> Result<(), Failure> {
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.int_argument() {
                Some(width) => {
                    if width < 0 {
                        self.printer.flags.minus = true;
                        self.printer.flags.zero = false;
                    }
                    self.printer.flags.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => self.printer.push(b"%!(BADWIDTH)")?,
            }
            self.after_index = false;
        } else {
            self.printer.flags.width = self.number();
            if self.after_index && self.printer.flags.width.is_some() {
                self.good_number = false;
            }
        }
        Ok(())
    }

    fn precision(&mut self) -> Result<(), Failure> {
        // Go leaves a point at the end of the format to be read as the verb.
        if self.peek() != Some(b'.') || self.at + 1 >= self.format.len() {
            return Ok(());
        }
        self.at += 1;
        if self.after_index {
            self.good_number = false;
        }
        self.argument_number();
        if self.peek() == Some(b'*') {
            self.at += 1;
            let precision = self.int_argument().and_then(|n| usize::try_from(n).ok());
            self.printer.flags.precision = precision;
            if precision.is_none() {
                self.printer.push(b"%!(BADPREC)")?;
            }
            self.after_index = false;
        } else {
            self.printer.flags.precision = Some(self.number().unwrap_or(0));
        }
        Ok(())
    }

    /// A decimal number; an excessive one ends the format, as in Go.
    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if number.unwrap_or(0) > MAX_NUMBER {
                self.at = self.format.len();
                return None;
            }
            number = Some(number.unwrap_or(0) * 10 + usize::from(digit - b'0'));
            self.at += 1;
        }
        number
    }

    fn int_argument(&mut self) -> Option<i64> {
        let arg = self.args.get(self.next_arg)?;
        self.next_arg += 1;
        arg.integer().filter(|n| n.unsigned_abs() <= MAX_NUMBER as u64)
    }

    /// `[3]`: the number of the next argument.
    fn argument_number(&mut self) {
        self.after_index = false;
        if self.peek() != Some(b'[') {
            return;
        }
        self.reordered = true;
        let rest = &self.format[self.at..];
        let Some(close) = rest.iter().position(|&b| b == b']').filter(|_| rest.len() >= 3) else {
            self.good_number = false;
            self.at += 1;
            return;
        };
        self.at += close + 1;
        let digits = &rest[1..close];
        let number = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let number = number.and_then(|text| text.parse::<usize>().ok()).filter(|&n| n <= MAX_NUMBER);
        match number {
            Some(number) if number >= 1 && number <= self.args.len() => {
                self.next_arg = number - 1;
                self.after_index = true;
            }
            Some(_) => {
                self.good_number = false;
                self.after_index = true;
            }
            None => self.good_number = false,
        }
    }

    /// Arguments without a verb.
    fn extra(&mut self) -> Result<(), Failure> {
        if self.reordered || self.next_arg >= self.args.len() {
            return Ok(());
        }
        self.printer.flags = FormatFlags::default();
        self.printer.push(b"%!(EXTRA ")?;
        for (i, arg) in self.args[self.next_arg..].iter().enumerate() {
            if i > 0 {
                self.printer.push(b", ")?;
            }
            if matches!(arg, Val::Nil) {
                self.printer.push(b"<nil>")?;
                continue;
            }
            self.printer.push(format!("{}=", arg.type_name()).as_bytes())?;
            self.printer.arg(arg, 'v')?;
        }
        self.printer.push(b")")
    }
}
