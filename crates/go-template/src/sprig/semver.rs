//! `semver` and `semverCompare`, with the constraints of `Masterminds/semver` 1.5.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::Str;
use crate::function::{Function, arg, fixed};
use crate::limits::Meter;
use crate::version::SemVersion;

pub(super) const FUNCTIONS: &[Function] =
    &[fixed("semver", &[Str], semver), fixed("semverCompare", &[Str, Str], semver_compare)];

/// Bytes of a parsed constraint.
const CONSTRAINT: usize = 256;

/// Charges for parsing a version: a slice for each of its parts.
fn charge(meter: &Meter, args: &[Val], at: usize) -> Result<(), Failure> {
    Ok(meter.bytes(arg::text(args, at).len().saturating_mul(16))?)
}

fn semver(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    charge(meter, args, 0)?;
    Ok(Val::Version(Rc::new(SemVersion::parse(&arg::chars(args, 0))?)))
}

fn semver_compare(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    charge(meter, args, 0)?;
    charge(meter, args, 1)?;
    let parts = arg::text(args, 0).iter().filter(|&&byte| matches!(byte, b',' | b'|')).count() + 1;
    meter.bytes(parts.saturating_mul(CONSTRAINT))?;
    let constraints = constraints(&arg::chars(args, 0))?;
    let version = SemVersion::parse(&arg::chars(args, 1))?;
    Ok(Val::Bool(constraints.iter().any(|all| all.iter().all(|constraint| constraint.admits(&version)))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

struct Constraint {
    operator: Operator,
    version: SemVersion,
    /// A part is `x` or, for the minor one, absent.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

/// Alternatives joined by `||`, of parts joined by a comma.
fn constraints(text: &str) -> Result<Vec<Vec<Constraint>>, Failure> {
    let text = rewrite_ranges(text);
    text.split("||").map(|all| all.split(',').map(constraint).collect()).collect()
}

/// `1.2 - 2.3` means `>= 1.2, <= 2.3`.
fn rewrite_ranges(text: &str) -> String {
    let rewritten: Vec<String> = text
        .split("||")
        .map(|all| {
            let parts = all.split(',').map(|part| {
                let words: Vec<&str> = part.split_whitespace().collect();
                match words.as_slice() {
                    [from, "-", to] => format!(">= {from}, <= {to}"),
                    _ => part.to_owned(),
                }
            });
            parts.collect::<Vec<_>>().join(",")
        })
        .collect();
    rewritten.join("||")
}

fn constraint(text: &str) -> Result<Constraint, Failure> {
    let improper = || Failure::new(format!("improper constraint: {text}"));
    let trimmed = text.trim();
    let end = trimmed.find(|c| !"=!<>~^".contains(c)).unwrap_or(trimmed.len());
    let operator = match &trimmed[..end] {
        "" | "=" => Operator::Equal,
        "!=" => Operator::NotEqual,
        ">" => Operator::Greater,
        "<" => Operator::Less,
        ">=" | "=>" => Operator::GreaterOrEqual,
        "<=" | "=<" => Operator::LessOrEqual,
        "~" | "~>" => Operator::Tilde,
        "^" => Operator::Caret,
        _ => return Err(improper()),
    };
    let written = trimmed[end..].trim_start();
    let core_end = written.find(['-', '+']).unwrap_or(written.len());
    let (core, suffix) = written.split_at(core_end);
    let prerelease = suffix.split('+').next().unwrap_or_default();
    let parts: Vec<&str> = core.strip_prefix('v').unwrap_or(core).split('.').collect();
    let is_x = |part: &str| matches!(part, "x" | "X" | "*");
    let is_part =
        |part: &&str| is_x(part) || (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    if parts.len() > 3 || !parts.iter().all(is_part) {
        return Err(improper());
    }
    let mut found = (false, false, false);
    let plain = match parts.as_slice() {
        [major, ..] if is_x(major) => {
            found.0 = true;
            "0.0.0".to_owned()
        }
        [major] => {
            found = (true, true, false);
            format!("{major}.0.0{prerelease}")
        }
        [major, minor, ..] if is_x(minor) => {
            found = (true, true, false);
            format!("{major}.0.0{prerelease}")
        }
        [major, minor, patch] if is_x(patch) => {
            found = (true, false, true);
            format!("{major}.{minor}.0{prerelease}")
        }
        _ => written.to_owned(),
    };
    let version = SemVersion::parse(&plain).map_err(|_| improper())?;
    Ok(Constraint { operator, version, dirty: found.0, minor_dirty: found.1, patch_dirty: found.2 })
}

impl Constraint {
    fn admits(&self, version: &SemVersion) -> bool {
        let order = version.compare(&self.version);
        let ([major, minor, _], [own_major, own_minor, _]) = (version.numbers, self.version.numbers);
        // Only a constraint with a prerelease admits prereleases.
        let hidden = !version.prerelease.is_empty() && self.version.prerelease.is_empty();
        if self.operator == Operator::NotEqual {
            return match (self.dirty, hidden) {
                (false, _) => order != Ordering::Equal,
                (true, true) => false,
                (true, false) => own_major != major || own_minor != minor && !self.minor_dirty,
            };
        }
        if hidden {
            return false;
        }
        let within_dirty = || major <= own_major && (minor <= own_minor || self.minor_dirty);
        match self.operator {
            Operator::Equal if self.dirty => self.tilde(version, order),
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => order != Ordering::Equal,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Less if self.dirty => within_dirty(),
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual if self.dirty => within_dirty(),
            Operator::LessOrEqual => order != Ordering::Greater,
            Operator::Tilde => self.tilde(version, order),
            Operator::Caret => order != Ordering::Less && major == own_major,
        }
    }

    fn tilde(&self, version: &SemVersion, order: Ordering) -> bool {
        if order == Ordering::Less {
            return false;
        }
        if self.version.numbers == [0; 3] && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        let ([major, minor, _], [own_major, own_minor, _]) = (version.numbers, self.version.numbers);
        major == own_major && (minor == own_minor || self.minor_dirty)
    }
}
