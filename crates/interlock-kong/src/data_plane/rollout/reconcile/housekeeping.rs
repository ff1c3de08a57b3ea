//! What follows a change of the live spec, once the traffic has followed it: the history records it, and ingress
//! Services under former names are deleted.

use std::sync::Arc;

use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::api::ownership::is_applied;
use interlock_core::effect::Effect;
use interlock_core::reconcile::{Needs, ObjectList, View, both};
use serde_json::Value;

use crate::api::labels;
use crate::data_plane::rollout::history::History;
use crate::data_plane::rollout::history::record;
use crate::data_plane::rollout::history::record::Record;
use crate::data_plane::rollout::view::DataPlaneView;
use crate::data_plane::rollout::wanted;

/// The DataPlane, and what is live.
#[derive(Debug)]
pub struct Housekeeping<'h> {
    /// The DataPlane.
    pub of: &'h DataPlaneView<'h>,
    /// The live spec.
    pub live: &'h Value,
    /// Names of the ingress Services of both sides.
    pub ingress: [String; 2],
}

impl Housekeeping<'_> {
    /// The writes; none where nothing is left to do.
    pub fn writes(&self, view: &View<'_>) -> Result<Vec<Effect>, Needs> {
        let record = Record::of(self.of, self.live);
        if record.is_done(self.of) {
            return Ok(Vec::new());
        }
        let known = match self.is_first(&record, view) {
            true => Ok((&[][..], None)),
            false => both(view.list(&record::list(self.of)), view.get(&record.key)),
        };
        let ((revisions, found), services) = both(known, view.list(&self.services()))?;
        let history = History::of(revisions.iter().map(|revision| &**revision), self.of.uid);
        // Where an object of another has the name of the revision, the history goes without it.
        let found = found.map(|found| &**found);
        let mut effects = record.write(self.of, &history, found, view.now()).unwrap_or_default();
        let done = effects.pop();
        Ok(effects.into_iter().chain(self.former(services)).chain(done).collect())
    }

    /// Whether there is no history to read: a spec that was never changed has none but this record, and where that is
    /// there already its creation tells so.
    fn is_first(&self, record: &Record, view: &View<'_>) -> bool {
        let is_met = view.met_another(&record.key) || view.known(&record.key).is_some();
        self.of.generation == 1 && !is_met
    }

    /// The list of the ingress Services.
    fn services(&self) -> ObjectList {
        let labels = [
            (labels::APP, self.of.name),
            (labels::MANAGED_BY, labels::MANAGED_BY_DATA_PLANE),
            (labels::SERVICE_TYPE, labels::INGRESS),
        ];
        ObjectList {
            gvk: Gvk::new("v1", "Service"),
            namespace: self.of.namespace.to_owned(),
            labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }

    /// Deletes the ingress Services that were applied for this DataPlane under a name that neither side has any more.
    fn former(&self, services: &[Arc<Value>]) -> Vec<Effect> {
        let delete = |service: &Arc<Value>| {
            let name = meta_str(service, "name")?;
            if self.ingress.iter().any(|kept| kept == name) || !is_applied(service) {
                return None;
            }
            wanted::delete(self.of, self.of.key_of("v1", "Service", name), Some(service))
        };
        services.iter().filter_map(delete).collect()
    }
}
