//! Which kinds a package makes, as far as its templates say so before they are rendered.

use std::collections::BTreeSet;

use crate::api::object::Gvk;
use crate::plan::package::Package;

/// The kinds that are written out in the templates. A kind that a template computes is not
/// among them; whoever runs the plan meets it.
pub fn of(package: &Package) -> BTreeSet<Gvk> {
    package.spec.templates.iter().flatten().flat_map(|(_, text)| written_out(text)).collect()
}

/// A document's `apiVersion` and `kind` stand at the left margin; both or none are taken.
fn written_out(text: &str) -> BTreeSet<Gvk> {
    let mut found = BTreeSet::new();
    let (mut api_version, mut kind) = (None, None);
    for line in text.lines().chain(["---"]) {
        if line.starts_with("---") {
            if let (Some(api_version), Some(kind)) = (api_version.take(), kind.take()) {
                found.insert(Gvk::new(api_version, kind));
            }
            (api_version, kind) = (None, None);
        } else if let Some(value) = line.strip_prefix("apiVersion:") {
            api_version = plain(value);
        } else if let Some(value) = line.strip_prefix("kind:") {
            kind = plain(value);
        }
    }
    found
}

/// A scalar without template actions, quotes and comment.
fn plain(value: &str) -> Option<&str> {
    let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    (!value.is_empty() && !value.contains("{{")).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_apart_and_what_is_computed_is_left_out() {
        let text = "# a\napiVersion: v1\nkind: ConfigMap\ndata:\n  kind: no\n---\nkind: \"Filter\" # b\n\
                    apiVersion: 'example.io/v1'\n---\nkind: Deployment\n---\napiVersion: v1\nkind: {{ .Kind }}\n\
                    --- \napiVersion: apps/v1\nkind: Deployment";
        let expected = [("apps/v1", "Deployment"), ("example.io/v1", "Filter"), ("v1", "ConfigMap")]
            .map(|(v, k)| Gvk::new(v, k));
        assert_eq!(written_out(text), BTreeSet::from(expected));
    }
}
