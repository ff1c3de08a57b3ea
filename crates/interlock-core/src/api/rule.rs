//! The rules of admission: stable ids, each explained on a page of `docs/`. The folder of a kind declares
//! those of its kind ([`rules!`](crate::rules)).

use super::docs::DocsUrl;

/// A rule; its id is part of denials, metrics and audit annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    id: &'static str,
    group: RuleGroup,
    page: &'static str,
    waits: bool,
    reads_others: bool,
}

impl Rule {
    /// A rule with its stable id, the group that settings name it by, and the page that explains it.
    pub const fn new(id: &'static str, group: RuleGroup, page: &'static str) -> Self {
        Self { id, group, page, waits: false, reads_others: false }
    }

    /// A request that it denies now may be allowed later, unchanged: it waits for a plan or a deletion to
    /// end, or for a missing object.
    #[must_use]
    pub const fn waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// It reads other objects than the one that is written: where it cannot read them, it only warns.
    #[must_use]
    pub const fn reads_others(self) -> Self {
        Self { reads_others: true, ..self }
    }

    /// The stable id.
    pub const fn id(self) -> &'static str {
        self.id
    }

    /// The group that settings name it by.
    pub const fn group(self) -> RuleGroup {
        self.group
    }

    /// The page that explains it.
    pub const fn page(self) -> &'static str {
        self.page
    }

    /// Where to read about it: its page, where an address of the documentation is known, else the command
    /// that prints that page.
    pub fn see(self, docs: Option<&DocsUrl>) -> String {
        match docs {
            Some(docs) => docs.page(self.page),
            // A kind from outside of this repository has pages that this program does not have.
            None if !self.page.starts_with("docs/") => self.page.to_owned(),
            None => ["`interlock explain ", self.id, "`"].concat(),
        }
    }

    /// Whether a request that it denies now may be allowed later, unchanged.
    pub const fn is_transient(self) -> bool {
        self.waits
    }

    /// Whether an Override admits what it denies.
    pub const fn can_be_overridden(self) -> bool {
        matches!(self.group, RuleGroup::Parameters | RuleGroup::Plans | RuleGroup::Upgrades)
    }

    /// Whether it reads other objects than the one that is written.
    pub const fn depends_on_others(self) -> bool {
        self.reads_others
    }
}

/// Declares the rules of a kind, as constants and as the list `RULES`:
/// `NAME = "id" in Group, waits, reads_others;`. Their pages are `docs/denials/ID.md`, those of router
/// flavors one page.
#[macro_export]
macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal in $group:ident $(, $flag:ident)*;)+) => {
        $(
            $(#[doc = $doc])+
            pub const $name: $crate::api::rule::Rule = $crate::api::rule::Rule::new(
                $id,
                $crate::api::rule::RuleGroup::$group,
                $crate::api::rule::RuleGroup::$group.page(concat!("docs/denials/", $id, ".md")),
            )$(.$flag())*;
        )+

        /// The rules of this kind.
        pub const RULES: &[$crate::api::rule::Rule] = &[$($name),+];
    };
}

pub use rules;

/// Rules that are set together: `spec.rules[].group` of the Interlock object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleGroup {
    /// The inputs of a running plan do not change.
    Freeze,
    /// Parameters are known, of their type, and immutable where declared so.
    Parameters,
    /// One change runs one plan.
    Plans,
    /// Upgrades follow permitted paths.
    Upgrades,
    /// OperatorVersions are valid, and not deleted while they are used.
    Versions,
    /// OperatorVersions that are referred to are there. Where they need not be, they are waited for.
    References,
    /// The router flavor of a gateway changes in steps that work.
    Flavors,
    /// Policies of the Gateway API can act.
    Policies,
    /// Routes are guarded by policies. Off where no setting says otherwise.
    Coverage,
    /// Interlock's records, without which running plans are unknown. Always denied.
    Lock,
    /// Requests that cannot be executed, or that the user may not make. Always denied.
    Requests,
}

impl RuleGroup {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Freeze,
        Self::Parameters,
        Self::Plans,
        Self::Upgrades,
        Self::Versions,
        Self::References,
        Self::Flavors,
        Self::Policies,
        Self::Coverage,
        Self::Lock,
        Self::Requests,
    ];

    /// The stable id.
    pub fn id(self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Parameters => "parameters",
            Self::Plans => "plans",
            Self::Upgrades => "upgrades",
            Self::Versions => "versions",
            Self::References => "references",
            Self::Flavors => "flavors",
            Self::Policies => "policies",
            Self::Coverage => "coverage",
            Self::Lock => "lock",
            Self::Requests => "requests",
        }
    }

    /// Whether its rules may be made to warn, or be switched off.
    pub fn can_be_set(self) -> bool {
        !matches!(self, Self::Lock | Self::Requests)
    }

    /// The group of that id.
    pub fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.id() == id)
    }

    /// The page of one of its rules, where each has a page of its own.
    pub const fn page(self, own: &'static str) -> &'static str {
        match self {
            Self::Flavors => "docs/router-flavor.md",
            _ => own,
        }
    }
}
