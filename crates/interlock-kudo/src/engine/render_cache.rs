//! The render cache of one pass: the controller calls the engine again after each lookup and each
//! write, and a task renders the same every time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use go_template::SharedMap;
use interlock_core::api::inventory::ListedObject;
use interlock_core::api::object::weight;
use serde_json::Value;

use crate::package::values::ValueError;

/// Bytes that the tasks of one pass may have rendered before further ones wait for the next: many
/// times the output of a package, and little enough to be copied a few times.
pub const MAX_BYTES: usize = 8 << 20;

/// Values of parameters, by name.
pub type Parameters = SharedMap;

/// What a plan renders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanObjects {
    /// The objects that it applies.
    pub objects: BTreeSet<ListedObject>,
    /// Whether that is all of them: every template did render.
    pub whole: bool,
}

/// Parameters, and objects by phase, step and task. Belongs to one run, on one package and one spec.
#[derive(Debug, Default)]
pub struct Rendered {
    parameters: OnceLock<Result<Parameters, ValueError>>,
    objects: Mutex<BTreeMap<[String; 3], Arc<[Value]>>>,
    bytes: AtomicUsize,
    plan: OnceLock<Arc<PlanObjects>>,
    pipes: OnceLock<Result<SharedMap, String>>,
}

impl Rendered {
    /// The values of parameters, decoded on first use.
    pub fn parameters(
        &self,
        decode: impl FnOnce() -> Result<Parameters, ValueError>,
    ) -> Result<Parameters, ValueError> {
        self.parameters.get_or_init(decode).clone()
    }

    /// `.Pipes` of the templates, gathered on first use.
    pub fn pipes(&self, gather: impl FnOnce() -> Result<SharedMap, String>) -> Result<SharedMap, String> {
        self.pipes.get_or_init(gather).clone()
    }

    /// The objects of a task, rendered on first use; failures are not cached. Renders nothing once
    /// [`MAX_BYTES`] is reached, and returns `full`.
    pub fn objects<E>(
        &self,
        key: [&str; 3],
        render: impl FnOnce() -> Result<Vec<Value>, E>,
        full: impl FnOnce() -> E,
    ) -> Result<Vec<Value>, E> {
        let key = key.map(str::to_owned);
        if let Some(found) = self.map().get(&key).cloned() {
            return Ok(found.to_vec());
        }
        if self.bytes() >= MAX_BYTES {
            return Err(full());
        }
        let objects = render()?;
        self.bytes.fetch_add(objects.iter().map(weight).sum(), Ordering::Relaxed);
        self.map().insert(key, objects.as_slice().into());
        Ok(objects)
    }

    /// The names of all objects of the plan, rendered on first use; a failure is not cached.
    ///
    /// # Errors
    /// Of the rendering.
    pub fn plan_objects<E>(
        &self,
        render: impl FnOnce() -> Result<PlanObjects, E>,
    ) -> Result<Arc<PlanObjects>, E> {
        if let Some(found) = self.plan.get() {
            return Ok(found.clone());
        }
        let objects = Arc::new(render()?);
        Ok(self.plan.get_or_init(|| objects).clone())
    }

    /// Approximate bytes of all objects.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn map(&self) -> std::sync::MutexGuard<'_, BTreeMap<[String; 3], Arc<[Value]>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_renders_once_and_a_failure_is_tried_again() {
        let rendered = Rendered::default();
        let key = ["phase", "step", "task"];
        assert_eq!(rendered.objects(key, || Err("no"), || "full"), Err("no"));
        assert_eq!(rendered.objects(key, || Ok::<_, &str>(vec![json!(1)]), || "full"), Ok(vec![json!(1)]));
        assert_eq!(rendered.objects(key, || Err("rendered again"), || "full"), Ok(vec![json!(1)]));
        assert_eq!(rendered.objects(["phase", "step", "other"], || Err("no"), || "full"), Err("no"));
    }

    #[test]
    fn what_does_not_fit_beside_the_others_waits_for_the_next_pass() {
        let rendered = Rendered::default();
        let large = || Ok::<_, &str>(vec![json!({"data": {"text": "x".repeat(MAX_BYTES / 2)}})]);
        assert!(rendered.objects(["p", "s", "one"], large, || "full").is_ok());
        assert!(rendered.objects(["p", "s", "two"], large, || "full").is_ok());
        assert!((MAX_BYTES..MAX_BYTES + 1000).contains(&rendered.bytes()), "{}", rendered.bytes());
        assert_eq!(rendered.objects(["p", "s", "three"], || Err("rendered"), || "full"), Err("full"));
        assert!(rendered.objects(["p", "s", "one"], || Err("rendered"), || "full").is_ok(), "it is kept");
    }
}
