//! Warnings of the API server about objects that a package writes, as `kubectl apply` prints them: without them a
//! misspelled field of a template is lost in silence.

use interlock_core::api::meta::event;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::{Note, Severity};

/// Warnings of one step that each get an Event; a package decides how many there are.
const MOST: usize = 8;

/// The Events about the warnings of one step.
pub fn notes(warnings: &[(ObjectKey, String)]) -> Vec<Note> {
    let note = |message| Note { severity: Severity::Warning, reason: event::API_WARNING.to_owned(), message };
    let mut notes: Vec<Note> =
        warnings.iter().take(MOST).map(|(key, text)| note(format!("{key}: {text}"))).collect();
    if let Some(more) = warnings.len().checked_sub(MOST).filter(|more| *more > 0) {
        notes.push(note(format!(
            "the API server gave {more} more warnings; `kubectl apply --dry-run=server` of the objects prints all"
        )));
    }
    notes
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::Gvk;

    use super::*;

    #[test]
    fn a_flood_of_warnings_is_cut_short() {
        let key = ObjectKey {
            gvk: Gvk::new("apps/v1", "Deployment"),
            namespace: Some("shop".to_owned()),
            name: "demo".to_owned(),
        };
        let warnings =
            |count: usize| vec![(key.clone(), "unknown field \"spec.replicsa\"".to_owned()); count];
        assert!(notes(&[]).is_empty());
        let one = notes(&warnings(1));
        assert_eq!(one[0].message, "Deployment shop/demo: unknown field \"spec.replicsa\"");
        let many = notes(&warnings(100));
        assert_eq!(many.len(), MOST + 1);
        assert!(many[MOST].message.starts_with("the API server gave 92 more warnings"), "{many:?}");
    }
}
