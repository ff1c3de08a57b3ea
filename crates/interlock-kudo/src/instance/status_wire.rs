//! Status wire format: the parts of an Instance's status that rules read, from the text of a review.

use interlock_core::api::json::{JsonError, Raw, Scanner, SeenMembers};
use interlock_core::api::text::Text;

use crate::api::ExecutionStatus;

/// An entry of `planStatus`.
#[derive(Clone, Debug)]
pub struct StatusEntry<'a> {
    /// Its key.
    pub plan: Text<'a>,
    /// Id of the execution, empty when there is none.
    pub uid: Text<'a>,
    /// The status of the plan.
    pub status: ExecutionStatus,
    /// The whole entry.
    pub raw: Raw<'a>,
}

/// The entries of `planStatus`.
pub fn plans<'a>(s: &mut Scanner<'a>) -> Result<Vec<StatusEntry<'a>>, JsonError> {
    let mut entries = Vec::new();
    s.members(|plan, s| {
        entries.extend(entry(plan, s)?);
        Ok(())
    })?;
    Ok(entries)
}

fn entry<'a>(plan: Text<'a>, s: &mut Scanner<'a>) -> Result<Option<StatusEntry<'a>>, JsonError> {
    let (mut uid, mut status) = (None, None);
    let mut seen = SeenMembers::default();
    let from = s.position();
    let there = s.optional_members(|name, s| match name.as_str() {
        "uid" => seen.once(0, s).and_then(|()| s.optional_text()).map(|text| uid = text),
        "status" => seen.once(1, s).and_then(|()| s.optional_text()).map(|text| status = text),
        _ => s.value().map(drop),
    })?;
    let status = ExecutionStatus::from(status.as_deref().unwrap_or_default());
    Ok(there.then(|| StatusEntry { plan, uid: uid.unwrap_or_default(), status, raw: s.since(from) }))
}

/// The hash of a baseline, and whether plans are pending; nothing else of it is decoded.
pub fn baseline_head(json: &str) -> Result<(Option<Text<'_>>, bool), JsonError> {
    let (mut hash, mut owes) = (None, false);
    let mut seen = SeenMembers::default();
    let mut scanner = Scanner::new(json);
    scanner.members(|name, s| match name.as_str() {
        "hash" => seen.once(0, s).and_then(|()| s.optional_text()).map(|text| hash = text),
        "owed" => {
            seen.once(1, s)?;
            s.optional_members(|_, s| {
                owes = true;
                s.value().map(drop)
            })
            .map(drop)
        }
        _ => s.value().map(drop),
    })?;
    scanner.end()?;
    Ok((hash, owes))
}
