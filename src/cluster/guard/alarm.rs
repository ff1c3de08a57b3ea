//! When people are told how a guard stands. Pure; times count from the start of the process.

use std::time::Duration;

use super::standing::Guard;

/// How long a fault stands before it is told: what is replaced is away for a moment.
const SETTLE: Duration = Duration::from_secs(2);
/// How long what was never seen intact may be on its way: an installation or an upgrade is not
/// applied all at once.
const INSTALLING: Duration = Duration::from_secs(30);

/// What was told of one object.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    told: Option<Guard>,
    broken_since: Option<Duration>,
}

/// What an object comes to now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look<'a> {
    /// There is nothing new.
    Still,
    /// It stands so; what was told before is not so any more.
    Tell(&'a Guard),
    /// Broken; to be told then, if it stays so.
    Wait(Duration),
}

impl Alarm {
    /// What was told last.
    pub(super) fn told(&self) -> Option<&Guard> {
        self.told.as_ref()
    }

    /// Looks at how it stands.
    pub(super) fn look<'a>(&mut self, guard: &'a Guard, now: Duration) -> Look<'a> {
        let due = match guard {
            Guard::Unknown => return Look::Still,
            Guard::Intact => {
                self.broken_since = None;
                now
            }
            Guard::Broken(_) => {
                let settled = *self.broken_since.get_or_insert(now) + SETTLE;
                match self.told {
                    None => settled.max(INSTALLING),
                    Some(_) => settled,
                }
            }
        };
        if self.told.as_ref() == Some(guard) {
            return Look::Still;
        }
        if now < due {
            return Look::Wait(due);
        }
        self.told = Some(guard.clone());
        Look::Tell(guard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn broken(why: &str) -> Guard {
        Guard::Broken(why.to_owned())
    }

    #[test]
    fn an_installation_that_comes_after_the_process_is_no_fault() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.look(&Guard::Unknown, at(0)), Look::Still);
        assert_eq!(alarm.look(&broken("absent"), at(1)), Look::Wait(INSTALLING));
        assert_eq!(alarm.look(&broken("old"), at(20)), Look::Wait(INSTALLING));
        assert_eq!(alarm.look(&Guard::Intact, at(29)), Look::Tell(&Guard::Intact));
        assert_eq!(alarm.look(&Guard::Intact, at(31)), Look::Still);
    }

    #[test]
    fn what_never_comes_is_told() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.look(&broken("absent"), at(1)), Look::Wait(INSTALLING));
        assert_eq!(alarm.look(&broken("absent"), INSTALLING), Look::Tell(&broken("absent")));
        assert_eq!(alarm.look(&broken("absent"), at(40)), Look::Still);
        assert_eq!(alarm.look(&broken("other"), at(41)), Look::Tell(&broken("other")));
        assert_eq!(alarm.told(), Some(&broken("other")));
    }

    #[test]
    fn what_was_intact_is_told_as_soon_as_it_has_settled() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.look(&Guard::Intact, at(1)), Look::Tell(&Guard::Intact));
        assert_eq!(alarm.look(&broken("absent"), at(5)), Look::Wait(at(5) + SETTLE));
        assert_eq!(alarm.look(&broken("edited"), at(6)), Look::Wait(at(5) + SETTLE), "not put off");
        assert_eq!(alarm.look(&broken("edited"), at(5) + SETTLE), Look::Tell(&broken("edited")));
        assert_eq!(alarm.look(&Guard::Intact, at(9)), Look::Tell(&Guard::Intact));
    }

    #[test]
    fn what_is_replaced_is_no_fault() {
        let mut alarm = Alarm::default();
        alarm.look(&Guard::Intact, at(1));
        assert_eq!(alarm.look(&broken("absent"), at(5)), Look::Wait(at(5) + SETTLE));
        assert_eq!(alarm.look(&Guard::Intact, at(6)), Look::Still);
        assert_eq!(alarm.look(&broken("absent"), at(7)), Look::Wait(at(7) + SETTLE), "a new fault");
    }
}
