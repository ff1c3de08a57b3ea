//! Why workloads lack pods. Their controllers report it in Events alone, which are not watched: they are read while a step
//! waits for such a workload, and rarely.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use interlock_core::effect::ApiFailure;
use interlock_core::health::pods;
use kube::Client;
use tokio::time::Instant;

use crate::cluster::path;
use crate::cluster::read::{self, BoundedList};

/// Before the first look: most workloads have their pods by then.
const FIRST: Duration = Duration::from_secs(2);
/// Longest pause between two looks at one workload; each one doubles it.
const LONGEST: Duration = Duration::from_secs(60);
/// Shortest pause on average between looks at workloads of one namespace.
const SHARE: Duration = Duration::from_millis(500);
/// Workloads that are remembered.
const WORKLOADS: usize = 4096;

/// A report of a controller, if it was its last one.
pub type Report = Result<Option<String>, ApiFailure>;

struct Known {
    namespace: String,
    report: Report,
    pause: Duration,
    due: Instant,
}

/// What is known of workloads that lack pods, by uid.
#[derive(Default)]
pub struct PodFailures(Mutex<HashMap<String, Known>>);

impl PodFailures {
    /// What the controller of a workload reports of its pods, and how long that holds.
    pub async fn of(&self, client: &Client, (namespace, uid): (&str, &str)) -> (Report, Duration) {
        let now = Instant::now();
        let pause = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= WORKLOADS {
                all.retain(|_, known| known.due + LONGEST > now);
            }
            let known = all.entry(uid.to_owned()).or_insert_with(|| Known {
                namespace: namespace.to_owned(),
                report: Ok(None),
                pause: FIRST,
                due: now + FIRST,
            });
            if now < known.due {
                return (known.report.clone(), known.due - now);
            }
            let pause = (known.pause * 2).min(LONGEST);
            let others = all.values().filter(|known| known.namespace == namespace).count();
            pause.max(SHARE * u32::try_from(others).unwrap_or(u32::MAX))
        };
        let report = last(client, namespace, uid).await;
        let known =
            Known { namespace: namespace.to_owned(), report: report.clone(), pause, due: now + pause };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.to_owned(), known);
        (report, pause)
    }
}

async fn last(client: &Client, namespace: &str, uid: &str) -> Report {
    let path = path::of("events.k8s.io/v1", Some(namespace), "events", &[])?;
    let events = read::list_by_field(client, &path, &format!("regarding.uid={uid}")).await?;
    Ok(match events {
        BoundedList::Whole(events) => pods::last_report(&events).map(str::to_owned),
        BoundedList::TooLarge => None,
    })
}
