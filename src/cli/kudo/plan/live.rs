//! `interlock plan status --watch`: the plan until it ends.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use interlock_core::api::meta;
use interlock_kudo::api::Instance;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};

use super::frame;
use super::frame::Frame;
use super::instance::InstanceRef;
use super::tree;
use super::tree::{PodRow, Pods, StepTimes};
use super::wait;
use crate::cli::common::error::{CliError, of_watch};
use crate::cli::common::{output, watch};
use crate::cli::kudo::follow::{Follower, PlanEnd};
use crate::cli::kudo::instances;

/// Time between two drawings: ages grow by the second.
const TICK: Duration = Duration::from_secs(1);

/// Shows the plan until it ends.
pub(super) async fn run(subject: &InstanceRef) -> Result<(), CliError> {
    let instance = subject.get().await?;
    if !std::io::stdout().is_terminal() {
        return wait::run(subject, Duration::MAX).await;
    }
    let end = draw(subject, instance).await?;
    wait::print_end(subject, &end)
}

async fn draw(subject: &InstanceRef, mut instance: Instance) -> Result<PlanEnd, CliError> {
    let mut instances =
        pin!(watcher::watch_object(subject.beside::<Instance>(), subject.name()).default_backoff());
    let chosen = watcher::Config::default().labels(&format!("{}={}", meta::INSTANCE, subject.name()));
    let mut pods = pin!(watcher::watcher(subject.beside::<Pod>(), chosen).default_backoff());
    let mut shown = Shown::default();
    let mut tick = tokio::time::interval(TICK);
    loop {
        let now = Timestamp::now();
        shown.times.observe(&instance, now);
        let end = match shown.follower.observe(&instance).1 {
            PlanEnd::No => wait::ended(&instance),
            end => Some(end),
        };
        let lines = tree::lines(&instance, &shown.times, &shown.pods.rows(), now);
        output::print(&shown.frame.redraw(&lines, frame::size()))?;
        if let Some(end) = end {
            return Ok(end);
        }
        // Events of pods are drawn with the next tick: there may be many.
        loop {
            tokio::select! {
                _ = tick.tick() => break,
                event = pods.next(), if shown.pods.hidden.is_none() => shown.pods.take(event),
                event = instances.next() => match event {
                    Some(Ok(Some(seen))) => { instance = seen; break }
                    Some(Ok(None)) => return Err(wait::gone(subject)),
                    Some(Err(error)) if watch::is_refusal(&error) => {
                        return Err(watch::unwatchable(&instances::INSTANCE, &subject.key(), &error));
                    }
                    // The watch starts again by itself.
                    Some(Err(_)) => {}
                    None => return Err(CliError::unreached("the watch has ended")),
                },
            }
        }
    }
}

#[derive(Default)]
struct Shown {
    follower: Follower,
    times: StepTimes,
    pods: SeenPods,
    frame: Frame,
}

/// The pods that the watch has seen.
#[derive(Default)]
struct SeenPods {
    known: BTreeMap<String, PodRow>,
    /// Those of a list that is not complete yet.
    listed: BTreeMap<String, PodRow>,
    hidden: Option<String>,
}

impl SeenPods {
    fn take(&mut self, event: Option<Result<Event<Pod>, watcher::Error>>) {
        match event {
            Some(Ok(Event::Init)) => self.listed.clear(),
            Some(Ok(Event::InitApply(pod))) => add(&mut self.listed, &pod),
            Some(Ok(Event::InitDone)) => self.known = std::mem::take(&mut self.listed),
            Some(Ok(Event::Apply(pod))) => add(&mut self.known, &pod),
            Some(Ok(Event::Delete(pod))) => {
                self.known.remove(pod.metadata.name.as_deref().unwrap_or_default());
            }
            Some(Err(error)) if watch::is_refusal(&error) => {
                self.hidden = Some(of_watch("pods", &error).to_string());
            }
            // The watch starts again by itself.
            Some(Err(_)) => {}
            None => self.hidden = Some("the watch has ended".to_owned()),
        }
    }

    fn rows(&self) -> Pods {
        match &self.hidden {
            Some(why) => Pods::Hidden(why.clone()),
            None => Pods::Listed(self.known.values().cloned().collect()),
        }
    }
}

fn add(pods: &mut BTreeMap<String, PodRow>, pod: &Pod) {
    let row = row(pod);
    pods.insert(row.name.clone(), row);
}

fn row(pod: &Pod) -> PodRow {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let phase = status.and_then(|status| status.phase.clone()).unwrap_or_else(|| "Pending".to_owned());
    let containers = status.and_then(|status| status.container_statuses.as_ref()).into_iter().flatten();
    let mut waiting =
        containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.clone());
    let state = match (&pod.metadata.deletion_timestamp, waiting.next()) {
        (Some(_), _) => "Terminating".to_owned(),
        (None, Some(reason)) => reason,
        (None, None) => phase,
    };
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    PodRow {
        // A pod that has succeeded is as ready as it gets.
        ready: state == "Succeeded" || ready.any(|condition| condition.status == "True"),
        name: pod.metadata.name.clone().unwrap_or_default(),
        state,
        created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, status: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap()
    }

    #[rstest]
    #[case::new(json!({}), "Pending", false)]
    #[case::runs(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}), "Running", true)]
    #[case::unready(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}), "Running", false)]
    #[case::done(json!({"phase": "Succeeded"}), "Succeeded", true)]
    #[case::pulls(
        json!({"phase": "Pending", "containerStatuses": [{"name": "c", "ready": false, "image": "i", "imageID": "",
            "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}),
        "ImagePullBackOff",
        false
    )]
    fn the_state_of_a_pod(#[case] status: Value, #[case] state: &str, #[case] ready: bool) {
        let row = row(&pod("a", status));
        assert_eq!((row.state.as_str(), row.ready), (state, ready));
    }

    #[test]
    fn a_list_replaces_what_was_seen_when_it_is_complete() {
        let names = |pods: &SeenPods| pods.known.keys().cloned().collect::<Vec<_>>();
        let mut pods = SeenPods::default();
        pods.take(Some(Ok(Event::Apply(pod("old", json!({}))))));
        pods.take(Some(Ok(Event::Init)));
        pods.take(Some(Ok(Event::InitApply(pod("new", json!({}))))));
        assert_eq!(names(&pods), ["old"]);
        pods.take(Some(Ok(Event::InitDone)));
        assert_eq!(names(&pods), ["new"]);
        pods.take(Some(Ok(Event::Delete(pod("new", json!({}))))));
        assert_eq!(names(&pods), Vec::<String>::new());
    }
}
