//! The way in for hostile bytes, shared by the fuzz target and the time-bounded run of the tests.

use std::sync::OnceLock;

use interlock::admission::snapshot::Snapshot;
use interlock::admission::{Answer, Config, Door, Freeze, Patience, answer};

/// What the seeds refer to.
const PACKAGE: &str = include_str!("package.json");

fn view() -> &'static Snapshot {
    static VIEW: OnceLock<Snapshot> = OnceLock::new();
    VIEW.get_or_init(|| {
        let mut view = Snapshot::default();
        let package = serde_json::from_str(PACKAGE).expect("the package is JSON");
        view.add(&package, "ns").expect("the package can be read");
        view
    })
}

/// Calls a door with a body. Panics where the process would, and where an answer is none.
pub fn call(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else { return };
    let door = Door::ALL[usize::from(choice & 3) % Door::ALL.len()];
    let freeze = if choice & 4 == 0 { Freeze::Strict } else { Freeze::SamePlan };
    let patience = if choice & 8 == 0 { Patience::Wait } else { Patience::Exhausted };
    let config =
        Config { controller_user: "system:serviceaccount:interlock-system:interlock".to_owned(), freeze };
    if let Ok(Answer::Done(reply)) = answer(door, body, view(), &config, patience) {
        let answer: serde_json::Value = serde_json::from_slice(&reply.body).expect("an answer is JSON");
        assert!(answer["response"]["allowed"].is_boolean(), "an answer says allowed or not");
    }
}
