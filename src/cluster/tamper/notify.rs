//! When to notify people about the state of a guard object. Pure; times count from process start.

use std::time::Duration;

use super::state::GuardState;

/// How long a fault lasts before it is reported: a replaced object is absent for a moment.
const FAULT_DELAY: Duration = Duration::from_secs(2);
/// Grace period for an object never seen intact: an installation or an upgrade is not applied all at once.
const INSTALLATION_GRACE: Duration = Duration::from_secs(30);

/// The last notification about one object.
#[derive(Debug, Default)]
pub(super) struct TamperAlarm {
    reported: Option<GuardState>,
    broken_since: Option<Duration>,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notification<'a> {
    /// No change.
    Unchanged,
    /// Report this state; it replaces the last one.
    Report(&'a GuardState),
    /// Broken; report it at this time if it is still broken.
    Wait(Duration),
}

impl TamperAlarm {
    /// The last reported state.
    pub(super) fn reported(&self) -> Option<&GuardState> {
        self.reported.as_ref()
    }

    /// Compares the current state with the last reported one.
    pub(super) fn check<'a>(&mut self, guard: &'a GuardState, now: Duration) -> Notification<'a> {
        let due = match guard {
            GuardState::Unknown => return Notification::Unchanged,
            GuardState::Intact => {
                self.broken_since = None;
                now
            }
            GuardState::Broken(_) => {
                let due = *self.broken_since.get_or_insert(now) + FAULT_DELAY;
                match self.reported {
                    None => due.max(INSTALLATION_GRACE),
                    Some(_) => due,
                }
            }
        };
        if self.reported.as_ref() == Some(guard) {
            return Notification::Unchanged;
        }
        if now < due {
            return Notification::Wait(due);
        }
        self.reported = Some(guard.clone());
        Notification::Report(guard)
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
        assert_eq!(alarm.check(&GuardState::Unknown, at(0)), Notification::Unchanged);
        assert_eq!(alarm.check(&broken("absent"), at(1)), Notification::Wait(INSTALLATION_GRACE));
        assert_eq!(alarm.check(&broken("old"), at(20)), Notification::Wait(INSTALLATION_GRACE));
        assert_eq!(alarm.check(&GuardState::Intact, at(29)), Notification::Report(&GuardState::Intact));
        assert_eq!(alarm.check(&GuardState::Intact, at(31)), Notification::Unchanged);
    }

    #[test]
    fn an_object_that_never_appears_is_reported() {
        let mut alarm = TamperAlarm::default();
        assert_eq!(alarm.check(&broken("absent"), at(1)), Notification::Wait(INSTALLATION_GRACE));
        assert_eq!(
            alarm.check(&broken("absent"), INSTALLATION_GRACE),
            Notification::Report(&broken("absent"))
        );
        assert_eq!(alarm.check(&broken("absent"), at(40)), Notification::Unchanged);
        assert_eq!(alarm.check(&broken("other"), at(41)), Notification::Report(&broken("other")));
        assert_eq!(alarm.reported(), Some(&broken("other")));
    }

    #[test]
    fn a_lasting_fault_of_an_intact_object_is_reported_at_once() {
        let mut alarm = TamperAlarm::default();
        assert_eq!(alarm.check(&GuardState::Intact, at(1)), Notification::Report(&GuardState::Intact));
        assert_eq!(alarm.check(&broken("absent"), at(5)), Notification::Wait(at(5) + FAULT_DELAY));
        assert_eq!(
            alarm.check(&broken("edited"), at(6)),
            Notification::Wait(at(5) + FAULT_DELAY),
            "not put off"
        );
        assert_eq!(
            alarm.check(&broken("edited"), at(5) + FAULT_DELAY),
            Notification::Report(&broken("edited"))
        );
        assert_eq!(alarm.check(&GuardState::Intact, at(9)), Notification::Report(&GuardState::Intact));
    }

    #[test]
    fn what_is_replaced_is_no_fault() {
        let mut alarm = TamperAlarm::default();
        alarm.check(&GuardState::Intact, at(1));
        assert_eq!(alarm.check(&broken("absent"), at(5)), Notification::Wait(at(5) + FAULT_DELAY));
        assert_eq!(alarm.check(&GuardState::Intact, at(6)), Notification::Unchanged);
        assert_eq!(
            alarm.check(&broken("absent"), at(7)),
            Notification::Wait(at(7) + FAULT_DELAY),
            "a new fault"
        );
    }
}
