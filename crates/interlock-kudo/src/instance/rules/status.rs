//! `instances/status`: a forged COMPLETE would unlock, so only the bookkeeping user changes
//! `planStatus`, the records of Interlock beside it, or our conditions.

use std::collections::BTreeMap;

use interlock_core::admission::RuleContext;
use interlock_core::admission::decision::Decision;
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::request::{Operation, Request, unknown};
use interlock_core::admission::review::ReviewObject;
use interlock_core::api::json;
use interlock_core::api::json::Raw;
use interlock_core::api::meta::condition;
use serde::Deserialize;
use serde_json::Value;

use crate::instance::rules::ids::STATUS_OWNER;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owned {
    #[serde(default)]
    plan_status: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    conditions: Option<Vec<Value>>,
    #[serde(default)]
    observed_generation: Option<Value>,
    #[serde(default)]
    last_applied: Option<Value>,
    #[serde(default)]
    progress: Option<Value>,
    #[serde(default)]
    requests: Option<Value>,
}

impl Owned {
    fn read(status: Option<Raw<'_>>) -> Result<Self, serde_json::Error> {
        let status: Option<Self> = status.map_or(Ok(None), |raw| serde_json::from_str(raw.get()))?;
        Ok(status.unwrap_or_default())
    }

    /// Our conditions; those of one type in the order of the list.
    fn ours(&self, type_: &str) -> Vec<&Value> {
        let named = |c: &&Value| c.get("type").and_then(Value::as_str) == Some(type_);
        self.conditions.iter().flatten().filter(named).collect()
    }
}

/// Decides on a write of the status by any user but the bookkeeping user.
pub fn decide(request: &Request<'_>, _: &RuleContext<'_>) -> Decision {
    let Operation::Update(change) = &request.operation else {
        return (*unknown("the status of an Instance can only be updated".to_owned())).into();
    };
    let (new, old) = (text(change.object), text(change.old));
    if new == old {
        return Decision::allow();
    }
    match (Owned::read(new), Owned::read(old)) {
        (Ok(new), Ok(old)) => {
            let fields = differences(&new, &old);
            if fields.is_empty() { Decision::allow() } else { refusal(fields).into() }
        }
        (read, _) => {
            let wrong = if read.is_err() { new } else { old }.map(Raw::get).unwrap_or_default();
            let field = json::misfit::<Option<Owned>>(wrong).map_or_else(
                || ViolationField::new("status", FieldReason::Invalid, "does not fit its schema"),
                |misfit| misfit.field("status"),
            );
            Denial::invalid(STATUS_OWNER, "the status cannot be read", vec![field])
                .next("write it as the schema of instances.kudo.dev says (`kubectl explain instances.kudo.dev.status`)")
                .into()
        }
    }
}

fn text<'a>(object: &ReviewObject<'a>) -> Option<Raw<'a>> {
    object.status
}

fn differences(new: &Owned, old: &Owned) -> Vec<ViolationField> {
    let forbidden = |path: String, detail: &str| ViolationField {
        path,
        reason: FieldReason::Forbidden,
        detail: detail.to_owned(),
    };
    let (before, after) = (old.plan_status.as_ref(), new.plan_status.as_ref());
    let mut fields: Vec<ViolationField> = before
        .into_iter()
        .flatten()
        .map(|(plan, entry)| (plan, Some(entry)))
        .chain(
            after
                .into_iter()
                .flatten()
                .filter(|(plan, _)| !before.is_some_and(|b| b.contains_key(*plan)))
                .map(|(plan, _)| (plan, None)),
        )
        .filter(|(plan, entry)| after.and_then(|a| a.get(*plan)) != *entry)
        .map(|(plan, _)| forbidden(format!("status.planStatus.{plan}"), "records what the controller did"))
        .collect();
    let records = [
        ("observedGeneration", &new.observed_generation, &old.observed_generation),
        ("lastApplied", &new.last_applied, &old.last_applied),
        ("progress", &new.progress, &old.progress),
        ("requests", &new.requests, &old.requests),
    ];
    for (name, _, _) in records.into_iter().filter(|(_, new, old)| new != old) {
        fields.push(forbidden(format!("status.{name}"), "records what the controller did"));
    }
    for type_ in condition::OURS {
        if new.ours(type_) != old.ours(type_) {
            fields.push(forbidden(format!("status.conditions[{type_}]"), "is Interlock's own"));
        }
    }
    fields
}

fn refusal(fields: Vec<ViolationField>) -> Denial {
    Denial::invalid(
        STATUS_OWNER,
        "status.planStatus, its records and Interlock's conditions are written by Interlock only",
        fields,
    )
    .why("a forged COMPLETE would unlock the Instance")
    .next(
        "write conditions of your own type, or leave the status alone (`kubectl explain instances.kudo.dev.status` tells \
         what it holds)",
    )
}
