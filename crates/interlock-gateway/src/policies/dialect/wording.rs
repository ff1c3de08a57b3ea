//! Names and types in messages.

use interlock_core::api::suggest::{did_you_mean, similar};

use super::attributes;
use super::functions::Form;
use super::types::Type;

/// Characters of a user's text that a message shows.
const SHOWN: usize = 60;

/// A function or an operator as people write it.
pub(super) fn spelled(name: &str, form: Form) -> String {
    match form {
        Form::Operator => name.trim_matches('_').to_owned(),
        Form::Global | Form::Method | Form::Both => format!("{}()", shown(name)),
    }
}

/// Types in a sentence.
pub(super) fn list(kinds: &[Type]) -> String {
    kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// The known name that is likely meant.
pub(super) fn nearest(name: &str) -> String {
    let near = match name.rsplit_once('.') {
        Some((of, field)) => {
            let member = |own: &'static str| own.strip_prefix(of)?.strip_prefix('.');
            let members: Vec<&str> = attributes::names().filter_map(member).collect();
            let found: Vec<String> =
                similar(field, &members).iter().map(|near| format!("{of}.{near}")).collect();
            (!found.is_empty()).then(|| format!("did you mean {}?", found.join(" or ")))
        }
        None => {
            let known: Vec<&str> = attributes::names().collect();
            let mut roots: Vec<&str> = known.iter().filter_map(|name| name.split('.').next()).collect();
            roots.dedup();
            did_you_mean(name, &roots).or_else(|| did_you_mean(name, &known))
        }
    };
    near.unwrap_or_else(|| "see the table of attributes".to_owned())
}

/// A text of a user in a message.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('\u{2026}');
    }
    shown
}
