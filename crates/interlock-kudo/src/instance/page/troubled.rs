//! The Instances that need a person, with the reason, since when, and what to do.

use interlock_core::api::display::display;
use interlock_core::api::remedy::Remedy;
use interlock_core::kinds::fact;
use interlock_core::kinds::page::{
    Also, MESSAGE_LIMIT, PageSection, ROWS, TroubleRow, TroubleState, View, WORD_LIMIT, time,
};
use interlock_core::kinds::row::name;
use serde_json::Value;

use super::ranked::Ranked;
use crate::instance::remedy::of_instance;
use crate::instance::trouble::{self, Trouble};

pub(super) fn all(view: &View<'_>, instances: &[Ranked<'_>]) -> PageSection<TroubleRow> {
    let troubled = || instances.iter().filter_map(|ranked| Some((ranked, ranked.trouble?.0)));
    let shown = troubled().take(ROWS).map(|(ranked, state)| instance(view, ranked, state));
    PageSection { total: troubled().count(), shown: shown.collect() }
}

fn instance(view: &View<'_>, Ranked { id, row, .. }: &Ranked<'_>, state: TroubleState) -> TroubleRow {
    let key = name(id);
    let object = (view.whole)(id);
    let found = object.as_deref().map(trouble::of).unwrap_or_default();
    let (first, others) =
        found.split_first().map_or((None, &[][..]), |(first, others)| (Some(first), others));
    let reason = first.map_or_else(|| row.word(fact::WAITS).unwrap_or_default(), |first| first.reason);
    let plan = object.as_deref().and_then(owed).unwrap_or_default();
    let Remedy { next, command } = of_instance(reason, plan, &key);
    let also = others.iter().map(|Trouble { reason, message, .. }| Also {
        reason: display(reason, WORD_LIMIT),
        message: display(message, MESSAGE_LIMIT),
    });
    let since = first.and_then(|first| first.since?.parse().ok());
    TroubleRow {
        kind: "Instance",
        state,
        reason: display(reason, WORD_LIMIT),
        message: first.map(|first| display(first.message, MESSAGE_LIMIT)).unwrap_or_default(),
        since: since.or_else(|| time(row.number(fact::TROUBLED))),
        also: also.collect(),
        next,
        command,
        namespace: key.namespace,
        name: key.name,
    }
}

/// The first plan that the Instance owes.
fn owed(object: &Value) -> Option<&str> {
    object["status"]["lastApplied"]["owed"].as_object()?.keys().next().map(String::as_str)
}
