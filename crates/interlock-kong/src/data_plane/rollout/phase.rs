//! Where a rollout stands, as a function of what was read. Each row of `docs/rollout-states.md` is a branch here.

use interlock_core::api::meta;
use jiff::{SignedDuration, Timestamp};

use super::promotion::PromotionRequest;
use super::report::RolloutPhase;

/// What was recorded last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The phase that `RolledOut` reports.
    pub phase: RolloutPhase,
    /// Since when it does.
    pub since: Timestamp,
}

/// Whether something may go on; `Err` with why not, for people.
pub type PromotionGate = Result<(), String>;

#[derive(Clone, Debug)]
pub struct RolloutFacts {
    /// Whether the spec differs from the live one in a field that is staged.
    pub staged: bool,
    /// Whether the preview can be made, else why not.
    pub template: PromotionGate,
    /// Whether all pods of the preview are ready, and of what is staged.
    pub preview: PromotionGate,
    /// Whether the pods of the preview answer as they should; asked only where it matters.
    pub answers: PromotionGate,
    /// What they were not asked, with the remedy; empty where they were asked all.
    pub unasked: String,
    /// What the annotation requests, if it is there.
    pub promotion: Option<PromotionRequest>,
    /// Whether a promotion needs no request.
    pub automatic: bool,
    /// What was recorded last.
    pub recorded: Option<Recorded>,
    /// Whether all endpoints of the live Service are pods of the live side.
    pub traffic: PromotionGate,
    /// How long the former side is kept after a promotion.
    pub grace_period: SignedDuration,
    /// The time.
    pub now: Timestamp,
}

/// Where a rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutState {
    pub phase: RolloutPhase,
    /// What it waits for, or why it has failed; what else there is to say while a promotion is waited for.
    pub message: String,
    /// How long the former side is kept after a promotion.
    pub until: Option<Timestamp>,
}

/// A row of the transition table: the first that holds decides.
struct Transition {
    /// The recorded phases that it is for; empty for any, also none.
    from: &'static [RolloutPhase],
    /// When it holds, for people.
    when: &'static str,
    holds: fn(&RolloutFacts) -> bool,
    to: RolloutPhase,
    /// What it waits for, for people.
    message: fn(&RolloutFacts) -> String,
    /// What is done, for people.
    done: &'static str,
}

/// The state machine.
static TABLE: &[Transition] = &[
    Transition {
        from: &[],
        when: "the preview cannot be created from the staged spec",
        holds: |facts| facts.staged && facts.template.is_err(),
        to: RolloutPhase::Failed,
        message: |facts| why(&facts.template),
        done: "the message names the field; the live side and the existing preview stay",
    },
    Transition {
        from: &[],
        when: "a change is staged; not all pods of the preview are ready",
        holds: |facts| facts.staged && facts.preview.is_err(),
        to: RolloutPhase::Staging,
        message: |facts| why(&facts.preview),
        done: "the preview is created from the spec, with at least as many pods as the live side",
    },
    Transition {
        from: &[],
        when: "a pod of the preview has no configuration",
        holds: |facts| facts.staged && facts.answers.is_err(),
        to: RolloutPhase::Asking,
        message: |facts| why(&facts.answers),
        done: "the message names the pods; Interlock asks them again every 5 s",
    },
    Transition {
        from: &[],
        when: "the preview is ready; its promotion is not requested",
        holds: |facts| facts.staged && !facts.is_asked(),
        to: RolloutPhase::AwaitingPromotion,
        message: said,
        done: "nothing, until the spec, the annotation or a child changes",
    },
    Transition {
        from: &[RolloutPhase::Promoting],
        when: "the preview is ready; its promotion is requested and recorded as begun",
        holds: |facts| facts.staged,
        to: RolloutPhase::Committing,
        message: nothing,
        done: "**the commit**: one patch writes the last-applied spec with the selector of the preview, and removes the annotation",
    },
    Transition {
        from: &[],
        when: "the preview is ready; its promotion is requested",
        holds: |facts| facts.staged,
        to: RolloutPhase::Promoting,
        message: nothing,
        done: "the status records the promotion as begun: from now on the definition refuses a change of the spec",
    },
    Transition {
        from: &[RolloutPhase::Promoting],
        when: "the promotion is committed; the previous side still has endpoints, or the new one has none",
        holds: |facts| facts.traffic.is_err(),
        to: RolloutPhase::Following,
        message: |facts| why(&facts.traffic),
        done: "Services, labels, HPA and PDB follow the new selector; Interlock checks the endpoints every second",
    },
    Transition {
        from: &[RolloutPhase::Promoting],
        when: "the promotion is committed; all endpoints are pods of the new side",
        holds: |_| true,
        to: RolloutPhase::Grace,
        message: nothing,
        done: "the previous side keeps its pods for the grace period",
    },
    Transition {
        from: &[RolloutPhase::Grace],
        when: "nothing is staged; the grace period lasts",
        holds: |facts| facts.grace_ends() > facts.now,
        to: RolloutPhase::Grace,
        message: nothing,
        done: "the previous side keeps its pods",
    },
    Transition {
        from: &[],
        when: "nothing is staged: at the start, after the grace period, or because the spec was set back",
        holds: |_| true,
        to: RolloutPhase::Idle,
        message: nothing,
        done: "the preview has no pods",
    },
];

fn why(gate: &PromotionGate) -> String {
    gate.clone().err().unwrap_or_default()
}

fn nothing(_: &RolloutFacts) -> String {
    String::new()
}

/// Why an annotation does not request the promotion of what is staged, for people.
fn lacks(promotion: Option<PromotionRequest>) -> String {
    match promotion {
        Some(PromotionRequest::AnotherSpec) => {
            "the requested promotion is of another spec than the one that is staged".to_owned()
        }
        Some(PromotionRequest::Nonsense) => format!(
            "annotation {} is neither \"true\" nor the hash of the staged spec",
            meta::PROMOTE_WHEN_READY
        ),
        Some(PromotionRequest::True | PromotionRequest::ThisSpec) | None => String::new(),
    }
}

/// What there is to say while a promotion is waited for.
fn said(facts: &RolloutFacts) -> String {
    let parts = [lacks(facts.promotion), facts.unasked.clone()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

impl RolloutFacts {
    fn is_asked(&self) -> bool {
        self.automatic || self.promotion.is_some_and(PromotionRequest::is_for_this)
    }

    /// The end of the grace period of a promotion that is done, or is recorded as done now.
    fn grace_ends(&self) -> Timestamp {
        let done = self.recorded.filter(|recorded| recorded.phase == RolloutPhase::Grace);
        let since = done.map_or(self.now, |done| done.since);
        since.checked_add(self.grace_period).unwrap_or(Timestamp::MAX)
    }
}

/// Where a rollout stands.
pub fn phase(facts: &RolloutFacts) -> RolloutState {
    let recorded = facts.recorded.map(|recorded| recorded.phase);
    let fits = |row: &&Transition| {
        (row.from.is_empty() || recorded.is_some_and(|phase| row.from.contains(&phase))) && (row.holds)(facts)
    };
    let found = TABLE.iter().find(fits).map(|row| (row.to, (row.message)(facts)));
    let (phase, message) = found.unwrap_or((RolloutPhase::Idle, String::new()));
    RolloutState { phase, message, until: (phase == RolloutPhase::Grace).then(|| facts.grace_ends()) }
}

/// The page `docs/rollout-states.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# States of a rollout\n\n\
         Generated from the table in `crates/interlock-kong/src/data_plane/rollout/phase.rs` by \
         `UPDATE_DOCS=1 cargo test -p interlock-kong rollout_states`; a test compares the two. A state is the reason \
         of the condition `RolledOut` in `status.rollout.conditions`. [Rollouts](rollouts.md) says what each means.\n\n\
         ```mermaid\nstateDiagram-v2\n    [*] --> WaitingForChange\n",
    );
    let mut arrows: Vec<String> = Vec::new();
    for row in TABLE {
        for from in
            RolloutPhase::OURS.iter().filter(|from| row.is_from(**from) && from.reason() != row.to.reason())
        {
            let arrow = format!("    {} --> {}\n", from.reason(), row.to.reason());
            if !arrows.contains(&arrow) {
                arrows.push(arrow);
            }
        }
    }
    page += &arrows.concat();
    page += "```\n\nThe first row that applies decides.\n\n\
             | in | when | state | what is done |\n|---|---|---|---|\n";
    for row in TABLE {
        let from: Vec<&str> = row.from.iter().map(|phase| phase.reason()).collect();
        let from = if from.is_empty() { "any".to_owned() } else { format!("`{}`", from.join("`, `")) };
        page += &format!("| {from} | {} | `{}` | {} |\n", row.when, row.to.reason(), row.done);
    }
    page
}

impl Transition {
    /// Whether a rollout gets here from that phase. What follows a commit follows nothing else.
    fn is_from(&self, phase: RolloutPhase) -> bool {
        let ends = self.to == RolloutPhase::Idle;
        match self.from {
            [] => !(ends && phase == RolloutPhase::Promoting),
            listed => listed.contains(&phase),
        }
    }
}
