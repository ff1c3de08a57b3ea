//! The judge of the doors: the pure rules, over what the process knows of the cluster.

use std::sync::{Arc, OnceLock};

use super::doors::Judge;
use crate::admission::view::View;
use crate::admission::{self, Answer, BadReview, Config, Door, Patience};

/// The rules, a view and a configuration.
pub struct Admission {
    /// Cross-object facts.
    pub view: Arc<dyn View + Send + Sync>,
    /// Set once the process knows its own name; until then a gate keeps the doors shut.
    pub config: Arc<OnceLock<Config>>,
}

impl Judge for Admission {
    fn judge(&self, door: Door, body: &[u8], patience: Patience) -> Result<Answer, BadReview> {
        let Some(config) = self.config.get() else {
            return Err(BadReview("Interlock does not know yet who it is; try again".to_owned()));
        };
        admission::answer(door, body, self.view.as_ref(), config, patience)
    }
}
