//! Actions of the rules, by group and namespace: `spec.rules`, parsed for decisions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SettingProblem;
use super::selector::{Labels, NamespaceSelector};
use crate::api::rule::{Rule, RuleGroup};

/// Action of a rule on a violation, from the least to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleAction {
    /// It does not evaluate the request.
    Off,
    /// It warns: the request is admitted.
    Warn,
    /// It denies the request.
    #[default]
    Deny,
}

impl RuleAction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deny, Self::Warn, Self::Off];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Off => "Off",
        }
    }

    /// That of a group where nothing is set: who applies from Git applies references before what they name, and most
    /// routes have no authentication.
    fn default_of(group: RuleGroup) -> Self {
        match group {
            RuleGroup::References => Self::Warn,
            RuleGroup::Coverage => Self::Off,
            _ => Self::Deny,
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }
}

/// What the rules of a group do in some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleSetting {
    /// The rules: `freeze`, `parameters`, `plans`, `upgrades`, `versions`, `references`, `flavors`, `policies` or `coverage`. The
    /// groups `lock` and `requests` always deny.
    #[schemars(length(max = 63), extend("x-kubernetes-validations" = group_validations()))]
    pub group: String,
    /// The namespaces; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// `Deny`: refuse. `Warn`: admit with the text of the refusal as a warning, an audit
    /// annotation and a count. `Off`, in quotes: do not evaluate.
    #[schemars(extend("enum" = RuleAction::ALL.map(RuleAction::as_str)))]
    pub action: String,
}

/// For people: the groups that can be set.
fn settable() -> String {
    let ids: Vec<&str> = RuleGroup::ALL.into_iter().filter(|g| g.can_be_set()).map(RuleGroup::id).collect();
    ids.join(", ")
}

/// For people: why a group cannot be set.
fn always_denied(group: RuleGroup) -> String {
    format!("group {} always denies", group.id())
}

fn group_validations() -> Value {
    let fixed = RuleGroup::ALL.into_iter().filter(|g| !g.can_be_set());
    let mut all: Vec<Value> = fixed
        .map(|group| {
            json!({
                "rule": format!("self != '{}'", group.id()),
                "message": format!("{}; the groups that can be set are {}", always_denied(group), settable()),
            })
        })
        .collect();
    let known: Vec<String> = RuleGroup::ALL.into_iter().map(|group| format!("'{}'", group.id())).collect();
    all.push(json!({
        "rule": format!("self in [{}]", known.join(", ")),
        "message": format!("is no group of rules; the groups that can be set are {}", settable()),
    }));
    Value::Array(all)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    group: RuleGroup,
    selector: NamespaceSelector,
    action: RuleAction,
}

/// Actions of the rules, by namespace; by default all of them deny, but those of references, which warn, and of coverage, which are off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Setting>);

impl Rules {
    /// Reads `spec.rules`. Invalid settings are ignored and reported; the others apply.
    pub fn read(settings: &[RuleSetting]) -> (Self, Vec<SettingProblem>) {
        let mut problems = Vec::new();
        let mut read = Vec::new();
        for (i, setting) in settings.iter().enumerate() {
            match setting.read() {
                Ok(setting) => read.push(setting),
                Err((field, problem)) => {
                    problems.push(SettingProblem { field: format!("spec.rules[{i}].{field}"), problem });
                }
            }
        }
        (Self(read), problems)
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The action of a group in every namespace, where it does not depend on their labels.
    pub fn everywhere(&self, group: RuleGroup) -> Option<RuleAction> {
        match self.0.iter().find(|setting| setting.group == group) {
            None => Some(RuleAction::default_of(group)),
            Some(first) => first.selector.is_empty().then_some(first.action),
        }
    }

    /// The actions of the rules in a namespace. The first setting of a group that selects it
    /// applies; without one, the default of the group. No setting selects a namespace whose labels are
    /// unknown, so that a group denies there where any setting says so.
    pub fn within(&self, labels: Option<&Labels>) -> Actions {
        let mut actions = Actions::default();
        let Some(labels) = labels else {
            let denies = |setting: &&Setting| setting.action == RuleAction::Deny;
            self.0.iter().filter(denies).for_each(|setting| actions.set(setting.group, setting.action));
            return actions;
        };
        for setting in self.0.iter().rev().filter(|setting| setting.selector.selects(labels)) {
            actions.set(setting.group, setting.action);
        }
        actions
    }
}

impl RuleSetting {
    fn read(&self) -> Result<Setting, (String, String)> {
        let bad = |field: &str, problem: String| Err((field.to_owned(), problem));
        let group = match RuleGroup::of(&self.group) {
            Some(group) if group.can_be_set() => group,
            Some(group) => return bad("group", format!("{}; remove this setting", always_denied(group))),
            None => {
                return bad(
                    "group",
                    format!("{:?} is no group of rules; write one of {}", self.group, settable()),
                );
            }
        };
        let Some(action) = RuleAction::of(&self.action) else {
            return bad("action", format!("{:?} is no action; write Deny, Warn or Off", self.action));
        };
        let selector = self.namespace_selector.clone().unwrap_or_default();
        if let Err(wrong) = selector.check() {
            return bad(&format!("namespaceSelector.{}", wrong.field), wrong.problem);
        }
        Ok(Setting { group, selector, action })
    }
}

/// Actions of the rules in one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions([RuleAction; RuleGroup::ALL.len()]);

impl Default for Actions {
    fn default() -> Self {
        Self(RuleGroup::ALL.map(RuleAction::default_of))
    }
}

impl Actions {
    /// The action of a rule: that of its group.
    pub fn of(&self, rule: Rule) -> RuleAction {
        self.group(rule.group())
    }

    /// The action of the rules of a group.
    pub fn group(&self, group: RuleGroup) -> RuleAction {
        // The array has an entry for each group.
        self.0.get(group as usize).copied().unwrap_or_default()
    }

    /// The stricter of both, group by group.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        let mut actions = self;
        actions.0.iter_mut().zip(other.0).for_each(|(own, other)| *own = (*own).max(other));
        actions
    }

    /// The same, where the rules of a group deny.
    #[must_use]
    pub fn denying(mut self, group: RuleGroup) -> Self {
        self.set(group, RuleAction::Deny);
        self
    }

    fn set(&mut self, group: RuleGroup, action: RuleAction) {
        if group.can_be_set()
            && let Some(own) = self.0.get_mut(group as usize)
        {
            *own = action;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FINALIZER_KEPT: Rule = Rule::new("finalizer-kept", RuleGroup::Lock, "docs/").waits();
    const PARAMETER_IMMUTABLE: Rule =
        Rule::new("parameter-immutable", RuleGroup::Parameters, "docs/").reads_others();
    const PLAN_CANCEL: Rule = Rule::new("plan-cancel", RuleGroup::Lock, "docs/").waits();
    const PLAN_OVERRIDE: Rule = Rule::new("plan-override", RuleGroup::Lock, "docs/").waits();
    const PLAN_RUNNING: Rule = Rule::new("plan-running", RuleGroup::Freeze, "docs/").waits();
    const PLAN_STATUS: Rule = Rule::new("plan-status", RuleGroup::Lock, "docs/");
    const PLAN_UID: Rule = Rule::new("plan-uid", RuleGroup::Lock, "docs/");
    const STAMP_MISMATCH: Rule = Rule::new("stamp-mismatch", RuleGroup::Lock, "docs/");
    const STATUS_OWNER: Rule = Rule::new("status-owner", RuleGroup::Lock, "docs/");
    const UPGRADE_PATH: Rule = Rule::new("upgrade-path", RuleGroup::Upgrades, "docs/").reads_others();
    const VERSION_MISSING: Rule =
        Rule::new("version-missing", RuleGroup::References, "docs/").waits().reads_others();

    fn rules(value: Value) -> (Rules, Vec<SettingProblem>) {
        let settings: Vec<RuleSetting> = serde_json::from_value(value).unwrap();
        Rules::read(&settings)
    }

    fn labels(tier: &str) -> Labels {
        Labels::from([("tier".to_owned(), tier.to_owned())])
    }

    fn layered() -> Rules {
        let tier = |tier: &str| json!({"matchLabels": {"tier": tier}});
        let (rules, problems) = rules(json!([
            {"group": "freeze", "namespaceSelector": tier("prod"), "action": "Deny"},
            {"group": "freeze", "namespaceSelector": tier("dev"), "action": "Off"},
            {"group": "freeze", "action": "Warn"},
            {"group": "parameters", "namespaceSelector": tier("dev"), "action": "Warn"},
        ]));
        assert_eq!(problems, []);
        rules
    }

    #[rstest]
    #[case::first_that_selects("prod", RuleAction::Deny, RuleAction::Deny)]
    #[case::second("dev", RuleAction::Off, RuleAction::Warn)]
    #[case::without_a_selector("test", RuleAction::Warn, RuleAction::Deny)]
    fn the_first_setting_that_selects_holds(
        #[case] tier: &str,
        #[case] freeze: RuleAction,
        #[case] parameters: RuleAction,
    ) {
        let actions = layered().within(Some(&labels(tier)));
        assert_eq!(actions.of(PLAN_RUNNING), freeze);
        assert_eq!(actions.of(PARAMETER_IMMUTABLE), parameters);
        assert_eq!(actions.of(UPGRADE_PATH), RuleAction::Deny);
    }

    #[test]
    fn an_unknown_namespace_is_denied() {
        assert_eq!(layered().within(None), Actions::default());
        assert_eq!(layered().within(None).of(PLAN_RUNNING), RuleAction::Deny);
        assert_eq!(layered().within(Some(&Labels::new())).of(PLAN_RUNNING), RuleAction::Warn);
    }

    #[test]
    fn a_reference_warns_where_nothing_denies_it() {
        let of = |rules: &Rules| {
            let denies = |labels| rules.within(labels).of(VERSION_MISSING) == RuleAction::Deny;
            (denies(None), denies(Some(&labels("dev"))), denies(Some(&labels("prod"))))
        };
        assert_eq!(of(&Rules::default()), (false, false, false));
        let prod = json!({"matchLabels": {"tier": "prod"}});
        let (rules, _) = rules(json!([{"group": "references", "namespaceSelector": prod, "action": "Deny"}]));
        assert_eq!(of(&rules), (true, false, true));
    }

    #[rstest]
    #[case::unknown(json!({"group": "frost", "action": "Warn"}), "spec.rules[1].group", "freeze, parameters")]
    #[case::fixed(json!({"group": "lock", "action": "Off"}), "spec.rules[1].group", "always denies")]
    #[case::action(json!({"group": "freeze", "action": "Allow"}), "spec.rules[1].action", "Deny, Warn or Off")]
    #[case::selector(
        json!({"group": "freeze", "action": "Off", "namespaceSelector": {
            "matchExpressions": [{"key": "a", "operator": "Like"}],
        }}),
        "spec.rules[1].namespaceSelector.matchExpressions[0].operator",
        "NotIn"
    )]
    fn what_is_wrong_is_reported_and_the_rest_holds(
        #[case] wrong: Value,
        #[case] field: &str,
        #[case] text: &str,
    ) {
        let (rules, problems) = rules(json!([{"group": "upgrades", "action": "Off"}, wrong]));
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].field, field);
        assert!(problems[0].problem.contains(text), "{}", problems[0].problem);
        let actions = rules.within(Some(&Labels::new()));
        assert_eq!(actions.of(UPGRADE_PATH), RuleAction::Off);
        assert!(
            RuleGroup::ALL
                .into_iter()
                .filter(|g| *g != RuleGroup::Upgrades)
                .all(|g| actions.group(g) == RuleAction::default_of(g))
        );
    }

    #[test]
    fn what_keeps_the_books_always_denies() {
        for rule in
            [PLAN_STATUS, STATUS_OWNER, PLAN_UID, FINALIZER_KEPT, STAMP_MISMATCH, PLAN_CANCEL, PLAN_OVERRIDE]
        {
            assert!(!rule.group().can_be_set(), "{}", rule.id());
        }
    }

    #[test]
    fn the_strictest_of_two() {
        let prod = layered().within(Some(&labels("prod")));
        let dev = layered().within(Some(&labels("dev")));
        assert_eq!(dev.strictest(prod).of(PLAN_RUNNING), RuleAction::Deny);
        assert_eq!(prod.strictest(dev).of(PLAN_RUNNING), RuleAction::Deny);
        assert_eq!(dev.strictest(dev), dev);
    }
}
