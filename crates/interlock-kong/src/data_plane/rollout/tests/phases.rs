//! Every row of the transition table.

use jiff::{SignedDuration, Timestamp};
use rstest::rstest;

use crate::data_plane::rollout::phase::{PromotionGate, Recorded, RolloutFacts, RolloutState, page, phase};
use crate::data_plane::rollout::promotion::PromotionRequest;
use crate::data_plane::rollout::report::RolloutPhase;

fn facts() -> RolloutFacts {
    RolloutFacts {
        staged: true,
        template: Ok(()),
        preview: Ok(()),
        answers: Ok(()),
        unasked: String::new(),
        promotion: None,
        automatic: false,
        recorded: None,
        traffic: Ok(()),
        grace_period: SignedDuration::from_secs(30),
        now: at(100),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn recorded(phase: RolloutPhase) -> Option<Recorded> {
    Some(Recorded { phase, since: at(90) })
}

fn closed(why: &str) -> PromotionGate {
    Err(why.to_owned())
}

fn is(phase: RolloutPhase, message: &str) -> RolloutState {
    RolloutState { phase, message: message.to_owned(), until: None }
}

#[rstest]
#[case::template(RolloutFacts { template: closed("t"), preview: closed("p"), ..facts() }, is(RolloutPhase::Failed, "t"))]
#[case::pods(RolloutFacts { preview: closed("p"), answers: closed("a"), ..facts() }, is(RolloutPhase::Staging, "p"))]
#[case::answers(RolloutFacts { answers: closed("a"), ..facts() }, is(RolloutPhase::Asking, "a"))]
#[case::asked_too_early(
    RolloutFacts { preview: closed("p"), promotion: Some(PromotionRequest::True), ..facts() },
    is(RolloutPhase::Staging, "p")
)]
#[case::waits(facts(), is(RolloutPhase::AwaitingPromotion, ""))]
#[case::asked(RolloutFacts { promotion: Some(PromotionRequest::True), ..facts() }, is(RolloutPhase::Promoting, ""))]
#[case::automatic(RolloutFacts { automatic: true, ..facts() }, is(RolloutPhase::Promoting, ""))]
#[case::begun(
    RolloutFacts { promotion: Some(PromotionRequest::True), recorded: recorded(RolloutPhase::Promoting), ..facts() },
    is(RolloutPhase::Committing, "")
)]
#[case::begun_and_taken_back(
    RolloutFacts { recorded: recorded(RolloutPhase::Promoting), ..facts() },
    is(RolloutPhase::AwaitingPromotion, "")
)]
#[case::begun_and_not_ready_any_more(
    RolloutFacts {
        promotion: Some(PromotionRequest::True),
        recorded: recorded(RolloutPhase::Promoting),
        preview: closed("p"),
        ..facts()
    },
    is(RolloutPhase::Staging, "p")
)]
#[case::staged_in_the_grace_period(
    RolloutFacts { recorded: recorded(RolloutPhase::Grace), ..facts() },
    is(RolloutPhase::AwaitingPromotion, "")
)]
#[case::nothing_staged(RolloutFacts { staged: false, ..facts() }, is(RolloutPhase::Idle, ""))]
#[case::asked_for_nothing(RolloutFacts { staged: false, promotion: Some(PromotionRequest::True), ..facts() }, is(RolloutPhase::Idle, ""))]
#[case::aborted(
    RolloutFacts { staged: false, recorded: recorded(RolloutPhase::AwaitingPromotion), ..facts() },
    is(RolloutPhase::Idle, "")
)]
#[case::committed(
    RolloutFacts {
        staged: false,
        recorded: recorded(RolloutPhase::Promoting),
        traffic: closed("t"),
        ..facts()
    },
    is(RolloutPhase::Following, "t")
)]
#[case::followed(
    RolloutFacts { staged: false, recorded: recorded(RolloutPhase::Promoting), ..facts() },
    RolloutState { until: Some(at(130)), ..is(RolloutPhase::Grace, "") }
)]
#[case::in_the_grace_period(
    RolloutFacts { staged: false, recorded: recorded(RolloutPhase::Grace), ..facts() },
    RolloutState { until: Some(at(120)), ..is(RolloutPhase::Grace, "") }
)]
#[case::after_it(
    RolloutFacts { staged: false, recorded: recorded(RolloutPhase::Grace), now: at(120), ..facts() },
    is(RolloutPhase::Idle, "")
)]
fn where_a_rollout_stands(#[case] facts: RolloutFacts, #[case] expected: RolloutState) {
    assert_eq!(phase(&facts), expected);
}

#[rstest]
#[case::another(PromotionRequest::AnotherSpec, "another spec")]
#[case::nonsense(PromotionRequest::Nonsense, "neither")]
fn what_a_promotion_lacks_is_said(#[case] promotion: PromotionRequest, #[case] said: &str) {
    let found = phase(&RolloutFacts { promotion: Some(promotion), ..facts() });
    assert_eq!(found.phase, RolloutPhase::AwaitingPromotion);
    assert!(found.message.contains(said), "{found:?}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the page is a file of docs/")]
fn the_page_of_rollout_states_is_that_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rollout-states.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == page(),
        "docs/rollout-states.md is old: run UPDATE_DOCS=1 cargo test -p interlock-kong rollout_states"
    );
}
