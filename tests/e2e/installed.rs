//! The process on a cluster, installed as rendered.

use crate::support::Interlock;

/// It becomes ready, its CA bundles are in place, and health is told by name.
#[test]
fn it_gets_ready_and_guards() {
    let (_, interlock) = Interlock::shared();
    let (code, body) = interlock.ops("/readyz?verbose").unwrap();
    assert_eq!(code, 200, "{body}");
    assert_eq!(interlock.ops("/livez").map(|(code, _)| code), Some(200));
    assert_eq!(interlock.ops("/healthz").map(|(code, _)| code), Some(200));
}
