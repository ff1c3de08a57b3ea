//! How much of an Instance the record of its plans takes: `status.planStatus`, of a package of any size.

use crate::api::OperatorVersionSpec;

/// Steps of all plans of a package: each pass over a plan looks at them.
pub const MAX_STEPS: usize = 5_000;
/// Tasks that the steps of all plans name.
pub const MAX_REFERENCES: usize = 50_000;
/// Bytes of the record of all plans, as JSON.
pub const MAX_BYTES: usize = 512 << 10;

/// Bytes of the braces, statuses, uids and times of an entry, beside its names.
const PLAN: usize = 180;
const PHASE: usize = 50;
const STEP: usize = 35;

/// The size of a package's plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanRecord {
    pub steps: usize,
    /// Tasks that they name.
    pub references: usize,
    /// Bytes of their record once all of them have run.
    pub bytes: usize,
}

impl PlanRecord {
    /// Of a package.
    pub fn of(spec: &OperatorVersionSpec) -> Self {
        let mut record = Self::default();
        for (name, plan) in spec.plans.iter().flatten() {
            record.bytes += PLAN + 2 * quoted(name);
            for phase in plan.phases.iter().flatten() {
                record.bytes += PHASE + phase.name.as_deref().map_or(0, quoted);
                for step in phase.steps.iter().flatten() {
                    record.bytes += STEP + step.name.as_deref().map_or(0, quoted);
                    record.steps += 1;
                    record.references += step.tasks.iter().flatten().count();
                }
            }
        }
        record
    }

    /// What is too much, with the limit.
    pub fn excess(self) -> Option<String> {
        let over = |found: usize, most: usize, what: &str| {
            (found > most).then(|| format!("the plans have {found} {what}, of at most {most}"))
        };
        over(self.steps, MAX_STEPS, "steps")
            .or_else(|| over(self.references, MAX_REFERENCES, "tasks in their steps"))
            .or_else(|| over(self.bytes, MAX_BYTES, "bytes in the status of an Instance"))
    }
}

/// Bytes of a text in JSON.
fn quoted(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    2 + text.bytes().map(escaped).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use interlock_core::api::object::NamespacedName;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::{ExecutionStatus, PlanStatus};
    use crate::engine::state;
    use crate::package::Package;

    fn spec(steps: usize, name: &str) -> OperatorVersionSpec {
        let step = |n: usize| json!({"name": format!("{name}{n}"), "tasks": ["a", "b"]});
        let steps: Vec<Value> = (0..steps).map(step).collect();
        let plan = json!({"phases": [{"name": "p\n\u{1}", "steps": steps}]});
        serde_json::from_value(json!({"plans": {"deploy": plan, "a \"plan\"": plan}})).unwrap()
    }

    /// It is never smaller than what is written.
    #[test]
    fn the_record_holds_what_a_status_says() {
        let spec = spec(100, "step-\"");
        let record = PlanRecord::of(&spec);
        assert_eq!((record.steps, record.references), (200, 400));
        let package = Package::new(NamespacedName::new("ns", "v"), spec);
        let mut all = state::all_plans(&BTreeMap::new(), &package);
        let fill = |entry: &mut PlanStatus| {
            entry.uid = "11111111-2222-4333-8444-555555555555".to_owned();
            entry.status = ExecutionStatus::InProgress;
            let time = serde_json::from_value(json!("2026-01-02T03:10:00Z")).unwrap();
            entry.last_updated_timestamp = Some(time);
            for phase in entry.phases.iter_mut().flatten() {
                phase.status = ExecutionStatus::InProgress;
                phase.steps.iter_mut().flatten().for_each(|step| step.status = ExecutionStatus::InProgress);
            }
        };
        all.values_mut().for_each(fill);
        let written = json!(all).to_string().len();
        assert!(written <= record.bytes && record.bytes < written * 5 / 4, "{written}, {record:?}");
    }

    #[test]
    fn what_is_too_much_is_named() {
        assert_eq!(PlanRecord::of(&spec(2_500, "s")).excess(), None);
        let said = PlanRecord::of(&spec(2_501, "s")).excess().unwrap();
        assert_eq!(said, "the plans have 5002 steps, of at most 5000");
        let said = PlanRecord::of(&spec(2_000, &"s".repeat(200))).excess().unwrap();
        assert!(said.contains("bytes in the status of an Instance"), "{said}");
    }
}
