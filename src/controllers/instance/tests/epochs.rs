//! The leader epoch ends during a reconcile: another process may lead from then on.

use super::api::Api;
use super::process::SharedParts;
use super::users::Webhooks;
use crate::runtime::controller::Action;

#[test]
fn a_write_that_waits_for_its_turn_is_not_sent_after_the_epoch() {
    let parts = SharedParts::new(None);
    // Its first write is one of the Instance.
    let created = Webhooks::new(None).create(false);
    let (api, action) = parts.outlasted(&created, Api::new(created.clone(), None));
    assert_eq!(api.writes, 0, "{:#?}", api.log);
    assert_eq!(action, Action::AwaitChange, "the next leader reconciles it");
}
