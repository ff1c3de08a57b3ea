//! Refusals are for people: what is refused, why now, and what to do next.

use std::borrow::Cow;

use crate::api::rule::Rule;
pub use crate::plan::objection::{Field, FieldReason};

/// How many lines of one refusal name fields; more are counted.
const FIELDS_SHOWN: usize = 4;
/// Longest text of a refusal.
const TEXT_LIMIT: usize = 1024;

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
        let mut text = String::with_capacity(512);
        let add =
            |text: &mut String, parts: [&str; 4]| parts.into_iter().for_each(|part| text.push_str(part));
        add(&mut text, [&one_line(&self.sentence), " [", self.rule.id(), "]"]);
        for field in self.fields.iter().take(FIELDS_SHOWN) {
            add(&mut text, ["\n  ", &field.path, ": ", &one_line(&field.detail)]);
        }
        if self.fields.len() > FIELDS_SHOWN {
            add(&mut text, ["\n  and ", &(self.fields.len() - FIELDS_SHOWN).to_string(), " more", ""]);
        }
        for (head, said) in [("\nWhy now: ", &self.why), ("\nNext: ", &self.next)] {
            if let Some(said) = said {
                add(&mut text, [head, &one_line(said), "", ""]);
            }
        }
        let page = self.rule.page();
        let room = TEXT_LIMIT.saturating_sub(page.len() + 5);
        if text.len() > room {
            text.truncate(text.floor_char_boundary(room.saturating_sub(4)));
            text.push_str(" ...");
        }
        add(&mut text, ["\nSee ", page, "", ""]);
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
                message: one_line(&f.detail).into_owned(),
                field: f.path.clone(),
            }));
        }
        Rendered { code: self.code, message: text, causes }
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
