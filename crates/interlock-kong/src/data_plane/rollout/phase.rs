//! Where a rollout stands, as a function of what was read. Each row of `docs/rollout-states.md` is a branch here.

use std::fmt;

use interlock_core::api::meta;
use jiff::{SignedDuration, Timestamp};

use super::promotion::PromotionRequest;

/// What was recorded last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The reason of `RolledOut`.
    pub reason: Reason,
    /// Since when `RolledOut` has this reason.
    pub since: Timestamp,
}

/// The reasons of `RolledOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing is staged.
    WaitingForChange,
    /// The preview is on its way.
    Progressing,
    /// The preview waits for a promotion.
    AwaitingPromotion,
    /// The preview becomes live.
    PromotionInProgress,
    /// It is live; the former side is still there.
    PromotionDone,
    /// What is staged cannot be made.
    Failed,
}

impl Reason {
    pub const ALL: [Self; 6] = [
        Self::WaitingForChange,
        Self::Progressing,
        Self::AwaitingPromotion,
        Self::PromotionInProgress,
        Self::PromotionDone,
        Self::Failed,
    ];

    /// The word on the wire: Kong's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WaitingForChange => "WaitingForChange",
            Self::Progressing => "Progressing",
            Self::AwaitingPromotion => "AwaitingPromotion",
            Self::PromotionInProgress => "PromotionInProgress",
            Self::PromotionDone => "PromotionDone",
            Self::Failed => "Failed",
        }
    }

    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

/// Whether something may go on, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromotionGate {
    /// It may.
    Open,
    /// It may not, for people.
    Closed(String),
}

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
pub enum RolloutPhase {
    /// Nothing is staged; the preview has no pods.
    Idle,
    /// What is staged cannot be made, for this reason.
    Failed(String),
    /// The preview is on its way; what it waits for.
    Staging(String),
    /// The preview waits for a promotion; what else there is to say.
    AwaitingPromotion(String),
    /// The promotion is about to be recorded: from here on the spec cannot change.
    Beginning,
    /// The promotion is recorded as begun and not committed yet.
    Committing,
    /// The promotion is committed; the traffic has yet to follow, for this reason.
    Following(String),
    /// The former side is kept until then.
    Grace(Timestamp),
}

impl RolloutPhase {
    /// The reason of `RolledOut` in this phase.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Idle => Reason::WaitingForChange,
            Self::Failed(_) => Reason::Failed,
            Self::Staging(_) => Reason::Progressing,
            Self::AwaitingPromotion(_) => Reason::AwaitingPromotion,
            Self::Beginning | Self::Committing | Self::Following(_) => Reason::PromotionInProgress,
            Self::Grace(_) => Reason::PromotionDone,
        }
    }

    /// What it waits for, for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Failed(why) | Self::Staging(why) | Self::AwaitingPromotion(why) | Self::Following(why) => {
                why
            }
            Self::Idle | Self::Beginning | Self::Committing | Self::Grace(_) => "",
        }
    }

    /// Whether the former side has to stay as it is.
    pub fn keeps_former_side(&self) -> bool {
        matches!(self, Self::Following(_) | Self::Grace(_))
    }
}

impl fmt::Display for RolloutPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason().as_str())
    }
}

/// A row of the transition table: the first that holds decides.
struct Transition {
    /// The recorded reasons that it is for; empty for any, also none.
    from: &'static [Reason],
    /// When it holds, for people.
    when: &'static str,
    holds: fn(&RolloutFacts) -> bool,
    phase: fn(&RolloutFacts) -> RolloutPhase,
    /// The reason of that phase.
    to: Reason,
    /// What is done, for people.
    done: &'static str,
}

/// The state machine.
static TABLE: &[Transition] = &[
    Transition {
        from: &[],
        when: "the preview cannot be created from the staged spec",
        holds: |facts| facts.staged && facts.template != PromotionGate::Open,
        phase: |facts| RolloutPhase::Failed(facts.template.why()),
        to: Reason::Failed,
        done: "the message names the field; the live side and the existing preview stay",
    },
    Transition {
        from: &[],
        when: "a change is staged; not all pods of the preview are ready",
        holds: |facts| facts.staged && facts.preview != PromotionGate::Open,
        phase: |facts| RolloutPhase::Staging(facts.preview.why()),
        to: Reason::Progressing,
        done: "the preview is created from the spec, with at least as many pods as the live side",
    },
    Transition {
        from: &[],
        when: "a pod of the preview has no configuration",
        holds: |facts| facts.staged && facts.answers != PromotionGate::Open,
        phase: |facts| RolloutPhase::Staging(facts.answers.why()),
        to: Reason::Progressing,
        done: "the message names the pods; Interlock asks them again every 5 s",
    },
    Transition {
        from: &[],
        when: "the preview is ready; its promotion is not requested",
        holds: |facts| facts.staged && !facts.is_asked(),
        phase: |facts| RolloutPhase::AwaitingPromotion(said(facts)),
        to: Reason::AwaitingPromotion,
        done: "nothing, until the spec, the annotation or a child changes",
    },
    Transition {
        from: &[Reason::PromotionInProgress],
        when: "the preview is ready; its promotion is requested and recorded as begun",
        holds: |facts| facts.staged,
        phase: |_| RolloutPhase::Committing,
        to: Reason::PromotionInProgress,
        done: "**the commit**: one patch writes the last-applied spec with the selector of the preview, and removes the annotation",
    },
    Transition {
        from: &[],
        when: "the preview is ready; its promotion is requested",
        holds: |facts| facts.staged,
        phase: |_| RolloutPhase::Beginning,
        to: Reason::PromotionInProgress,
        done: "the status records the promotion as begun: from now on the definition refuses a change of the spec",
    },
    Transition {
        from: &[Reason::PromotionInProgress],
        when: "the promotion is committed; the previous side still has endpoints, or the new one has none",
        holds: |facts| facts.traffic != PromotionGate::Open,
        phase: |facts| RolloutPhase::Following(facts.traffic.why()),
        to: Reason::PromotionInProgress,
        done: "Services, labels, HPA and PDB follow the new selector; Interlock checks the endpoints every second",
    },
    Transition {
        from: &[Reason::PromotionInProgress],
        when: "the promotion is committed; all endpoints are pods of the new side",
        holds: |_| true,
        phase: |facts| RolloutPhase::Grace(later(facts.now, facts.grace_period)),
        to: Reason::PromotionDone,
        done: "the previous side keeps its pods for the grace period",
    },
    Transition {
        from: &[Reason::PromotionDone],
        when: "nothing is staged; the grace period lasts",
        holds: |facts| facts.grace_ends().is_some_and(|until| until > facts.now),
        phase: |facts| RolloutPhase::Grace(facts.grace_ends().unwrap_or(facts.now)),
        to: Reason::PromotionDone,
        done: "the previous side keeps its pods",
    },
    Transition {
        from: &[],
        when: "nothing is staged: at the start, after the grace period, or because the spec was set back",
        holds: |_| true,
        phase: |_| RolloutPhase::Idle,
        to: Reason::WaitingForChange,
        done: "the preview has no pods",
    },
];

impl PromotionGate {
    fn why(&self) -> String {
        match self {
            Self::Open => String::new(),
            Self::Closed(why) => why.clone(),
        }
    }
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

    /// The end of the grace period, if a promotion is done.
    fn grace_ends(&self) -> Option<Timestamp> {
        self.recorded.map(|recorded| later(recorded.since, self.grace_period))
    }
}

/// Where a rollout stands.
pub fn phase(facts: &RolloutFacts) -> RolloutPhase {
    let recorded = facts.recorded.map(|recorded| recorded.reason);
    let fits = |row: &&Transition| {
        (row.from.is_empty() || recorded.is_some_and(|reason| row.from.contains(&reason)))
            && (row.holds)(facts)
    };
    TABLE.iter().find(fits).map_or(RolloutPhase::Idle, |row| (row.phase)(facts))
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
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
        for from in Reason::ALL.iter().filter(|from| row.is_from(**from) && **from != row.to) {
            let arrow = format!("    {} --> {}\n", from.as_str(), row.to.as_str());
            if !arrows.contains(&arrow) {
                arrows.push(arrow);
            }
        }
    }
    page += &arrows.concat();
    page += "```\n\nThe first row that applies decides.\n\n\
             | in | when | state | what is done |\n|---|---|---|---|\n";
    for row in TABLE {
        let from: Vec<&str> = row.from.iter().map(|reason| reason.as_str()).collect();
        let from = if from.is_empty() { "any".to_owned() } else { format!("`{}`", from.join("`, `")) };
        page += &format!("| {from} | {} | `{}` | {} |\n", row.when, row.to.as_str(), row.done);
    }
    page
}

impl Transition {
    /// Whether a rollout gets here from that state. What follows a commit follows nothing else.
    fn is_from(&self, reason: Reason) -> bool {
        let ends = self.to == Reason::WaitingForChange;
        match self.from {
            [] => !(ends && reason == Reason::PromotionInProgress),
            listed => listed.contains(&reason),
        }
    }
}
