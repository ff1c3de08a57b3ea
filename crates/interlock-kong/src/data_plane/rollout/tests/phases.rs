//! Every row of the transition table.

use jiff::{SignedDuration, Timestamp};
use rstest::rstest;

use crate::data_plane::rollout::phase::{
    PromotionGate, Reason, Recorded, RolloutFacts, RolloutPhase, page, phase,
};
use crate::data_plane::rollout::promotion::PromotionRequest;

fn facts() -> RolloutFacts {
    RolloutFacts {
        staged: true,
        template: PromotionGate::Open,
        preview: PromotionGate::Open,
        answers: PromotionGate::Open,
        unasked: String::new(),
        promotion: None,
        automatic: false,
        recorded: None,
        traffic: PromotionGate::Open,
        grace_period: SignedDuration::from_secs(30),
        now: at(100),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn recorded(reason: Reason) -> Option<Recorded> {
    Some(Recorded { reason, since: at(90) })
}

fn closed(why: &str) -> PromotionGate {
    PromotionGate::Closed(why.to_owned())
}

#[rstest]
#[case::template(RolloutFacts { template: closed("t"), preview: closed("p"), ..facts() }, RolloutPhase::Failed("t".to_owned()))]
#[case::pods(RolloutFacts { preview: closed("p"), answers: closed("a"), ..facts() }, RolloutPhase::Staging("p".to_owned()))]
#[case::answers(RolloutFacts { answers: closed("a"), ..facts() }, RolloutPhase::Staging("a".to_owned()))]
#[case::asked_too_early(
    RolloutFacts { preview: closed("p"), promotion: Some(PromotionRequest::True), ..facts() },
    RolloutPhase::Staging("p".to_owned())
)]
#[case::waits(facts(), RolloutPhase::AwaitingPromotion(String::new()))]
#[case::asked(RolloutFacts { promotion: Some(PromotionRequest::True), ..facts() }, RolloutPhase::Beginning)]
#[case::automatic(RolloutFacts { automatic: true, ..facts() }, RolloutPhase::Beginning)]
#[case::begun(
    RolloutFacts { promotion: Some(PromotionRequest::True), recorded: recorded(Reason::PromotionInProgress), ..facts() },
    RolloutPhase::Committing
)]
#[case::begun_and_taken_back(
    RolloutFacts { recorded: recorded(Reason::PromotionInProgress), ..facts() },
    RolloutPhase::AwaitingPromotion(String::new())
)]
#[case::begun_and_not_ready_any_more(
    RolloutFacts {
        promotion: Some(PromotionRequest::True),
        recorded: recorded(Reason::PromotionInProgress),
        preview: closed("p"),
        ..facts()
    },
    RolloutPhase::Staging("p".to_owned())
)]
#[case::staged_in_the_grace_period(
    RolloutFacts { recorded: recorded(Reason::PromotionDone), ..facts() },
    RolloutPhase::AwaitingPromotion(String::new())
)]
#[case::nothing_staged(RolloutFacts { staged: false, ..facts() }, RolloutPhase::Idle)]
#[case::asked_for_nothing(RolloutFacts { staged: false, promotion: Some(PromotionRequest::True), ..facts() }, RolloutPhase::Idle)]
#[case::aborted(
    RolloutFacts { staged: false, recorded: recorded(Reason::AwaitingPromotion), ..facts() },
    RolloutPhase::Idle
)]
#[case::committed(
    RolloutFacts {
        staged: false,
        recorded: recorded(Reason::PromotionInProgress),
        traffic: closed("t"),
        ..facts()
    },
    RolloutPhase::Following("t".to_owned())
)]
#[case::followed(
    RolloutFacts { staged: false, recorded: recorded(Reason::PromotionInProgress), ..facts() },
    RolloutPhase::Grace(at(130))
)]
#[case::in_the_grace_period(
    RolloutFacts { staged: false, recorded: recorded(Reason::PromotionDone), ..facts() },
    RolloutPhase::Grace(at(120))
)]
#[case::after_it(
    RolloutFacts { staged: false, recorded: recorded(Reason::PromotionDone), now: at(120), ..facts() },
    RolloutPhase::Idle
)]
fn where_a_rollout_stands(#[case] facts: RolloutFacts, #[case] expected: RolloutPhase) {
    assert_eq!(phase(&facts), expected);
}

#[rstest]
#[case::another(PromotionRequest::AnotherSpec, "another spec")]
#[case::nonsense(PromotionRequest::Nonsense, "neither")]
fn what_a_promotion_lacks_is_said(#[case] promotion: PromotionRequest, #[case] said: &str) {
    let RolloutPhase::AwaitingPromotion(message) =
        phase(&RolloutFacts { promotion: Some(promotion), ..facts() })
    else {
        panic!("it waits");
    };
    assert!(message.contains(said), "{message}");
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
