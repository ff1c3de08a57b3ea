//! A setting by the labels of namespaces.

use super::SettingProblem;
use super::selector::{Labels, NamespaceSelector};

/// The settings of a list, in order; where none selects a namespace it has the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByNamespace<T>(Vec<(NamespaceSelector, T)>);

impl<T: Copy + Default> ByNamespace<T> {
    /// Reads the list of this name below `spec.instances`. An invalid setting, given as its field and the
    /// problem, selects nothing and is reported; the others apply.
    pub(super) fn read(
        list: &str,
        settings: impl IntoIterator<Item = Result<(NamespaceSelector, T), (String, String)>>,
    ) -> (Self, Vec<SettingProblem>) {
        let (mut read, mut problems) = (Vec::new(), Vec::new());
        for (i, setting) in settings.into_iter().enumerate() {
            match setting.and_then(checked) {
                Ok(setting) => read.push(setting),
                Err((field, problem)) => problems
                    .push(SettingProblem { field: format!("spec.instances.{list}[{i}].{field}"), problem }),
            }
        }
        (Self(read), problems)
    }

    /// The setting for a namespace with these labels; `None` while they are unknown and matter.
    pub fn within(&self, labels: Option<&Labels>) -> Option<T> {
        if self.0.is_empty() {
            return Some(T::default());
        }
        let labels = labels?;
        let found = self.0.iter().find(|(selector, _)| selector.selects(labels));
        Some(found.map_or_else(T::default, |(_, setting)| *setting))
    }
}

fn checked<T>(
    (selector, setting): (NamespaceSelector, T),
) -> Result<(NamespaceSelector, T), (String, String)> {
    match selector.check() {
        Ok(()) => Ok((selector, setting)),
        Err(wrong) => Err((format!("namespaceSelector.{}", wrong.field), wrong.problem)),
    }
}
