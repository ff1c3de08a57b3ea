//! The rules that users meet: stable ids, each with a page in `docs/denials/`.

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $variant:ident = $id:literal),+ $(,)?) => {
        /// A rule; its id is part of refusals, metrics, audit annotations and the name of its page.
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

            /// The page that explains it.
            pub fn page(self) -> &'static str {
                match self { $(Rule::$variant => concat!("docs/denials/", $id, ".md")),+ }
            }
        }
    };
}

impl Rule {
    /// Whether what it refuses now may be allowed later, though the request stays as it is: it
    /// waits for a plan or a deletion to end, or for what is not there yet.
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

rules! {
    /// The spec is frozen while a plan is scheduled or runs.
    PlanRunning = "plan-running",
    /// A scheduled or running plan is not cancelled by emptying planExecution.
    PlanCancel = "plan-cancel",
    /// A scheduled or running plan is not replaced or restarted by writing planExecution.
    PlanOverride = "plan-override",
    /// Only the bookkeeping user writes `planExecution.status`.
    PlanStatus = "plan-status",
    /// A plan is triggered directly, or by a change of the spec, never both at once.
    PlanAndEdit = "plan-and-edit",
    /// A plan that is triggered must exist.
    PlanUnknown = "plan-unknown",
    /// A change triggers at most one plan.
    PlanMultiple = "plan-multiple",
    /// The `cleanup` plan runs at deletion only.
    PlanCleanup = "plan-cleanup",
    /// planExecution carries the uid that mutation computed.
    PlanUid = "plan-uid",
    /// Parameters must be defined by the OperatorVersion.
    ParameterUnknown = "parameter-unknown",
    /// Immutable parameters keep their values.
    ParameterImmutable = "parameter-immutable",
    /// Values of parameters have the type that the OperatorVersion says.
    ParameterInvalid = "parameter-invalid",
    /// An upgrade stays with its operator, goes up, and follows `upgradableFrom`.
    UpgradePath = "upgrade-path",
    /// An upgrade is not mixed with a change that triggers another plan.
    UpgradeAndEdit = "upgrade-and-edit",
    /// The OperatorVersion must exist.
    VersionMissing = "version-missing",
    /// The OperatorVersion lives in the namespace of the Instance.
    VersionNamespace = "version-namespace",
    /// An OperatorVersion in use by a locked Instance is frozen.
    VersionFrozen = "version-frozen",
    /// An OperatorVersion in use is not deleted.
    VersionInUse = "version-in-use",
    /// What an OperatorVersion refers to must be there.
    VersionInvalid = "version-invalid",
    /// The spec of an Instance that is being deleted does not change.
    InstanceDeleting = "instance-deleting",
    /// The cleanup finalizer stays while a plan is scheduled or runs.
    FinalizerKept = "finalizer-kept",
    /// The stamp is written by Interlock only.
    StampMismatch = "stamp-mismatch",
    /// The object must be as mutation makes it.
    MutationMissing = "mutation-missing",
    /// An edit that admission never saw waits to be judged.
    SpecDrift = "spec-drift",
    /// `status.planStatus` and Interlock's conditions are written by Interlock only.
    StatusOwner = "status-owner",
    /// What was sent cannot be judged.
    RequestUnknown = "request-unknown",
}
