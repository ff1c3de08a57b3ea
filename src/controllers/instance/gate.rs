//! When the Instance controller works: while this process leads, as far as the supervisor assigns.

use tokio::sync::watch;

use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{Assignment, Handle, Work};
use crate::controllers::capabilities::INSTANCES;
use crate::runtime::controller::Gate;
use crate::runtime::gate::LeaderEpoch;

/// What the controller may do until its gate changes.
#[derive(Clone, Copy, Debug)]
pub struct InstanceTerm {
    /// The leader epoch. Work begun in one epoch never continues in another.
    pub epoch: LeaderEpoch,
    /// The work that the supervisor assigned; not [`Work::None`].
    pub work: Work,
}

/// The gate; reports to the supervisor what work begins.
pub struct InstanceGate {
    supervisor: Handle,
    leadership: watch::Receiver<Leadership>,
    work: watch::Receiver<Assignment>,
    epoch: Option<LeaderEpoch>,
}

impl InstanceGate {
    /// The gate of the controller with this assignment.
    pub fn new(
        supervisor: Handle,
        leadership: watch::Receiver<Leadership>,
        work: watch::Receiver<Assignment>,
    ) -> Self {
        Self { supervisor, leadership, work, epoch: None }
    }
}

impl Gate for InstanceGate {
    type Term = InstanceTerm;

    fn term(&mut self) -> Option<InstanceTerm> {
        let assignment = *self.work.borrow_and_update();
        self.epoch = self.leadership.borrow_and_update().leader_epoch();
        // No work now, or this much is about to start.
        let work = if self.epoch.is_some() { assignment.work } else { Work::None };
        self.supervisor.at_work(INSTANCES, assignment, work);
        let epoch = self.epoch.filter(|_| work != Work::None)?;
        Some(InstanceTerm { epoch, work })
    }

    async fn changed(&mut self) -> bool {
        let epoch = self.epoch;
        // An error means that the elector or the supervisor is gone, and the process with it.
        tokio::select! {
            changed = self.leadership.wait_for(|now| now.leader_epoch() != epoch) => changed.is_ok(),
            changed = self.work.changed() => changed.is_ok(),
        }
    }
}
