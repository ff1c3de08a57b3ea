//! Whose rights packages act with: `spec.instances.serviceAccounts` made ready for a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Problem;
use super::existing::ExistingObjectsSetting;
use super::selector::{Labels, NamespaceSelector};
use crate::api::object::NamespacedName;

/// How Instances are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstancesSetting {
    /// The service accounts that packages act as, by namespace of the Instance. The first setting
    /// that selects a namespace holds; where none does, it is the one that the process was started
    /// with, `interlock-packages` in its own namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub service_accounts: Vec<ServiceAccountSetting>,
    /// What becomes of an object that a package names, that exists and that no Instance made, by
    /// namespace of the Instance. The first setting that selects a namespace holds; where none
    /// does, the step fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub existing_objects: Vec<ExistingObjectsSetting>,
}

/// The service account that packages act as in some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountSetting {
    /// The namespaces of Instances; absent means all.
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

/// What the name of a service account and of a namespace looks like.
const NAME: &str = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

/// Which service account packages act as where; the default is the one of the process everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts(Vec<ServiceAccountSetting>);

/// What the settings say of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// The one that the process was started with.
    Default,
    /// This one.
    Named(NamespacedName),
    /// Nobody can tell before the labels of the namespace are known.
    Unknown,
}

impl Accounts {
    /// Reads `spec.instances.serviceAccounts`. A setting that cannot be honoured selects nothing
    /// and is reported; the others hold.
    pub fn read(settings: &[ServiceAccountSetting]) -> (Self, Vec<Problem>) {
        let (mut accounts, mut problems) = (Vec::new(), Vec::new());
        for (i, setting) in settings.iter().enumerate() {
            match setting.check() {
                Ok(()) => accounts.push(setting.clone()),
                Err((field, problem)) => problems
                    .push(Problem { field: format!("spec.instances.serviceAccounts[{i}].{field}"), problem }),
            }
        }
        (Self(accounts), problems)
    }

    /// The service account for an Instance's namespace with these labels.
    pub fn of(&self, namespace: &str, labels: Option<&Labels>) -> Account {
        let found = match labels {
            _ if self.0.is_empty() => None,
            None => return Account::Unknown,
            Some(labels) => self.0.iter().find(|setting| setting.selects(labels)),
        };
        found.map_or(Account::Default, |setting| {
            let namespace = setting.namespace.as_deref().unwrap_or(namespace);
            Account::Named(NamespacedName::new(namespace, setting.name.as_str()))
        })
    }
}

impl ServiceAccountSetting {
    fn selects(&self, labels: &Labels) -> bool {
        self.namespace_selector.as_ref().is_none_or(|selector| selector.selects(labels))
    }

    /// What the schema refuses too, but a schema of another version may not.
    fn check(&self) -> Result<(), (String, String)> {
        if let Some(Err(wrong)) = self.namespace_selector.as_ref().map(NamespaceSelector::check) {
            return Err((format!("namespaceSelector.{}", wrong.field), wrong.problem));
        }
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

    fn accounts(value: Value) -> (Accounts, Vec<Problem>) {
        let settings: Vec<ServiceAccountSetting> = serde_json::from_value(value).unwrap();
        Accounts::read(&settings)
    }

    fn team(team: &str) -> Value {
        json!({"matchLabels": {"team": team}})
    }

    #[rstest]
    #[case::in_its_own_namespace("red", Account::Named(NamespacedName::new("shop", "deployer")))]
    #[case::in_another_namespace("blue", Account::Named(NamespacedName::new("platform", "blue")))]
    #[case::of_nobody("green", Account::Default)]
    fn the_first_setting_that_selects_holds(#[case] label: &str, #[case] expected: Account) {
        let (accounts, problems) = accounts(json!([
            {"namespaceSelector": team("red"), "name": "deployer"},
            {"namespaceSelector": team("blue"), "name": "blue", "namespace": "platform"},
            {"namespaceSelector": team("red"), "name": "late"},
        ]));
        assert_eq!(problems, []);
        let labels = Labels::from([("team".to_owned(), label.to_owned())]);
        assert_eq!(accounts.of("shop", Some(&labels)), expected);
        assert_eq!(accounts.of("shop", None), Account::Unknown, "no rights are guessed");
    }

    #[test]
    fn without_a_selector_every_namespace_is_meant_and_without_a_setting_none() {
        let (all, _) = accounts(json!([{"name": "deployer"}]));
        let named = Account::Named(NamespacedName::new("shop", "deployer"));
        assert_eq!(all.of("shop", Some(&Labels::new())), named);
        assert_eq!(Accounts::default().of("shop", None), Account::Default);
    }

    #[rstest]
    #[case::no_name(json!({"name": ""}), "spec.instances.serviceAccounts[0].name")]
    #[case::a_user(json!({"name": "system:admin"}), "spec.instances.serviceAccounts[0].name")]
    #[case::namespace(json!({"name": "a", "namespace": "A"}), "spec.instances.serviceAccounts[0].namespace")]
    #[case::selector(
        json!({"name": "a", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        "spec.instances.serviceAccounts[0].namespaceSelector.matchExpressions[0].values"
    )]
    fn what_is_wrong_is_named_and_selects_nothing(#[case] setting: Value, #[case] field: &str) {
        let (accounts, problems) = accounts(json!([setting]));
        assert_eq!(problems.iter().map(|p| p.field.as_str()).collect::<Vec<_>>(), [field]);
        assert_eq!(accounts, Accounts::default());
    }
}
