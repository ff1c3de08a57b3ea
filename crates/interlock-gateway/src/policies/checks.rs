//! What of the `spec` of a RateLimitPolicy can never act, or acts otherwise than its author may expect.

use std::collections::BTreeMap;

use gateway_policies::Violation;
use interlock_core::api::rule::Rule;
use serde_json::{Map, Value};

use super::rules::ids::{POLICY_COUNTER, POLICY_WINDOW};

/// Findings of one policy.
pub(super) const MOST: usize = 64;

/// What can never act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NeverActs {
    pub(super) rule: Rule,
    /// The limit that it is of, if it is of one.
    pub(super) limit: String,
    pub(super) sentence: String,
    pub(super) field: String,
    pub(super) value: String,
    pub(super) remedy: String,
}

/// What was found in a `spec`.
#[derive(Debug, Default)]
pub(super) struct SpecFindings {
    pub(super) refused: Vec<NeverActs>,
    pub(super) warned: Vec<Violation>,
}

impl SpecFindings {
    fn refuse(&mut self, rule: Rule, limit: &str, field: String, value: &str, words: (&str, &str)) {
        if self.refused.len() < MOST {
            let [limit, value, sentence, remedy] = [limit, value, words.0, words.1].map(str::to_owned);
            self.refused.push(NeverActs { rule, limit, sentence, field, value, remedy });
        }
    }

    fn warn(&mut self, field: String, message: String) {
        if self.warned.len() < MOST {
            self.warned.push(Violation::new(field, message));
        }
    }

    /// All of them, where nothing is refused.
    pub(super) fn all(self) -> Vec<Violation> {
        let refused = self
            .refused
            .into_iter()
            .map(|own| Violation::new(own.field, format!("{}: {}; {}", own.value, own.sentence, own.remedy)));
        refused.chain(self.warned).collect()
    }
}

/// Checks the limits of a RateLimitPolicy, in whatever block they stand.
pub(super) fn limits(spec: &Map<String, Value>) -> SpecFindings {
    let mut found = SpecFindings::default();
    let block = |name: &str| spec.get(name).and_then(Value::as_object);
    let blocks =
        [("spec", Some(spec)), ("spec.defaults", block("defaults")), ("spec.overrides", block("overrides"))];
    for (path, block) in blocks {
        let limits = block.and_then(|block| block.get("limits")).and_then(Value::as_object);
        for (name, limit) in limits.into_iter().flatten() {
            let field = format!("{path}.limits.{name}");
            rates((name, &field), limit, &mut found);
            counters((name, &field), limit, &mut found);
        }
    }
    found
}

/// Whether no rate of a limit can act.
pub(super) fn never_counts(limit: &Value) -> bool {
    let is_short = |rate: &Value| rate["window"].as_str().and_then(milliseconds).is_some_and(is_too_short);
    limit["rates"].as_array().is_some_and(|rates| !rates.is_empty() && rates.iter().all(is_short))
}

fn is_too_short(window: u64) -> bool {
    window < 1000
}

fn rates((name, field): (&str, &str), limit: &Value, found: &mut SpecFindings) {
    let mut windows: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, rate) in limit["rates"].as_array().into_iter().flatten().enumerate() {
        let field = format!("{field}.rates[{index}]");
        match rate["limit"].as_i64() {
            Some(0) => found.warn(format!("{field}.limit"), "0 refuses every request".to_owned()),
            Some(limit @ ..0) => {
                found.warn(format!("{field}.limit"), format!("{limit} refuses every request, as 0 does"));
            }
            _ => {}
        }
        let Some(text) = rate["window"].as_str() else { continue };
        let Some(window) = milliseconds(text) else { continue };
        if is_too_short(window) {
            let sentence = "a window is shorter than a second, which limits are counted by";
            let remedy = "write a window of 1s or more, with a limit for it";
            found.refuse(POLICY_WINDOW, name, format!("{field}.window"), text, (sentence, remedy));
        } else if let Some(other) = windows.get(&(window / 1000)) {
            let message =
                format!("{text} is the window of rates[{other}] too; the stricter of the two counts");
            found.warn(format!("{field}.window"), message);
        } else {
            windows.insert(window / 1000, index);
        }
        if let Some(counted) = counted_as(text) {
            found.warn(
                format!("{field}.window"),
                format!("{text} counts as {counted}, as windows have whole seconds"),
            );
        }
    }
}

/// The window that a duration counts as, where it is another: what is below a second is cut off.
pub fn counted_as(window: &str) -> Option<String> {
    let own = milliseconds(window).filter(|own| !is_too_short(*own) && own % 1000 != 0)?;
    Some(format!("{}s", own / 1000))
}

/// A duration such as `1m30s`, as its definition has it; none where it is another.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit_end =
            rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let unit = match &rest[digits..unit_end] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        sum = sum.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[unit_end..];
    }
    (!text.is_empty()).then_some(sum)
}

/// Identifiers of limits, and keys of a descriptor that the proxy sets: a counter of that name is a second one.
const RESERVED: [&str; 2] = ["ratelimit.domain", "ratelimit.hits_addend"];
const RESERVED_PREFIXES: [&str; 2] = ["limit.", "tokenlimit."];

fn counters((limit_name, field): (&str, &str), limit: &Value, found: &mut SpecFindings) {
    for (index, counter) in limit["counters"].as_array().into_iter().flatten().enumerate() {
        let Some(expression) = counter["expression"].as_str() else { continue };
        let name = expression.trim();
        if RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            let sentence = "a counter has a name that the limits themselves have, and no gateway could be configured \
                            with both";
            let remedy = "count by an attribute of the request, such as request.host";
            let field = format!("{field}.counters[{index}].expression");
            found.refuse(POLICY_COUNTER, limit_name, field, name, (sentence, remedy));
        }
    }
}
