//! What rules come to: allowed with a patch, refused with a text for people, or not yet known.

use json_patch::Patch;

use super::door::VerdictKind;
use super::encode::Cause;
use crate::api::object::NamespacedName;
use crate::api::rule::Rule;
pub use crate::plan::objection::{Field, FieldReason};

/// How many lines of one refusal name fields; more are counted.
const FIELDS_SHOWN: usize = 4;
/// Longest text of a refusal.
const TEXT_LIMIT: usize = 1024;

/// Longest warning.
const WARNING_LIMIT: usize = 120;
/// Longest warning in a rule's own words; the API server cuts longer ones.
const ADMITTED_LIMIT: usize = 256;

/// What a request comes to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The decision.
    pub outcome: Outcome,
    /// One line each.
    pub warnings: Vec<String>,
    /// Rules that led to a warning.
    pub noted: Vec<Rule>,
    /// Rules that would have refused, where the settings let that pass.
    pub admitted: Vec<Rule>,
    /// The plan that is scheduled, or that holds the lock.
    pub plan: Option<String>,
}

/// The decision.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Allowed as it is or with a patch.
    Allow {
        /// Empty when nothing is to be changed.
        patch: Patch,
    },
    /// Not judged: Interlock's own bookkeeping.
    Skip,
    /// Refused.
    Refuse(Box<Refusal>),
    /// An OperatorVersion that the view does not show yet decides.
    Wait(NamespacedName),
}

impl Verdict {
    /// Allowed as it is.
    pub fn allow() -> Self {
        Self::of(Outcome::Allow { patch: Patch(Vec::new()) })
    }

    /// A decision with nothing beside it.
    pub fn of(outcome: Outcome) -> Self {
        let plan = match &outcome {
            Outcome::Refuse(refusal) => refusal.plan.clone(),
            _ => None,
        };
        Self { outcome, warnings: Vec::new(), noted: Vec::new(), admitted: Vec::new(), plan }
    }

    /// Adds a warning that a rule leads to.
    pub fn warn(&mut self, rule: Rule, text: impl Into<String>) {
        self.remark(text);
        self.note(rule);
    }

    /// Adds a warning: one line, as the API server drops others, and short.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.warnings.push(shortened(one_line(&text.into()), WARNING_LIMIT));
    }

    /// Adds a warning in a rule's own words, with its id.
    pub fn tell(&mut self, rule: Rule, sentence: &str) {
        let tail = format!(" [{}]", rule.id());
        let room = ADMITTED_LIMIT - tail.len();
        self.warnings.push(shortened(one_line(sentence), room) + &tail);
        self.note(rule);
    }

    /// Tells what a rule would have refused, in the words of the refusal.
    pub fn admit(&mut self, rule: Rule, sentence: &str) {
        let tail = format!(" [{}] (admitted: group {} warns here)", rule.id(), rule.group().id());
        let room = ADMITTED_LIMIT - tail.len();
        self.warnings.push(shortened(one_line(sentence), room) + &tail);
        self.note(rule);
        self.admitted.push(rule);
    }

    fn note(&mut self, rule: Rule) {
        if !self.noted.contains(&rule) {
            self.noted.push(rule);
        }
    }

    /// The refusal, when it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.outcome {
            Outcome::Refuse(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Ids of the rules that spoke.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> {
        self.refusal().map(|r| r.rule).into_iter().chain(self.noted.iter().copied()).map(Rule::id)
    }

    /// In one word.
    pub fn kind(&self) -> VerdictKind {
        match &self.outcome {
            Outcome::Allow { patch } if patch.0.is_empty() => VerdictKind::Allowed,
            Outcome::Allow { .. } => VerdictKind::Patched,
            Outcome::Skip => VerdictKind::Skipped,
            Outcome::Refuse(_) | Outcome::Wait(_) => VerdictKind::Denied,
        }
    }
}

impl From<Refusal> for Verdict {
    fn from(refusal: Refusal) -> Self {
        Self::of(Outcome::Refuse(Box::new(refusal)))
    }
}

/// HTTP status of a refusal. Never 409, which `kubectl apply` retries six times, and never 429,
/// which makes every client hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 400: the review misses what its operation needs.
    BadRequest,
    /// 403: the whole object is concerned.
    Forbidden,
    /// 422: fields can be named.
    Invalid,
}

impl Code {
    /// The number.
    pub fn number(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::Invalid => 422,
        }
    }

    /// `status.reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Forbidden => "Forbidden",
            Self::Invalid => "Invalid",
        }
    }
}

/// A refusal, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
    /// HTTP status; `Invalid` needs a field.
    pub code: Code,
    /// What is refused: KUDO's own sentence where it has one.
    pub sentence: String,
    /// The fields concerned.
    pub fields: Vec<Field>,
    /// Why now.
    pub why: Option<String>,
    /// What to do.
    pub next: Option<String>,
    /// The plan that holds the lock, where that is why.
    pub plan: Option<String>,
}

/// A refusal as it goes over the wire.
pub struct Rendered {
    /// `status.code` and `status.reason`.
    pub code: Code,
    /// `status.message`.
    pub message: String,
    /// `status.details.causes`; the first carries the whole text.
    pub causes: Vec<Cause>,
}

impl Refusal {
    /// A refusal of the whole object.
    pub fn forbidden(rule: Rule, sentence: impl Into<String>) -> Self {
        Self {
            rule,
            code: Code::Forbidden,
            sentence: sentence.into(),
            fields: Vec::new(),
            why: None,
            next: None,
            plan: None,
        }
    }

    /// A refusal that names fields.
    pub fn invalid(rule: Rule, sentence: impl Into<String>, fields: Vec<Field>) -> Self {
        Self { code: Code::Invalid, fields, ..Self::forbidden(rule, sentence) }
    }

    /// Says why now.
    #[must_use]
    pub fn why(mut self, text: impl Into<String>) -> Self {
        self.why = Some(text.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn next(mut self, text: impl Into<String>) -> Self {
        self.next = Some(text.into());
        self
    }

    /// The whole text: at most ten lines and 1 KiB.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("{} [{}]", one_line(&self.sentence), self.rule.id())];
        for field in self.fields.iter().take(FIELDS_SHOWN) {
            lines.push(format!("  {}: {}", field.path, one_line(&field.detail)));
        }
        if self.fields.len() > FIELDS_SHOWN {
            lines.push(format!("  and {} more", self.fields.len() - FIELDS_SHOWN));
        }
        lines.extend(self.why.iter().map(|why| format!("Why now: {}", one_line(why))));
        lines.extend(self.next.iter().map(|next| format!("Next: {}", one_line(next))));
        let page = format!("See {}", self.rule.page());
        let room = TEXT_LIMIT.saturating_sub(page.len() + 1);
        let mut text = lines.join("\n");
        if text.len() > room {
            text.truncate(text.floor_char_boundary(room.saturating_sub(4)));
            text.push_str(" ...");
        }
        text.push('\n');
        text.push_str(&page);
        text
    }

    /// As it goes over the wire.
    ///
    /// kubectl prints only the causes of an `Invalid`, and nothing at all where there are none:
    /// so the first carries the whole text, and a refusal without a field gets an empty one.
    pub fn render(&self) -> Rendered {
        let text = self.text();
        let mut causes = Vec::new();
        if self.code == Code::Invalid {
            let (field, reason) =
                self.fields.first().map_or(("", FieldReason::Invalid), |f| (f.path.as_str(), f.reason));
            causes.push(Cause { reason: reason.as_str(), message: text.clone(), field: field.to_owned() });
            causes.extend(self.fields.iter().skip(1).take(15).map(|f| Cause {
                reason: f.reason.as_str(),
                message: one_line(&f.detail),
                field: f.path.clone(),
            }));
        }
        Rendered { code: self.code, message: text, causes }
    }
}

fn shortened(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit - 4));
        text.push_str(" ...");
    }
    text
}

/// Text of anybody's as one line.
fn one_line(text: &str) -> String {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text.to_owned() }
}
