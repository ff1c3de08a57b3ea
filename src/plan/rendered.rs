//! What the tasks of a run have rendered, kept over the rounds of one pass: the engine is asked
//! again after each look-up and each write, and a task renders the same every time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Objects by phase, step and task. Belongs to one run, on one package and one spec.
#[derive(Debug, Default)]
pub struct Rendered(Mutex<BTreeMap<[String; 3], Arc<[Value]>>>);

impl Rendered {
    /// The objects of a task, made when they are first asked for; a failure is not kept.
    pub fn objects<E>(
        &self,
        place: [&str; 3],
        make: impl FnOnce() -> Result<Vec<Value>, E>,
    ) -> Result<Vec<Value>, E> {
        let place = place.map(str::to_owned);
        if let Some(found) = self.map().get(&place).cloned() {
            return Ok(found.to_vec());
        }
        let made = make()?;
        self.map().insert(place, made.as_slice().into());
        Ok(made)
    }

    fn map(&self) -> std::sync::MutexGuard<'_, BTreeMap<[String; 3], Arc<[Value]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_renders_once_and_a_failure_is_tried_again() {
        let rendered = Rendered::default();
        let place = ["phase", "step", "task"];
        assert_eq!(rendered.objects(place, || Err("no")), Err("no"));
        assert_eq!(rendered.objects(place, || Ok::<_, ()>(vec![json!(1)])), Ok(vec![json!(1)]));
        assert_eq!(rendered.objects(place, || Err("not asked")), Ok(vec![json!(1)]));
        assert_eq!(rendered.objects(["phase", "step", "other"], || Err("no")), Err("no"));
    }
}
