//! Refusals are for people: what is refused, why now, and what to do next.

use std::borrow::Cow;

use crate::api::rule::Rule;
pub use crate::plan::objection::{FieldReason, ObjectionField};

/// How many lines of one refusal name fields; more are counted.
const FIELDS_SHOWN: usize = 4;
/// How many lines of one refusal name fields or further violations, where there are any.
const LINES_SHOWN: usize = 5;
/// How many fields one refusal has causes of.
const FIELDS_KEPT: usize = 16;
/// Longest text of a refusal.
const TEXT_LIMIT: usize = 1024;
/// Longest text of a cause but the first.
const CAUSE_LIMIT: usize = 256;
/// Longest text of what to do.
const NEXT_LIMIT: usize = 480;
/// What a sentence, however long, leaves for the fields.
const FIELD_ROOM: usize = 128;

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
pub struct Denial {
    /// The rule.
    pub rule: Rule,
    /// HTTP status; `Invalid` needs a field.
    pub code: Code,
    /// What is refused: KUDO's own sentence where it has one.
    pub sentence: String,
    /// Bytes of the sentence that say only what failed, on which object.
    pub beginning: usize,
    /// The first fields concerned.
    pub fields: Vec<ObjectionField>,
    /// How many more there are.
    pub more: usize,
    /// Why now.
    pub why: Option<String>,
    /// What to do.
    pub next: Option<String>,
    /// The plan that holds the lock, where that is why.
    pub plan: Option<String>,
    /// Whether the object alone shows it, though its rule reads others as well.
    pub certain: bool,
    /// Violations of other rules that are refused with it.
    pub also: Vec<Also>,
}

/// A further violation that a refusal lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Also {
    /// The rule.
    pub rule: Rule,
    /// The field concerned, or the first of them, with what is refused.
    pub field: ObjectionField,
}

impl Also {
    /// As a cause has it: the field is named beside it.
    fn message(&self) -> String {
        [&*one_line(&self.field.detail), " [", self.rule.id(), "]"].concat()
    }

    fn line(&self) -> String {
        match self.field.path.as_str() {
            "" => ["\n  ", &self.message()].concat(),
            path => ["\n  ", path, ": ", &self.message()].concat(),
        }
    }
}

/// A cause of a refusal, as kubectl prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Reason, one of metav1's.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

/// A refusal as it goes over the wire.
pub struct RenderedDenial {
    /// `status.code` and `status.reason`.
    pub code: Code,
    /// `status.message`.
    pub message: String,
    /// `status.details.causes`; the first carries the whole text.
    pub causes: Vec<Cause>,
}

impl Denial {
    /// A refusal of the whole object.
    pub fn forbidden(rule: Rule, sentence: impl Into<String>) -> Self {
        Self {
            rule,
            code: Code::Forbidden,
            sentence: sentence.into(),
            beginning: 0,
            fields: Vec::new(),
            more: 0,
            why: None,
            next: None,
            plan: None,
            certain: false,
            also: Vec::new(),
        }
    }

    /// A refusal that names fields.
    pub fn invalid(rule: Rule, sentence: impl Into<String>, mut fields: Vec<ObjectionField>) -> Self {
        let more = fields.len().saturating_sub(FIELDS_KEPT);
        fields.truncate(FIELDS_KEPT);
        Self { code: Code::Invalid, fields, more, ..Self::forbidden(rule, sentence) }
    }

    /// Counts fields that are not among those given.
    #[must_use]
    pub fn and_more(mut self, count: usize) -> Self {
        self.more += count;
        self
    }

    /// The object alone shows it: it holds also where other objects are not known.
    #[must_use]
    pub fn certain(mut self) -> Self {
        self.certain = true;
        self
    }

    /// Lists another violation: beside its own fields where it is one of the same rule, else by a
    /// line of its own.
    pub fn join(&mut self, other: Self) {
        if other.rule == self.rule && other.code == self.code {
            self.more += other.more;
            self.fields.extend(other.fields);
            self.more += self.fields.len().saturating_sub(FIELDS_KEPT);
            self.fields.truncate(FIELDS_KEPT);
            self.and_so_on(other.next);
            return;
        }
        if self.also.len() == FIELDS_KEPT {
            self.more += 1;
            return;
        }
        let detail = other.sentence.get(other.beginning..).unwrap_or_default().to_owned();
        let field = match other.fields.into_iter().next() {
            Some(field) => ObjectionField { detail, ..field },
            None => ObjectionField::new("", FieldReason::Forbidden, detail),
        };
        self.also.push(Also { rule: other.rule, field });
    }

    /// What to do differs from violation to violation: that of the first stands for all.
    fn and_so_on(&mut self, other: Option<String>) {
        const MORE: &str = ", and so on";
        if let Some(next) = self.next.as_mut().filter(|next| other.as_ref() != Some(next))
            && !next.ends_with(MORE)
        {
            next.push_str(MORE);
        }
    }

    /// Ids of the rules that refuse.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        std::iter::once(self.rule).chain(self.also.iter().map(|also| also.rule))
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

    /// The whole text: at most ten lines and 1 KiB. Long values cut neither the rule nor what to
    /// do off.
    pub fn text(&self) -> String {
        let (id, next, page) = (self.rule.id(), self.next_line(), self.rule.page());
        let room = TEXT_LIMIT.saturating_sub(next.len() + "\nSee ".len() + page.len());
        let kept = if self.fields.is_empty() && self.also.is_empty() { 0 } else { FIELD_ROOM };
        let fields = self.fields.len().min(FIELDS_SHOWN);
        let also = self.also.len().min(LINES_SHOWN - fields);
        let sentence = one_line(&self.sentence).into_owned();
        let mut text = shortened(sentence, room.saturating_sub(id.len() + 3 + kept));
        let add =
            |text: &mut String, parts: [&str; 4]| parts.into_iter().for_each(|part| text.push_str(part));
        add(&mut text, [" [", id, "]", ""]);
        for field in self.fields.iter().take(fields) {
            add(&mut text, ["\n  ", &field.path, ": ", &one_line(&field.detail)]);
        }
        self.also.iter().take(also).for_each(|also| text.push_str(&also.line()));
        let more = self.fields.len() - fields + self.also.len() - also + self.more;
        if more > 0 {
            add(&mut text, ["\n  and ", &more.to_string(), " more", ""]);
        }
        if let Some(why) = &self.why {
            add(&mut text, ["\nWhy now: ", &one_line(why), "", ""]);
        }
        let mut text = shortened(text, room);
        add(&mut text, [&next, "\nSee ", page, ""]);
        text
    }

    fn next_line(&self) -> String {
        let said = |next: &String| ["\nNext: ", &shortened(one_line(next).into_owned(), NEXT_LIMIT)].concat();
        self.next.as_ref().map(said).unwrap_or_default()
    }

    /// As it goes over the wire.
    ///
    /// kubectl prints only the causes of an `Invalid`, and nothing at all where there are none:
    /// so the first carries the whole text, and a refusal without a field gets an empty one.
    pub fn render(&self) -> RenderedDenial {
        let text = self.text();
        let mut causes = Vec::new();
        if self.code == Code::Invalid {
            let (field, reason) =
                self.fields.first().map_or(("", FieldReason::Invalid), |f| (f.path.as_str(), f.reason));
            causes.push(Cause { reason: reason.as_str(), message: text.clone(), field: field.to_owned() });
            causes.extend(self.fields.iter().skip(1).map(|f| Cause {
                reason: f.reason.as_str(),
                message: one_line(&f.detail).into_owned(),
                field: f.path.clone(),
            }));
            causes.extend(self.also.iter().map(|also| Cause {
                reason: also.field.reason.as_str(),
                message: shortened(also.message(), CAUSE_LIMIT),
                field: also.field.path.clone(),
            }));
        }
        RenderedDenial { code: self.code, message: text, causes }
    }
}

/// Text of anybody's as one line.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|b| matches!(b, b'\n' | b'\r')) {
        Cow::Owned(text.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// Text of at most that many bytes; what is longer ends in dots.
pub(super) fn shortened(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(4)));
        text.push_str(" ...");
    }
    text
}
