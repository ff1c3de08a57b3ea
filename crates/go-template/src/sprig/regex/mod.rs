//! Regular expressions with the semantics of Go's `regexp`: both engines descend from RE2.
//!
//! A compilation is charged by the size of its result, a search by its states times the text.

use std::rc::Rc;

use regex_automata::util::iter::Searcher;
use regex_automata::{Anchored, Input, Match};

use super::coerce;
use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::{Int, Str};
use crate::function::{Function, arg, fixed};
use crate::limits::{LimitReached, MAX_COMPILED, MAX_PATTERN, Meter};
use crate::patterns::{Pattern, PatternRefused};

use crate::go::pattern::translate;
use crate::go::utf8;

/// Work of parsing a byte of a pattern: a class of two bytes becomes a few kilobytes, and takes longer if it
/// ignores case.
const READING: usize = 2 << 10;
const READING_WITHOUT_CASE: usize = 16 << 10;

/// Bytes of remaining text per unit of work, for each match but the first: a search rarely reads far beyond
/// its match, and a lazy automaton takes about a nanosecond a byte.
const AHEAD: usize = 16;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("regexMatch", &[Str, Str], is_match),
    fixed("regexFind", &[Str, Str], |meter, args| {
        let mut all = all(meter, args, Some(1))?;
        Ok(Val::str(all.pop().unwrap_or_default()))
    }),
    fixed("regexFindAll", &[Str, Str, Int], |meter, args| {
        let limit = limit(args, 2);
        Ok(coerce::string_list(all(meter, args, limit)?))
    }),
    fixed("regexReplaceAll", &[Str, Str, Str], replace_all),
    fixed("regexReplaceAllLiteral", &[Str, Str, Str], replace_literally),
    fixed("regexSplit", &[Str, Str, Int], split),
];

/// A pattern, compiled now or earlier in this rendering.
struct Compiled(Rc<Result<Pattern, PatternRefused>>, String);

impl Compiled {
    fn of(meter: &Meter, args: &[Val], groups: bool) -> Result<Self, Failure> {
        let pattern = arg::text(args, 0);
        if pattern.len() > MAX_PATTERN {
            return Err(LimitReached::Pattern.into());
        }
        let pattern = String::from_utf8_lossy(pattern).into_owned();
        let text = match translate(&pattern) {
            Ok(text) => text,
            Err(reason) => return Ok(Self(Rc::new(Err(PatternRefused::Syntax(reason))), pattern)),
        };
        if let Some(found) = meter.patterns.get(&text, groups) {
            return Ok(Self(found, pattern));
        }
        let without_case = text.contains("(?") && text.contains('i');
        let reading = if without_case { READING_WITHOUT_CASE } else { READING };
        meter.read(text.len().saturating_mul(reading))?;
        let found = meter.patterns.compile(&text, groups, MAX_COMPILED);
        // Compilation reads and rewrites the result a few times.
        match found.as_ref() {
            Ok(pattern) => meter.read(pattern.bytes().saturating_mul(2))?,
            Err(PatternRefused::TooLarge) => meter.read(MAX_COMPILED * 2)?,
            Err(PatternRefused::Syntax(_)) => {}
        }
        Ok(Self(found, pattern))
    }

    fn pattern(&self) -> Result<&Pattern, Failure> {
        match self.0.as_ref() {
            Ok(pattern) => Ok(pattern),
            Err(PatternRefused::TooLarge) => Err(LimitReached::Pattern.into()),
            Err(PatternRefused::Syntax(error)) => {
                let reason = error.lines().last().unwrap_or_default();
                let reason = reason.strip_prefix("error: ").unwrap_or(reason);
                Err(Failure::new(format!("regexp: Compile(`{}`): error parsing regexp: {reason}", self.1)))
            }
        }
    }
}

/// Charges for a search in advance. The first one may read the whole text, and is charged for it; a later
/// one is charged for the text since the previous one, and a little for reading ahead.
fn charge(
    meter: &Meter,
    pattern: &Pattern,
    input: &Input<'_>,
    before: Option<usize>,
) -> Result<(), LimitReached> {
    let length = Pattern::length(input);
    let most = length.saturating_mul(pattern.weight());
    let Some(before) = before else { return meter.read(most) };
    let passed = input.start().saturating_sub(before).saturating_mul(pattern.weight());
    meter.step()?;
    meter.read(passed.saturating_add(length / AHEAD))?;
    meter.pass(most)
}

/// Passes the matches to `take` one after another, until it stops.
fn each(
    meter: &Meter,
    pattern: &Pattern,
    text: &[u8],
    mut take: impl FnMut(Match) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let mut searcher = Searcher::new(Input::new(text));
    let mut before = None;
    let mut stopped = None;
    loop {
        let found = searcher.advance(|input| {
            if let Err(limit) = charge(meter, pattern, input, before) {
                stopped = Some(limit);
                return Ok(None);
            }
            before = Some(input.start());
            Ok(pattern.regex.search(input))
        });
        if let Some(limit) = stopped {
            return Err(limit.into());
        }
        match found {
            // Go goes from character to character.
            Some(found) if found.is_empty() && is_within_character(text, found.start()) => {}
            Some(found) if take(found)? => {}
            _ => return Ok(()),
        }
    }
}

/// Whether a character begins before this byte and ends behind it.
fn is_within_character(text: &[u8], at: usize) -> bool {
    (1..=at.min(3)).any(|back| matches!(utf8::decode(&text[at - back..]), (Some(_), width) if width > back))
}

/// sprig drops the error of an invalid pattern.
fn is_match(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let compiled = Compiled::of(meter, args, false)?;
    let pattern = match compiled.pattern() {
        Ok(pattern) => pattern,
        Err(Failure::Refused(_)) => return Ok(Val::Bool(false)),
        Err(limit) => return Err(limit),
    };
    let input = Input::new(arg::text(args, 1)).earliest(true);
    charge(meter, pattern, &input, None)?;
    Ok(Val::Bool(pattern.regex.is_match(input)))
}

/// A maximum; below 0 there is none.
fn limit(args: &[Val], at: usize) -> Option<usize> {
    usize::try_from(arg::int(args, at)).ok()
}

/// The texts of at most that many matches.
fn all(meter: &Meter, args: &[Val], limit: Option<usize>) -> Result<Vec<Vec<u8>>, Failure> {
    let compiled = Compiled::of(meter, args, false)?;
    let (pattern, text) = (compiled.pattern()?, arg::text(args, 1));
    let mut all = Vec::new();
    if limit == Some(0) {
        return Ok(all);
    }
    each(meter, pattern, text, |found| {
        meter.items(2)?;
        meter.bytes(found.len())?;
        all.push(text[found.range()].to_vec());
        Ok(limit.is_none_or(|limit| all.len() < limit))
    })?;
    Ok(all)
}

fn replace_all(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (text, replacement) = (arg::text(args, 1), arg::text(args, 2));
    let references = replacement.iter().filter(|&&byte| byte == b'$').count();
    if references == 0 {
        return replace_literally(meter, args);
    }
    let compiled = Compiled::of(meter, args, true)?;
    let pattern = compiled.pattern()?;
    let mut captures = pattern.regex.create_captures();
    replaced(meter, pattern, text, |found, out| {
        // A reference is at most as long as the match.
        meter.bytes(replacement.len().saturating_add(references.saturating_mul(found.len())))?;
        // A second search, of the match alone, finds its groups.
        meter.read(found.len().saturating_add(1).saturating_mul(pattern.weight()))?;
        let input = Input::new(text).range(found.range()).anchored(Anchored::Yes);
        pattern.regex.search_captures(&input, &mut captures);
        captures.interpolate_bytes_into(text, replacement, out);
        Ok(())
    })
}

fn replace_literally(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let compiled = Compiled::of(meter, args, false)?;
    let replacement = arg::text(args, 2);
    replaced(meter, compiled.pattern()?, arg::text(args, 1), |_, out| {
        meter.bytes(replacement.len())?;
        out.extend_from_slice(replacement);
        Ok(())
    })
}

/// The text with what `write` writes for each match.
fn replaced(
    meter: &Meter,
    pattern: &Pattern,
    text: &[u8],
    mut write: impl FnMut(Match, &mut Vec<u8>) -> Result<(), Failure>,
) -> Result<Val, Failure> {
    let mut out = Vec::new();
    let mut last = 0;
    each(meter, pattern, text, |found| {
        meter.bytes(found.start() - last)?;
        out.extend_from_slice(&text[last..found.start()]);
        write(found, &mut out)?;
        last = found.end();
        Ok(true)
    })?;
    meter.bytes(text.len() - last)?;
    out.extend_from_slice(&text[last..]);
    Ok(Val::str(out))
}

/// `Regexp.Split`: an empty match at the start or the end splits nothing.
fn split(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let compiled = Compiled::of(meter, args, false)?;
    let (pattern, text, limit) = (compiled.pattern()?, arg::text(args, 1), limit(args, 2));
    if limit == Some(0) {
        return Ok(coerce::string_list(Vec::new()));
    }
    if !arg::text(args, 0).is_empty() && text.is_empty() {
        return Ok(coerce::string_list(vec![Vec::new()]));
    }
    meter.bytes(text.len())?;
    let mut parts = Vec::new();
    let (mut start, mut end) = (0, 0);
    each(meter, pattern, text, |found| {
        meter.items(2)?;
        if limit.is_some_and(|limit| parts.len() + 1 == limit) {
            return Ok(false);
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(text[start..end].to_vec());
        }
        start = found.end();
        Ok(true)
    })?;
    if end != text.len() {
        parts.push(text[start..].to_vec());
    }
    Ok(coerce::string_list(parts))
}
