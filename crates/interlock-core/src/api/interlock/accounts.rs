//! Service accounts of packages: `spec.instances.serviceAccounts`, parsed for a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SettingProblem;
use super::dependencies_hash::DependenciesHashSetting;
use super::existing::ExistingObjectsSetting;
use super::selector::{BadSelector, Labels, NAME_LABEL, NamespaceSelector};
use crate::api::object::NamespacedName;

/// How Instances are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstancesSetting {
    /// The service accounts that packages act as, by name of the namespace of the Instance. The first
    /// setting that selects a namespace holds; where none does, it is the one that the process was
    /// started with, `interlock-packages` in its own namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub service_accounts: Vec<ServiceAccountSetting>,
    /// What becomes of an object that a package names, that exists and that no Instance made, by
    /// namespace of the Instance. The first setting that selects a namespace holds; where none
    /// does, the step fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub existing_objects: Vec<ExistingObjectsSetting>,
    /// What counts in the annotation `kudo.dev/dependencies-hash` of pod templates, by namespace of
    /// the Instance. The first setting that selects a namespace holds; where none does, it is what
    /// KUDO counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub dependencies_hash: Vec<DependenciesHashSetting>,
}

/// The service account that packages act as in some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": BY_NAME, "message": BY_NAME_MESSAGE }]))]
pub struct ServiceAccountSetting {
    /// The namespaces of Instances, by the label `kubernetes.io/metadata.name`, which only the API
    /// server sets; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// Name of the service account. The process must have the right to impersonate it.
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME))]
    pub name: String,
    /// Namespace of the service account; absent means that of the Instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), extend("pattern" = NAME))]
    pub namespace: Option<String>,
}

/// Pattern of the names of service accounts and namespaces.
const NAME: &str = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

/// A selector of namespaces by their names, in CEL.
const BY_NAME: &str = "!has(self.namespaceSelector) \
     || ((!has(self.namespaceSelector.matchLabels) \
     || self.namespaceSelector.matchLabels.all(key, key == 'kubernetes.io/metadata.name')) \
     && (!has(self.namespaceSelector.matchExpressions) \
     || self.namespaceSelector.matchExpressions.all(e, e.key == 'kubernetes.io/metadata.name')))";
/// Reason and remedy.
const BY_NAME_MESSAGE: &str = "select namespaces by kubernetes.io/metadata.name: a user who may change another label of \
     a namespace would choose the service account";

/// Service accounts of packages, by namespace; by default the one of the process everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    selector: NamespaceSelector,
    /// Name and namespace, or why it cannot be honoured.
    account: Result<(String, Option<String>), String>,
}

/// The setting for a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// The one that the process was started with.
    Default,
    /// This one.
    Named(NamespacedName),
    /// Why the setting cannot be honoured: packages do nothing there, as another account may have
    /// more rights than the intended one.
    Invalid(String),
}

impl Accounts {
    /// Reads `spec.instances.serviceAccounts`. Reports invalid settings, and blocks packages where
    /// one would apply: everywhere from there on, where its selector is invalid.
    pub fn read(settings: &[ServiceAccountSetting]) -> (Self, Vec<SettingProblem>) {
        let (mut accounts, mut problems) = (Vec::new(), Vec::new());
        for (i, setting) in settings.iter().enumerate() {
            let check = |found: Result<(), (String, String)>, problems: &mut Vec<SettingProblem>| {
                found.map_err(|(field, problem)| {
                    let field = format!("spec.instances.serviceAccounts[{i}].{field}");
                    let why = format!("{field}: {problem}");
                    problems.push(SettingProblem { field, problem });
                    why
                })
            };
            let (by, names) = (setting.check_selector(), setting.check_names());
            let selector = match by.is_ok() {
                true => setting.namespace_selector.clone().unwrap_or_default(),
                false => NamespaceSelector::default(),
            };
            let account = check(by, &mut problems).and(check(names, &mut problems));
            let account = account.map(|()| (setting.name.clone(), setting.namespace.clone()));
            accounts.push(Entry { selector, account });
        }
        (Self(accounts), problems)
    }

    /// The service account for an Instance's namespace. Only its name decides: others may set its
    /// other labels.
    pub fn of(&self, namespace: &str) -> Account {
        if self.0.is_empty() {
            return Account::Default;
        }
        let named = Labels::from([(NAME_LABEL.to_owned(), namespace.to_owned())]);
        match self.0.iter().find(|entry| entry.selector.selects(&named)).map(|entry| &entry.account) {
            None => Account::Default,
            Some(Ok((name, within))) => {
                Account::Named(NamespacedName::new(within.as_deref().unwrap_or(namespace), name.as_str()))
            }
            Some(Err(why)) => Account::Invalid(why.clone()),
        }
    }
}

impl ServiceAccountSetting {
    /// Repeats the checks of the schema, as a schema of another version may lack them.
    fn check_selector(&self) -> Result<(), (String, String)> {
        let Some(selector) = &self.namespace_selector else { return Ok(()) };
        let checked = selector.check().and_then(|()| match selector.keys().find(|(_, key)| *key != NAME_LABEL) {
            None => Ok(()),
            Some((field, key)) => {
                let problem = format!(
                    "selects by the label {key:?}, which whoever may change the labels of a namespace can set; \
                     select by {NAME_LABEL}"
                );
                Err(BadSelector { field, problem })
            }
        });
        checked.map_err(|wrong| (format!("namespaceSelector.{}", wrong.field), wrong.problem))
    }

    /// The same for the names.
    fn check_names(&self) -> Result<(), (String, String)> {
        let names = [("name", Some(&self.name)), ("namespace", self.namespace.as_ref())];
        for (field, name) in names.into_iter().filter_map(|(field, name)| Some((field, name?))) {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            if name.is_empty() || !name.chars().all(plain) {
                let problem = format!("{name:?} is no name; write lower case letters, digits, - and .");
                return Err((field.to_owned(), problem));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn accounts(value: Value) -> (Accounts, Vec<SettingProblem>) {
        let settings: Vec<ServiceAccountSetting> = serde_json::from_value(value).unwrap();
        Accounts::read(&settings)
    }

    fn named(name: &str) -> Value {
        json!({"matchLabels": {"kubernetes.io/metadata.name": name}})
    }

    fn other_than(name: &str) -> Value {
        json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [name]}]})
    }

    #[rstest]
    #[case::in_its_own_namespace("red", Account::Named(NamespacedName::new("red", "deployer")))]
    #[case::in_another_namespace("blue", Account::Named(NamespacedName::new("platform", "blue")))]
    #[case::of_the_rest("green", Account::Named(NamespacedName::new("green", "rest")))]
    #[case::of_nobody("system", Account::Default)]
    fn the_first_setting_that_selects_holds(#[case] namespace: &str, #[case] expected: Account) {
        let (accounts, problems) = accounts(json!([
            {"namespaceSelector": named("red"), "name": "deployer"},
            {"namespaceSelector": named("blue"), "name": "blue", "namespace": "platform"},
            {"namespaceSelector": named("red"), "name": "late"},
            {"namespaceSelector": other_than("system"), "name": "rest"},
        ]));
        assert_eq!(problems, []);
        assert_eq!(accounts.of(namespace), expected);
    }

    #[test]
    fn without_a_selector_every_namespace_is_meant_and_without_a_setting_none() {
        let (all, _) = accounts(json!([{"name": "deployer"}]));
        assert_eq!(all.of("shop"), Account::Named(NamespacedName::new("shop", "deployer")));
        assert_eq!(Accounts::default().of("shop"), Account::Default);
    }

    /// A user who may label a namespace could choose its account; and where such a setting applied,
    /// no other account replaces it, as that may have more rights.
    #[rstest]
    #[case::labels(json!({"matchLabels": {"tier": "dev"}}), "matchLabels[tier]")]
    #[case::beside_the_name(
        json!({"matchLabels": {"kubernetes.io/metadata.name": "a", "tier": "dev"}}), "matchLabels[tier]")]
    #[case::expressions(
        json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), "matchExpressions[0].key")]
    fn no_label_that_others_set_chooses_an_account(#[case] selector: Value, #[case] field: &str) {
        let (accounts, problems) = accounts(json!([
            {"namespaceSelector": named("first"), "name": "first"},
            {"namespaceSelector": selector, "name": "deployer"},
            {"name": "rest"},
        ]));
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.clone()).collect();
        assert_eq!(fields, [format!("spec.instances.serviceAccounts[1].namespaceSelector.{field}")]);
        assert_eq!(accounts.of("first"), Account::Named(NamespacedName::new("first", "first")));
        for namespace in ["shop", "dev"] {
            let Account::Invalid(why) = accounts.of(namespace) else { panic!("{namespace}") };
            assert!(why.contains("select by kubernetes.io/metadata.name"), "{why}");
        }
    }

    #[rstest]
    #[case::no_name(json!({"name": ""}), "spec.instances.serviceAccounts[0].name")]
    #[case::a_user(json!({"name": "system:admin"}), "spec.instances.serviceAccounts[0].name")]
    #[case::namespace(json!({"name": "a", "namespace": "A"}), "spec.instances.serviceAccounts[0].namespace")]
    #[case::selector(
        json!({"name": "a", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        "spec.instances.serviceAccounts[0].namespaceSelector.matchExpressions[0].values"
    )]
    fn what_is_wrong_is_named_and_nothing_is_done_there(#[case] setting: Value, #[case] field: &str) {
        let (accounts, problems) = accounts(json!([setting]));
        assert_eq!(problems.iter().map(|p| p.field.as_str()).collect::<Vec<_>>(), [field]);
        let Account::Invalid(why) = accounts.of("shop") else { panic!("{accounts:?}") };
        assert!(why.starts_with(field), "{why}");
    }
}
