//! When to notify people about the state of a guard object. Pure; times count from process start.

use std::time::Duration;

use super::state::GuardState;

/// How long a fault lasts before it is reported: a replaced object is absent for a moment.
const SETTLE: Duration = Duration::from_secs(2);
/// Grace period for an object never seen intact: an installation or an upgrade is not applied all at once.
const INSTALLING: Duration = Duration::from_secs(30);

/// The last notification about one object.
#[derive(Debug, Default)]
pub(super) struct TamperAlarm {
    told: Option<GuardState>,
    broken_since: Option<Duration>,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notification<'a> {
    /// No change.
    Still,
    /// Report this state; it replaces the last one.
    Tell(&'a GuardState),
    /// Broken; report it at this time if it is still broken.
    Wait(Duration),
}

impl TamperAlarm {
    /// The last reported state.
    pub(super) fn told(&self) -> Option<&GuardState> {
        self.told.as_ref()
    }

    /// Compares the current state with the last reported one.
    pub(super) fn look<'a>(&mut self, guard: &'a GuardState, now: Duration) -> Notification<'a> {
        let due = match guard {
            GuardState::Unknown => return Notification::Still,
            GuardState::Intact => {
                self.broken_since = None;
                now
            }
            GuardState::Broken(_) => {
                let settled = *self.broken_since.get_or_insert(now) + SETTLE;
                match self.told {
                    None => settled.max(INSTALLING),
                    Some(_) => settled,
                }
            }
        };
        if self.told.as_ref() == Some(guard) {
            return Notification::Still;
        }
        if now < due {
            return Notification::Wait(due);
        }
        self.told = Some(guard.clone());
        Notification::Tell(guard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn broken(why: &str) -> GuardState {
        GuardState::Broken(why.to_owned())
    }

    #[test]
    fn an_installation_that_comes_after_the_process_is_no_fault() {
        let mut alarm = TamperAlarm::default();
        assert_eq!(alarm.look(&GuardState::Unknown, at(0)), Notification::Still);
        assert_eq!(alarm.look(&broken("absent"), at(1)), Notification::Wait(INSTALLING));
        assert_eq!(alarm.look(&broken("old"), at(20)), Notification::Wait(INSTALLING));
        assert_eq!(alarm.look(&GuardState::Intact, at(29)), Notification::Tell(&GuardState::Intact));
        assert_eq!(alarm.look(&GuardState::Intact, at(31)), Notification::Still);
    }

    #[test]
    fn what_never_comes_is_told() {
        let mut alarm = TamperAlarm::default();
        assert_eq!(alarm.look(&broken("absent"), at(1)), Notification::Wait(INSTALLING));
        assert_eq!(alarm.look(&broken("absent"), INSTALLING), Notification::Tell(&broken("absent")));
        assert_eq!(alarm.look(&broken("absent"), at(40)), Notification::Still);
        assert_eq!(alarm.look(&broken("other"), at(41)), Notification::Tell(&broken("other")));
        assert_eq!(alarm.told(), Some(&broken("other")));
    }

    #[test]
    fn what_was_intact_is_told_as_soon_as_it_has_settled() {
        let mut alarm = TamperAlarm::default();
        assert_eq!(alarm.look(&GuardState::Intact, at(1)), Notification::Tell(&GuardState::Intact));
        assert_eq!(alarm.look(&broken("absent"), at(5)), Notification::Wait(at(5) + SETTLE));
        assert_eq!(alarm.look(&broken("edited"), at(6)), Notification::Wait(at(5) + SETTLE), "not put off");
        assert_eq!(alarm.look(&broken("edited"), at(5) + SETTLE), Notification::Tell(&broken("edited")));
        assert_eq!(alarm.look(&GuardState::Intact, at(9)), Notification::Tell(&GuardState::Intact));
    }

    #[test]
    fn what_is_replaced_is_no_fault() {
        let mut alarm = TamperAlarm::default();
        alarm.look(&GuardState::Intact, at(1));
        assert_eq!(alarm.look(&broken("absent"), at(5)), Notification::Wait(at(5) + SETTLE));
        assert_eq!(alarm.look(&GuardState::Intact, at(6)), Notification::Still);
        assert_eq!(alarm.look(&broken("absent"), at(7)), Notification::Wait(at(7) + SETTLE), "a new fault");
    }
}
