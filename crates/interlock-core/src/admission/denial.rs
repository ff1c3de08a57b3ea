//! Denials, for people: the denied change, the reason, and the remedy.

use std::ops::Range;

use crate::api::display::one_line;
use crate::api::docs::DocsUrl;
use crate::api::rule::Rule;
pub use crate::api::violation::{FieldReason, ViolationField};

/// How many lines a denial has.
const LINES: usize = 6;
/// How many names one line lists of fields whose values are not shown.
const NAMES_SHOWN: usize = 4;
/// Message of a cause whose value is not shown.
const HIDDEN: &str = "is changed; its value is not shown";
/// For how many fields one denial has causes.
const FIELDS_KEPT: usize = 16;
/// Longest text of a denial.
const TEXT_LIMIT: usize = 1024;
/// Longest text of a cause but the first.
const CAUSE_LIMIT: usize = 256;
/// Longest text of a remedy.
const NEXT_LIMIT: usize = 640;
/// Bytes reserved for the fields, however long the sentence is.
const FIELD_ROOM: usize = 128;

/// HTTP status of a denial. Never 409, which `kubectl apply` retries six times, and never 429, which
/// makes every client hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 400: the review lacks what its operation needs.
    BadRequest,
    /// 403: denies the whole object.
    Forbidden,
    /// 422: denies fields that it can name.
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

/// A denial, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The rule.
    pub rule: Rule,
    /// HTTP status; `Invalid` needs a field.
    pub code: Code,
    /// The denied change: KUDO's own sentence, if it has one.
    pub sentence: String,
    /// Bytes at the start of the sentence that only name the failed operation and the object.
    pub beginning: usize,
    /// The first denied fields.
    pub fields: Vec<ViolationField>,
    /// Whether the sentence says all that there is to say of its only field, so that no line repeats it.
    pub names_field: bool,
    /// How many more there are.
    pub more: usize,
    /// The reason.
    pub why: Option<String>,
    /// The remedy.
    pub next: Option<String>,
    /// The plan that holds the lock, if that is the reason.
    pub plan: Option<String>,
    /// Whether the object alone proves it, although its rule reads other objects as well.
    pub certain: bool,
    /// Violations of other rules, denied together with it.
    pub also: Vec<Also>,
}

/// A further violation that a denial lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Also {
    /// The rule.
    pub rule: Rule,
    /// The denied field, or the first of them, with the violation.
    pub field: ViolationField,
}

impl Also {
    /// The message of a cause, whose field kubectl prints beside it.
    fn message(&self) -> String {
        [&*one_line(&self.field.detail), " [", self.rule.id(), "]"].concat()
    }

    fn line(&self) -> String {
        match self.field.path.as_str() {
            "" => ["\n  ", &self.message()].concat(),
            path => ["\n  ", &*one_line(path), ": ", &self.message()].concat(),
        }
    }
}

/// A cause of a denial, as kubectl prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Reason, one of metav1's.
    pub reason: &'static str,
    /// Message for people.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

/// A denial in wire format.
pub struct RenderedDenial {
    /// `status.code` and `status.reason`.
    pub code: Code,
    /// `status.message`.
    pub message: String,
    /// `status.details.causes`; the first carries the whole text.
    pub causes: Vec<Cause>,
}

impl Denial {
    /// A denial of the whole object.
    pub fn forbidden(rule: Rule, sentence: impl Into<String>) -> Self {
        Self {
            rule,
            code: Code::Forbidden,
            sentence: sentence.into(),
            beginning: 0,
            fields: Vec::new(),
            names_field: false,
            more: 0,
            why: None,
            next: None,
            plan: None,
            certain: false,
            also: Vec::new(),
        }
    }

    /// A denial that names fields.
    pub fn invalid(rule: Rule, sentence: impl Into<String>, mut fields: Vec<ViolationField>) -> Self {
        let more = fields.len().saturating_sub(FIELDS_KEPT);
        fields.truncate(FIELDS_KEPT);
        Self { code: Code::Invalid, fields, more, ..Self::forbidden(rule, sentence) }
    }

    /// Marks the sentence as complete: it names its only field, and says what is wrong with it.
    #[must_use]
    pub fn named(mut self) -> Self {
        self.names_field = true;
        self
    }

    /// Adds to the count of unnamed fields.
    #[must_use]
    pub fn and_more(mut self, count: usize) -> Self {
        self.more += count;
        self
    }

    /// Marks the denial as proven by the object alone: it holds also if other objects are unknown.
    #[must_use]
    pub fn certain(mut self) -> Self {
        self.certain = true;
        self
    }

    /// Lists another violation: among its own fields if the rule is the same, else on a line of its
    /// own.
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
            Some(field) => ViolationField { detail, ..field },
            None => ViolationField::new("", FieldReason::Forbidden, detail),
        };
        self.also.push(Also { rule: other.rule, field });
    }

    /// Keeps the first remedy, and hints that those of other violations differ.
    fn and_so_on(&mut self, other: Option<String>) {
        const MORE: &str = ", and so on";
        if let Some(next) = self.next.as_mut().filter(|next| other.as_ref() != Some(next))
            && !next.ends_with(MORE)
        {
            next.push_str(MORE);
        }
    }

    /// Ids of the violated rules.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        std::iter::once(self.rule).chain(self.also.iter().map(|also| also.rule))
    }

    /// Sets the reason.
    #[must_use]
    pub fn why(mut self, text: impl Into<String>) -> Self {
        self.why = Some(text.into());
        self
    }

    /// Sets the remedy.
    #[must_use]
    pub fn next(mut self, text: impl Into<String>) -> Self {
        self.next = Some(text.into());
        self
    }

    /// The whole text: at most six lines and 1 KiB. Long values never cut off the rule or the remedy.
    /// `docs` is where the pages of the rules can be read; without it, the last line names the command that
    /// prints them.
    pub fn text(&self, docs: Option<&DocsUrl>) -> String {
        self.written(docs).0
    }

    /// The text, and the part of it that names the field that the first cause is about, and nothing else.
    fn written(&self, docs: Option<&DocsUrl>) -> (String, Range<usize>) {
        let (id, next, page) = (self.rule.id(), self.next_line(), self.rule.see(docs));
        let room = TEXT_LIMIT.saturating_sub(next.len() + "\nSee ".len() + page.len());
        let kept = if self.fields.is_empty() && self.also.is_empty() { 0 } else { FIELD_ROOM };
        let sentence = one_line(&self.sentence).into_owned();
        let mut text = shortened(sentence, room.saturating_sub(id.len() + 3 + kept));
        add(&mut text, [" [", id, "]"]);
        let lines = LINES - 2 - usize::from(self.why.is_some()) - usize::from(self.next.is_some());
        let named = self.add_fields(&mut text, lines);
        if let Some(why) = &self.why {
            add(&mut text, ["\nWhy now: ", &one_line(why), ""]);
        }
        let mut text = shortened(text, room);
        let named = if named.end <= text.len() { named } else { 0..0 };
        add(&mut text, [&next, "\nSee ", &page]);
        (text, named)
    }

    /// Adds the fields and the further violations: a line for each that says something, one for the names of
    /// the others, and one for the count of the rest. Returns the line that names the first field alone.
    fn add_fields(&self, text: &mut String, lines: usize) -> Range<usize> {
        let own = self.fields.get(usize::from(self.names_field)..).unwrap_or_default();
        let hidden = || own.iter().filter(|field| field.detail.is_empty());
        let count = hidden().count();
        let named = count.min(NAMES_SHOWN);
        let all = own.len() + self.also.len() + self.more;
        let wanted = own.len() - count + usize::from(named > 0) + self.also.len();
        let rest = self.more > 0 || count > named;
        let mut left = if wanted + usize::from(rest) > lines { lines - 1 } else { wanted };
        let mut shown = 0;
        for field in own.iter().filter(|field| !field.detail.is_empty()).take(left) {
            add(text, ["\n  ", &one_line(&field.path), ": "]);
            text.push_str(&one_line(&field.detail));
            (shown, left) = (shown + 1, left - 1);
        }
        let from = text.len();
        if named > 0 && left > 0 {
            let names = hidden().take(named).map(|field| field.path.as_str());
            names.enumerate().for_each(|(i, name)| {
                add(text, [if i == 0 { "\n  " } else { ", " }, &one_line(name), ""]);
            });
            (shown, left) = (shown + named, left - 1);
        }
        let is_first =
            count == 1 && own.first().is_some_and(|field| field.detail.is_empty()) && !self.names_field;
        let line = if is_first { from..text.len() } else { from..from };
        for also in self.also.iter().take(left) {
            text.push_str(&also.line());
            shown += 1;
        }
        if all > shown {
            add(text, ["\n  and ", &(all - shown).to_string(), " more"]);
        }
        line
    }

    fn next_line(&self) -> String {
        let said = |next: &String| ["\nNext: ", &shortened(one_line(next).into_owned(), NEXT_LIMIT)].concat();
        self.next.as_ref().map(said).unwrap_or_default()
    }

    /// The denial in wire format.
    ///
    /// kubectl prints only the causes of an `Invalid`, and nothing at all without any: so the first
    /// carries the whole text, and a denial without a field gets an empty one. kubectl prints the field of
    /// a cause before its message, which therefore has no line that merely names it.
    pub fn render(&self, docs: Option<&DocsUrl>) -> RenderedDenial {
        let (text, named) = self.written(docs);
        let mut causes = Vec::new();
        if self.code == Code::Invalid {
            let (field, reason) =
                self.fields.first().map_or(("", FieldReason::Invalid), |f| (f.path.as_str(), f.reason));
            let message = [&text[..named.start], &text[named.end..]].concat();
            causes.push(Cause { reason: reason.as_str(), message, field: one_line(field).into_owned() });
            causes.extend(self.fields.iter().skip(1).map(|f| Cause {
                reason: f.reason.as_str(),
                message: if f.detail.is_empty() {
                    HIDDEN.to_owned()
                } else {
                    one_line(&f.detail).into_owned()
                },
                field: one_line(&f.path).into_owned(),
            }));
            causes.extend(self.also.iter().map(|also| Cause {
                reason: also.field.reason.as_str(),
                message: shortened(also.message(), CAUSE_LIMIT),
                field: one_line(&also.field.path).into_owned(),
            }));
        }
        RenderedDenial { code: self.code, message: text, causes }
    }
}

fn add(text: &mut String, parts: [&str; 3]) {
    parts.into_iter().for_each(|part| text.push_str(part));
}

/// A text of at most that many bytes; a longer one ends in dots.
pub(super) fn shortened(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(4)));
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::api::rule::RuleGroup;

    const FLAVOR_REGEX: Rule = Rule::new("RF09", RuleGroup::Flavors, "docs/");
    const FLAVOR_SKIP: Rule = Rule::new("RF03", RuleGroup::Flavors, "docs/");

    /// kubectl prints the message, and of an `Invalid` the causes with their fields.
    #[test]
    fn no_text_of_a_tenant_steers_the_terminal() {
        const HOSTILE: &str = "\u{1b}[2J\u{202e}\nx";
        let rule = FLAVOR_REGEX;
        let field =
            |detail: &str| ViolationField::parameter(HOSTILE, FieldReason::Invalid, detail.to_owned());
        let denial = Denial::invalid(rule, HOSTILE, vec![field(HOSTILE), field(""), field(HOSTILE)])
            .why(HOSTILE)
            .next(HOSTILE);
        let mut other = Denial::forbidden(FLAVOR_SKIP, HOSTILE);
        other.join(denial.clone());
        for denial in [denial, other] {
            let rendered = denial.render(None);
            let causes = rendered.causes.iter().flat_map(|cause| [&cause.message, &cause.field]);
            for text in causes.chain([&rendered.message]) {
                assert!(text.chars().all(|c| c == '\n' || matches!(c, ' '..='~')), "{text:?}");
                assert!(!text.lines().any(|line| line.starts_with('x')), "{text:?}");
            }
        }
    }
}
