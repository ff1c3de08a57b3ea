//! `interlock plan status --watch`: the plan until it ends.

use std::io::IsTerminal as _;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use interlock_core::api::display::one_line;
use interlock_core::api::meta;
use interlock_kudo::api::Instance;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};

use super::tree;
use super::tree::{PodRow, Pods, StepTimes};
use crate::cli::common::error::{CliError, of_watch};
use crate::cli::common::object_ref::{is_refusal, unwatchable};
use crate::cli::common::output;
use crate::cli::kudo::instance::InstanceRef;
use crate::cli::kudo::wait;
use crate::cli::kudo::wait::{Follower, PlanEnd};

/// Time between two drawings: ages grow by the second.
const TICK: Duration = Duration::from_secs(1);

/// Shows the plan until it ends.
pub(super) async fn run(subject: &InstanceRef) -> Result<(), CliError> {
    let instance = subject.read().await?;
    if !std::io::stdout().is_terminal() {
        return wait::run(subject, Duration::MAX).await;
    }
    let end = draw(subject, instance).await?;
    wait::print_end(subject, &end)
}

async fn draw(subject: &InstanceRef, mut instance: Instance) -> Result<PlanEnd, CliError> {
    let mut instances = pin!(watcher::watch_object(subject.objects.clone(), &subject.name).default_backoff());
    let chosen = watcher::Config::default().labels(&format!("{}={}", meta::INSTANCE, subject.name));
    let pods: Api<Pod> = Api::namespaced(subject.client.clone(), &subject.namespace);
    let mut pods = pin!(watcher::watcher(pods, chosen).default_backoff());
    let mut shown = Shown::default();
    let mut tick = tokio::time::interval(TICK);
    loop {
        let now = Timestamp::now();
        shown.times.observe(&instance, now);
        let end = shown.follower.observe(&instance).1.or_else(|| wait::ended(&instance));
        let lines = tree::lines(&instance, &shown.times, &shown.pods.rows(), now);
        output::print(&shown.frame.redraw(&lines, terminal_size()))?;
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
                    Some(Ok(None)) => return Err(subject.gone()),
                    Some(Err(error)) if is_refusal(&error) => {
                        return Err(unwatchable(subject.kind, &subject.key(), &error));
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
    seen: Writer<Pod>,
    hidden: Option<String>,
}

impl SeenPods {
    fn take(&mut self, event: Option<Result<Event<Pod>, watcher::Error>>) {
        match event {
            Some(Ok(event)) => self.seen.apply_watcher_event(&event),
            Some(Err(error)) if is_refusal(&error) => {
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
            None => Pods::Listed(self.seen.as_reader().state().iter().map(|pod| row(pod)).collect()),
        }
    }
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

/// Size of a terminal whose size is not known.
const USUAL: (usize, usize) = (80, 24);

/// Columns and rows of standard output.
fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL,
    }
}

/// What is on the terminal.
#[derive(Debug, Default)]
struct Frame {
    drawn: usize,
}

impl Frame {
    /// What to write so that these lines stand where the last ones stood. What would wrap or scroll could not
    /// be drawn over: long lines are cut, and so are too many.
    fn redraw(&mut self, lines: &[String], (columns, rows): (usize, usize)) -> String {
        let mut out = if self.drawn > 0 { format!("\u{1b}[{}A", self.drawn) } else { String::new() };
        let fit = rows.saturating_sub(1).max(1);
        let more = lines.len().saturating_sub(fit);
        let kept = if more > 0 { fit - 1 } else { lines.len() };
        let rest = (more > 0).then(|| format!("... {} more lines", lines.len() - kept));
        for line in lines.iter().take(kept).chain(rest.as_ref()) {
            let line = one_line(line);
            out.push_str("\r\u{1b}[2K");
            out.extend(line.chars().take(columns.saturating_sub(1)));
            out.push('\n');
        }
        out.push_str("\u{1b}[J");
        self.drawn = kept + usize::from(rest.is_some());
        out
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
        let names = |pods: &SeenPods| match pods.rows() {
            Pods::Listed(rows) => rows.into_iter().map(|row| row.name).collect::<Vec<_>>(),
            Pods::Hidden(why) => panic!("{why}"),
        };
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

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn lines_are_drawn_over_those_before() {
        let mut frame = Frame::default();
        let first = frame.redraw(&lines(&["one", "two"]), (80, 24));
        assert_eq!(first, "\r\u{1b}[2Kone\n\r\u{1b}[2Ktwo\n\u{1b}[J");
        let second = frame.redraw(&lines(&["three"]), (80, 24));
        assert_eq!(second, "\u{1b}[2A\r\u{1b}[2Kthree\n\u{1b}[J");
        assert!(frame.redraw(&[], (80, 24)).starts_with("\u{1b}[1A"));
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let mut frame = Frame::default();
        let text = frame.redraw(&lines(&["0123456789", "b", "c", "d"]), (6, 4));
        assert_eq!(text, "\r\u{1b}[2K01234\n\r\u{1b}[2Kb\n\r\u{1b}[2K... 2\n\u{1b}[J");
        assert_eq!(frame.drawn, 3);
    }

    #[test]
    fn messages_do_not_steer_the_terminal() {
        let text = Frame::default().redraw(&lines(&["  a\u{1b}[5A\nb"]), (80, 24));
        assert_eq!(text, "\r\u{1b}[2K  a\\u001b[5A b\n\u{1b}[J");
    }
}
