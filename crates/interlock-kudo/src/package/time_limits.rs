//! Settings of a run: deadlines of steps, how long a cleanup may keep failing, and whether objects are pruned.
//!
//! They are annotations, as stock CRDs prune unknown fields: those of the Instance, else those of
//! its OperatorVersion. KUDO has none of them.

use std::collections::BTreeMap;
use std::str::FromStr;

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use thiserror::Error;

/// Default time that the cleanup of a deleted Instance may keep failing.
const CLEANUP_PATIENCE: SignedDuration = SignedDuration::from_mins(10);
/// Default deadline of a step of that cleanup: a deletion must end, also where a step waits in
/// vain.
const CLEANUP_STEP: SignedDuration = SignedDuration::from_hours(1);

/// An annotation that is not a valid time limit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LimitError {
    /// Not a duration.
    #[error("{0:?} is no time; write one such as 90s, 10m or 1h30m")]
    Time(String),
    /// Not a step.
    #[error("{0:?} is no step; write PLAN.PHASE.STEP=TIME, such as deploy.main.app=10m")]
    Step(String),
    /// Neither of two words.
    #[error("{0:?} is neither \"true\" nor \"false\"")]
    Switch(String),
    /// A second limit for the same step.
    #[error("{0:?} comes after another time for the same; leave one of them")]
    Twice(String),
}

fn time(text: &str) -> Result<SignedDuration, LimitError> {
    let time: Option<SignedDuration> = text.trim().parse().ok();
    time.filter(|time| !time.is_negative()).ok_or_else(|| LimitError::Time(text.trim().to_owned()))
}

fn switch(text: &str) -> Result<bool, LimitError> {
    text.trim().parse().map_err(|_| LimitError::Switch(text.trim().to_owned()))
}

/// Deadlines of steps, as `10m` for every step, `PLAN.PHASE.STEP=10m` for one, or several of
/// these between commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    every: Option<SignedDuration>,
    steps: BTreeMap<String, SignedDuration>,
}

impl FromStr for Deadlines {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut deadlines = Self::default();
        for part in text.split(',') {
            let before = match part.split_once('=') {
                None => deadlines.every.replace(time(part)?),
                Some((step, text)) => {
                    let names: Vec<&str> = step.trim().split('.').collect();
                    if names.len() != 3 || names.iter().any(|name| name.is_empty()) {
                        return Err(LimitError::Step(step.trim().to_owned()));
                    }
                    deadlines.steps.insert(step.trim().to_owned(), time(text)?)
                }
            };
            if before.is_some() {
                return Err(LimitError::Twice(part.trim().to_owned()));
            }
        }
        Ok(deadlines)
    }
}

impl Deadlines {
    /// The deadline of a step, `PLAN.PHASE.STEP`.
    pub fn of(&self, step: &str) -> Option<SignedDuration> {
        self.steps.get(step).copied().or(self.every)
    }
}

/// The annotations of an object with time limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    step_deadline: Option<Box<str>>,
    cleanup_patience: Option<Box<str>>,
    prune: Option<Box<str>>,
}

impl Words {
    /// Reads those of an Instance or an OperatorVersion.
    pub fn of(object: &Value) -> Self {
        let text = |key| annotation(object, key).map(Box::from);
        Self {
            step_deadline: text(meta::STEP_DEADLINE),
            cleanup_patience: text(meta::CLEANUP_PATIENCE),
            prune: text(meta::PRUNE),
        }
    }
}

/// Validates the value of an annotation; `None` also for one that is not about a limit.
pub fn problem(key: &str, text: &str) -> Option<LimitError> {
    match key {
        meta::STEP_DEADLINE => Deadlines::from_str(text).err(),
        meta::CLEANUP_PATIENCE => time(text).err(),
        _ => None,
    }
}

/// The cleanup of a deleted Instance, as far as its limits depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// When the Instance was deleted.
    pub since: Timestamp,
    /// Whether the run was failing at the previous reconcile.
    pub failing: bool,
}

/// How long a cleanup may keep failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupDeadline {
    /// Time after the deletion.
    pub length: SignedDuration,
    /// The end of that time.
    pub until: Timestamp,
    /// Whether the run was failing at the previous reconcile: a first error may be transient.
    pub failing: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLimits {
    /// The current time.
    pub now: Timestamp,
    /// Deadlines of steps, from when they began.
    pub steps: Deadlines,
    /// Limit of the cleanup of a deleted Instance.
    pub patience: Option<CleanupDeadline>,
    /// Whether objects go that the plan no longer renders.
    pub prunes: bool,
    /// Invalid annotations, which are ignored, for people.
    pub ignored: Vec<String>,
}

impl RunLimits {
    /// The limits of Instance and package, with defaults for the cleanup of a deleted Instance.
    pub fn new(instance: &Words, package: &Words, cleanup: Option<Cleanup>, now: Timestamp) -> Self {
        let mut ignored = Vec::new();
        let words = [instance, package];
        let steps: Option<Deadlines> =
            first(words.map(|w| w.step_deadline.as_deref()), meta::STEP_DEADLINE, str::parse, &mut ignored);
        let mut steps = steps.unwrap_or_default();
        let patience = cleanup.map(|Cleanup { since, failing }| {
            let texts = words.map(|w| w.cleanup_patience.as_deref());
            let length = first(texts, meta::CLEANUP_PATIENCE, time, &mut ignored).unwrap_or(CLEANUP_PATIENCE);
            steps.every.get_or_insert(CLEANUP_STEP);
            CleanupDeadline { length, until: after(since, length), failing }
        });
        let prunes = first(words.map(|w| w.prune.as_deref()), meta::PRUNE, switch, &mut ignored);
        Self { now, steps, patience, prunes: prunes.unwrap_or_default(), ignored }
    }
}

/// The first valid annotation.
fn first<T>(
    texts: [Option<&str>; 2],
    key: &str,
    read: impl Fn(&str) -> Result<T, LimitError>,
    ignored: &mut Vec<String>,
) -> Option<T> {
    texts.into_iter().flatten().find_map(|text| {
        read(text).map_err(|error| ignored.push(format!("annotation {key} is ignored: {error}"))).ok()
    })
}

/// The moment after a duration, at most the last one that exists.
pub fn after(moment: Timestamp, length: SignedDuration) -> Timestamp {
    moment.checked_add(length).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::every("10m", "deploy.a.b", Some(600))]
    #[case::go_writes_it_so("1h30m0s", "deploy.a.b", Some(5400))]
    #[case::at_once("0s", "deploy.a.b", Some(0))]
    #[case::one("deploy.a.b=90s", "deploy.a.b", Some(90))]
    #[case::another("deploy.a.b=90s", "deploy.a.c", None)]
    #[case::one_and_the_rest(" deploy.a.b = 90s, 5m", "deploy.a.b", Some(90))]
    #[case::the_rest("deploy.a.b=90s,5m", "update.a.b", Some(300))]
    fn deadlines(#[case] text: &str, #[case] step: &str, #[case] seconds: Option<i64>) {
        let deadlines: Deadlines = text.parse().unwrap();
        assert_eq!(deadlines.of(step), seconds.map(SignedDuration::from_secs));
    }

    #[rstest]
    #[case::empty(meta::STEP_DEADLINE, "", "\"\" is no time")]
    #[case::a_number(meta::STEP_DEADLINE, "10", "\"10\" is no time")]
    #[case::negative(meta::STEP_DEADLINE, "-10m", "\"-10m\" is no time")]
    #[case::a_phase(meta::STEP_DEADLINE, "deploy.a=10m", "\"deploy.a\" is no step")]
    #[case::nameless(meta::STEP_DEADLINE, "deploy..b=10m", "\"deploy..b\" is no step")]
    #[case::no_time(meta::STEP_DEADLINE, "deploy.a.b=soon", "\"soon\" is no time")]
    #[case::twice(meta::STEP_DEADLINE, "1m,2m", "\"2m\" comes after another")]
    #[case::twice_for_a_step(meta::STEP_DEADLINE, "a.b.c=1m,a.b.c=2m", "\"a.b.c=2m\" comes after another")]
    #[case::patience(meta::CLEANUP_PATIENCE, "a.b.c=1m", "\"a.b.c=1m\" is no time")]
    fn what_cannot_be_read(#[case] key: &str, #[case] text: &str, #[case] said: &str) {
        let error = problem(key, text).unwrap().to_string();
        assert!(error.starts_with(said), "{error}");
    }

    fn words(step: Option<&str>, patience: Option<&str>) -> Words {
        Words::of(&json!({"metadata": {"annotations": {
            "interlock.dev/step-deadline": step, "interlock.dev/cleanup-patience": patience,
        }}}))
    }

    #[rstest]
    #[case::nobody(words(None, None), words(None, None), None)]
    #[case::the_package(words(None, None), words(Some("2m"), None), Some(120))]
    #[case::the_instance(words(Some("1m"), None), words(Some("2m"), None), Some(60))]
    #[case::not_both(words(Some("deploy.x.y=1m"), None), words(Some("2m"), None), None)]
    #[case::unreadable(words(Some("soon"), None), words(Some("2m"), None), Some(120))]
    fn whose_word_holds(#[case] instance: Words, #[case] package: Words, #[case] seconds: Option<i64>) {
        let limits = RunLimits::new(&instance, &package, None, Timestamp::UNIX_EPOCH);
        assert_eq!(limits.steps.of("deploy.a.b"), seconds.map(SignedDuration::from_secs));
        assert_eq!(limits.patience, None);
        assert_eq!(limits.ignored.is_empty(), instance != words(Some("soon"), None));
    }

    #[rstest]
    #[case::nobody(None, None, false)]
    #[case::the_package(None, Some("true"), true)]
    #[case::the_instance(Some("false"), Some("true"), false)]
    #[case::unreadable(Some("yes"), Some("true"), true)]
    fn objects_are_pruned_on_request(
        #[case] instance: Option<&str>,
        #[case] package: Option<&str>,
        #[case] expected: bool,
    ) {
        let words = |prune: Option<&str>| {
            Words::of(&json!({"metadata": {"annotations": {"interlock.dev/prune": prune}}}))
        };
        let limits = RunLimits::new(&words(instance), &words(package), None, Timestamp::UNIX_EPOCH);
        assert_eq!(limits.prunes, expected);
        let ignored = "annotation interlock.dev/prune is ignored: \"yes\" is neither \"true\" nor \"false\"";
        assert_eq!(limits.ignored, if instance == Some("yes") { vec![ignored] } else { vec![] });
    }

    #[rstest]
    #[case::nobody(words(None, None), 600, 3600)]
    #[case::said(words(Some("2h"), Some("0s")), 0, 7200)]
    #[case::for_another_step(words(Some("cleanup.x.y=2h"), Some("1m")), 60, 3600)]
    fn a_cleanup_is_always_limited(#[case] instance: Words, #[case] patience: i64, #[case] step: i64) {
        let since = Timestamp::from_second(2000).unwrap();
        let cleanup = Cleanup { since, failing: true };
        let limits = RunLimits::new(&instance, &Words::default(), Some(cleanup), since);
        assert_eq!(limits.patience.unwrap().until, Timestamp::from_second(2000 + patience).unwrap());
        assert_eq!(limits.steps.of("cleanup.a.b"), Some(SignedDuration::from_secs(step)));
    }
}
