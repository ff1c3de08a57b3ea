//! Which objections hold: the settings of a namespace let some pass, with or without a word.

use std::cell::RefCell;

use super::objection::Objection;
use crate::api::interlock::{Action, Actions};

/// Hears objections, and keeps those that pass and are to be told.
#[derive(Debug, Default)]
pub struct Bench {
    actions: Actions,
    told: RefCell<Vec<Objection>>,
}

impl Bench {
    /// With the settings of a namespace.
    pub fn new(actions: Actions) -> Self {
        Self { actions, told: RefCell::default() }
    }

    /// Every objection holds.
    pub fn strict() -> Self {
        Self::default()
    }

    /// The settings.
    pub fn actions(&self) -> Actions {
        self.actions
    }

    /// Hears an objection: an error where it holds.
    pub fn object(&self, objection: Objection) -> Result<(), Objection> {
        match self.actions.of(objection.rule) {
            Action::Deny => Err(objection),
            Action::Warn => {
                let mut told = self.told.borrow_mut();
                if told.iter().all(|other| other.rule != objection.rule) {
                    told.push(objection);
                }
                Ok(())
            }
            Action::Off => Ok(()),
        }
    }

    /// What passed and is to be told, the first of each rule.
    pub fn told(self) -> Vec<Objection> {
        self.told.into_inner()
    }
}
