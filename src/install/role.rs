//! How the roles are spread over Deployments.

use interlock_core::api::meta::install;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeploymentRole {
    All,
    Webhook,
    Controller,
}

impl DeploymentRole {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Webhook => "webhook",
            Self::Controller => "controller",
        }
    }

    /// Name of the Deployment, and of the service account that it runs as.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All | Self::Controller => install::NAME,
            Self::Webhook => install::WEBHOOK_NAME,
        }
    }

    pub(super) fn serves(self) -> bool {
        !matches!(self, Self::Controller)
    }

    /// Value of the component label; a Deployment keeps its selector when its role changes.
    pub(super) fn component(self) -> &'static str {
        match self {
            Self::All | Self::Controller => "controller",
            Self::Webhook => "webhook",
        }
    }
}
