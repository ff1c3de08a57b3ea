//! The judge of the doors: the pure rules, over what the process knows of the cluster.

use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use super::doors::Judge;
use crate::admission::view::{Standing, Users, View};
use crate::admission::{self, Answer, BadReview, Config, Door, Patience};
use crate::api::interlock::Actions;
use crate::api::object::NamespacedName;
use crate::cluster::supervisor::{self as capability, Snapshot};
use crate::plan::package::Package;

/// The rules, a view and a configuration.
pub struct Admission {
    /// Cross-object facts.
    pub view: Arc<dyn View + Send + Sync>,
    /// Set once the process knows its own name; until then a gate keeps the doors shut.
    pub config: Arc<OnceLock<Config>>,
    /// Whether what the view shows can be relied on.
    pub capabilities: watch::Receiver<Arc<Snapshot>>,
}

/// The capability whose kinds admission is about.
const CAPABILITY: &str = "instances";

impl Admission {
    fn standing(&self) -> Standing {
        let snapshot = self.capabilities.borrow();
        match snapshot.get(CAPABILITY).map(|status| &status.answer) {
            // "Not yet" is a closed gate, and does not come here.
            Some(capability::Answer::Judge | capability::Answer::NotYet) | None => Standing::Whole,
            Some(capability::Answer::InObjectOnly(why)) => Standing::ObjectAlone(why.clone()),
            Some(capability::Answer::Allow(why)) => Standing::Nothing(why.clone()),
        }
    }
}

/// A view, and how much it is worth now.
struct Seen<'a> {
    view: &'a dyn View,
    standing: Standing,
}

impl View for Seen<'_> {
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>> {
        self.view.operator_version(key)
    }

    fn users_of(&self, operator_version: &NamespacedName) -> Users {
        self.view.users_of(operator_version)
    }

    fn namespace_terminating(&self, namespace: &str) -> bool {
        self.view.namespace_terminating(namespace)
    }

    fn actions(&self, namespace: &str) -> Actions {
        self.view.actions(namespace)
    }

    fn standing(&self) -> Standing {
        self.standing.clone()
    }
}

impl Judge for Admission {
    fn judge(&self, door: Door, body: &[u8], patience: Patience) -> Result<Answer, BadReview> {
        let Some(config) = self.config.get() else {
            return Err(BadReview("Interlock does not know yet who it is; try again".to_owned()));
        };
        let view = Seen { view: self.view.as_ref(), standing: self.standing() };
        admission::answer(door, body, &view, config, patience)
    }
}
