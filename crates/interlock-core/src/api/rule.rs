//! The rules of admission: stable ids, each explained on a page of `docs/`.

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $variant:ident = $id:literal in $group:ident),+ $(,)?) => {
        /// A rule; its id is part of denials, metrics and audit annotations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[doc = $doc])+ $variant),+
        }

        impl Rule {
            /// All of them.
            pub const ALL: &[Rule] = &[$(Rule::$variant),+];

            /// The stable id.
            pub fn id(self) -> &'static str {
                match self { $(Rule::$variant => $id),+ }
            }

            /// The group that settings name it by.
            pub fn group(self) -> RuleGroup {
                match self { $(Rule::$variant => RuleGroup::$group),+ }
            }

            /// The page that explains it.
            pub fn page(self) -> &'static str {
                match (self, self.group()) {
                    (_, RuleGroup::Flavors) => "docs/router-flavor.md",
                    $((Rule::$variant, _) => concat!("docs/denials/", $id, ".md")),+
                }
            }
        }
    };
}

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
    /// The router flavor of a gateway changes in steps that work.
    Flavors,
    /// Interlock's records, without which running plans are unknown. Always denied.
    Lock,
    /// Requests that cannot be executed, or that the user may not make. Always denied.
    Requests,
}

impl RuleGroup {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Freeze,
        Self::Parameters,
        Self::Plans,
        Self::Upgrades,
        Self::Versions,
        Self::Flavors,
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
            Self::Flavors => "flavors",
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

    /// Its rules.
    pub fn rules(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.iter().copied().filter(move |rule| rule.group() == self)
    }
}

impl Rule {
    /// Whether a request that it denies now may be allowed later, unchanged: it waits for a plan or
    /// a deletion to end, or for a missing object.
    pub fn passes(self) -> bool {
        matches!(
            self,
            Self::PlanRunning
                | Self::PlanCancel
                | Self::PlanOverride
                | Self::FinalizerKept
                | Self::InstanceDeleting
                | Self::SpecDrift
                | Self::VersionMissing
                | Self::VersionFrozen
                | Self::VersionInUse
        )
    }
}

impl Rule {
    /// Whether it reads other objects than the one that is written: where it cannot read them, it
    /// only warns.
    pub fn reads_others(self) -> bool {
        matches!(
            self,
            Self::PlanUnknown
                | Self::PlanMultiple
                | Self::ParameterUnknown
                | Self::ParameterImmutable
                | Self::ParameterInvalid
                | Self::UpgradePath
                | Self::UpgradeAndEdit
                | Self::VersionMissing
                | Self::VersionFrozen
                | Self::VersionInUse
                | Self::MutationMissing
        )
    }
}

rules! {
    /// The spec is frozen while a plan is scheduled or runs.
    PlanRunning = "plan-running" in Freeze,
    /// Emptying planExecution must not cancel a scheduled or running plan.
    PlanCancel = "plan-cancel" in Lock,
    /// Writing planExecution must not replace or restart a scheduled or running plan.
    PlanOverride = "plan-override" in Lock,
    /// Only the bookkeeping user writes `planExecution.status`.
    PlanStatus = "plan-status" in Lock,
    /// A plan is triggered directly, or by a change of the spec, never both at once.
    PlanAndEdit = "plan-and-edit" in Requests,
    /// A plan that is triggered must exist.
    PlanUnknown = "plan-unknown" in Requests,
    /// A change triggers at most one plan.
    PlanMultiple = "plan-multiple" in Plans,
    /// The `cleanup` plan runs at deletion only.
    PlanCleanup = "plan-cleanup" in Requests,
    /// planExecution carries the uid that mutation computed.
    PlanUid = "plan-uid" in Lock,
    /// Parameters must be defined by the OperatorVersion.
    ParameterUnknown = "parameter-unknown" in Parameters,
    /// Immutable parameters keep their values.
    ParameterImmutable = "parameter-immutable" in Parameters,
    /// Values of parameters have the type that the OperatorVersion declares.
    ParameterInvalid = "parameter-invalid" in Parameters,
    /// An upgrade keeps the operator, does not lower the version, and follows `upgradableFrom`.
    UpgradePath = "upgrade-path" in Upgrades,
    /// An upgrade is not mixed with a change that triggers another plan.
    UpgradeAndEdit = "upgrade-and-edit" in Plans,
    /// The OperatorVersion must exist.
    VersionMissing = "version-missing" in Requests,
    /// Only users who may read an OperatorVersion of another namespace may use it.
    VersionNamespace = "version-namespace" in Requests,
    /// An OperatorVersion in use by a locked Instance is frozen.
    VersionFrozen = "version-frozen" in Freeze,
    /// An OperatorVersion in use is not deleted.
    VersionInUse = "version-in-use" in Versions,
    /// The references of an OperatorVersion must exist.
    VersionInvalid = "version-invalid" in Versions,
    /// The spec of an Instance that is being deleted does not change.
    InstanceDeleting = "instance-deleting" in Lock,
    /// The cleanup finalizer stays while a plan is scheduled or runs.
    FinalizerKept = "finalizer-kept" in Lock,
    /// Only Interlock writes the last-applied spec.
    StampMismatch = "stamp-mismatch" in Lock,
    /// Only Interlock writes the history of runs.
    HistoryOwner = "history-owner" in Lock,
    /// The object must carry the result of mutation.
    MutationMissing = "mutation-missing" in Lock,
    /// An edit that bypassed admission waits for validation.
    SpecDrift = "spec-drift" in Lock,
    /// Only Interlock writes `status.planStatus` and its own conditions.
    StatusOwner = "status-owner" in Lock,
    /// A plan request must be well formed, and apply to its run.
    VerbRequest = "verb-request" in Lock,
    /// A user who makes a plan request needs the right to its verb.
    VerbRights = "verb-rights" in Lock,
    /// The request cannot be evaluated.
    RequestUnknown = "request-unknown" in Requests,
    /// A DataPlane names the image of its container `proxy`.
    DataPlaneImage = "dataplane-image" in Requests,
    /// A DataPlane has no database.
    DataPlaneDatabase = "dataplane-database" in Requests,
    /// Kong listens on the ports that a DataPlane's Service leads to.
    DataPlanePorts = "dataplane-ports" in Requests,
    /// The value is a router flavor.
    FlavorInvalid = "RF01" in Flavors,
    /// A rolling change of flavor must not deadlock or lose routes.
    FlavorInPlace = "RF02" in Flavors,
    /// Flavors change one step at a time.
    FlavorSkip = "RF03" in Flavors,
    /// `expressions` needs Kong 3.4.
    FlavorVersion = "RF04" in Flavors,
    /// Routes that the new flavor does not serve.
    FlavorRoutes = "RF05" in Flavors,
    /// One staged step at a time.
    FlavorStaged = "RF06" in Flavors,
    /// A staged flavor must not reach live pods directly.
    FlavorUnstaged = "RF07" in Flavors,
    /// A version of Kong that does not know fields beside expressions.
    FlavorFields = "RF08" in Flavors,
    /// Another engine of regular expressions.
    FlavorRegex = "RF09" in Flavors,
    /// The flavor cannot be determined.
    FlavorUntold = "RF10" in Flavors,
    /// Another version of Kong routes differently.
    FlavorImage = "RF12" in Flavors,
    /// `traditional` is deprecated.
    FlavorDeprecated = "RF13" in Flavors,
    /// A variable without an effect.
    FlavorNoEffect = "RF14" in Flavors,
    /// A variable, and a file beside it.
    FlavorExclusive = "RF15" in Flavors,
    /// Two entries that differ.
    FlavorTwice = "RF16" in Flavors,
    /// The configuration producer has to follow.
    FlavorProducer = "RF17" in Flavors,
    /// A ConfigMap or Secret changes the flavor of gateways.
    FlavorSource = "RF18" in Flavors,
    /// Allowed, as no pod runs.
    FlavorAllowed = "RF19" in Flavors,
    /// The preview needs a configuration producer of its own.
    FlavorPreview = "RF20" in Flavors,
    /// One configuration producer, one dialect.
    FlavorDialects = "RF21" in Flavors,
}
