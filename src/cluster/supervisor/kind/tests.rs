use super::super::state::Sight;
use super::*;
use crate::cluster::crds::Identity;

/// A kind over time; whoever needs it is a capability unless said otherwise.
struct Course {
    kind: Watched,
    now: Instant,
    epoch: u64,
}

fn usable(uid: &str, version: &str) -> Usable {
    Usable {
        identity: Identity { uid: uid.to_owned(), version: version.to_owned() },
        plural: "filters".to_owned(),
        namespaced: true,
        leaving: false,
    }
}

const CAPABILITY: Needer = Needer::Capability("test");
const WHOLE: Reach = Reach { all: true, whole: true };
const PART: Reach = Reach { all: false, whole: false };

impl Course {
    fn new() -> Self {
        let now = Instant::now();
        let mut kind = Watched::new(1, now);
        kind.need(CAPABILITY, WHOLE);
        Self { kind, now, epoch: 0 }
    }

    /// A kind that is listed and watched.
    fn synced() -> Self {
        let mut course = Self::new();
        assert!(matches!(course.look(Ok(usable("u1", "v1"))), Some(Act::Open { .. })));
        course.report(Report::Flowing);
        assert_eq!(course.sight(), Sight::Synced);
        course
    }

    fn look(&mut self, found: Result<Usable, Absence>) -> Option<Act> {
        let act = self.kind.look(found, self.now, Epoch(self.epoch + 1));
        if act.is_some() {
            self.epoch += 1;
        }
        act
    }

    fn report(&mut self, report: Report) {
        self.kind.report(Epoch(self.epoch), 0, report, self.now);
    }

    fn sight(&self) -> Sight {
        self.kind.sight(self.now)
    }

    fn later(&mut self, by: Duration) {
        self.now += by;
    }
}

#[tokio::test]
async fn a_definition_that_is_made_anew_is_another_world_and_another_watch() {
    let mut course = Course::synced();
    let world = course.kind.world();
    assert_eq!(course.look(Ok(usable("u1", "v1"))), None, "nothing new");
    let Some(Act::Open { epoch, .. }) = course.look(Ok(usable("u2", "v1"))) else { panic!("opened anew") };
    assert_eq!((epoch, course.sight()), (Epoch(2), Sight::Listing));
    assert_ne!(course.kind.world(), world);
    course.kind.report(Epoch(1), 0, Report::Flowing, course.now);
    assert_eq!(course.sight(), Sight::Listing, "what the old watch says does not count");
    course.report(Report::Flowing);
    assert_eq!(course.sight(), Sight::Synced);
    assert!(matches!(course.look(Ok(usable("u2", "v2"))), Some(Act::Open { .. })), "another version too");
}

#[tokio::test]
async fn only_a_definition_that_is_gone_takes_its_objects_along() {
    let absences = [
        Absence::NotEstablished("names are taken".to_owned()),
        Absence::NotServed { wanted: vec!["v1".to_owned()], served: vec![] },
        Absence::OtherScope,
    ];
    for absence in absences {
        let mut course = Course::synced();
        assert_eq!(course.look(Err(absence.clone())), Some(Act::Close), "frozen, not forgotten");
        assert_eq!(course.sight(), Sight::Absent(absence));
        assert_eq!(course.look(Err(Absence::Missing)), Some(Act::Gone));
        assert_eq!(course.look(Err(Absence::Missing)), None);
    }
}

#[tokio::test]
async fn a_refusal_is_shown_at_once_and_tried_again_with_a_bounded_pause() {
    let mut course = Course::synced();
    let mut pauses = Vec::new();
    for _ in 0..8 {
        course.report(Report::Refused(Verb::Watch));
        assert_eq!(course.sight(), Sight::Forbidden(Verb::Watch));
        assert_eq!(course.look(Ok(usable("u1", "v1"))), None, "not at once");
        let due = course.kind.due(course.now).expect("it is tried again");
        pauses.push(due - course.now);
        course.now = due;
        assert!(matches!(course.look(Ok(usable("u1", "v1"))), Some(Act::Open { .. })));
        assert_eq!(course.sight(), Sight::Forbidden(Verb::Watch), "until it is seen to flow");
    }
    assert_eq!(pauses.first(), Some(&AFTER_REFUSAL));
    assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
    course.report(Report::Flowing);
    assert_eq!(course.sight(), Sight::Synced);
}

#[tokio::test]
async fn a_hiccup_is_not_told_and_trouble_is() {
    let mut course = Course::synced();
    course.report(Report::Trouble("500".to_owned()));
    assert_eq!(course.sight(), Sight::Synced);
    course.later(HICCUP);
    assert_eq!(course.sight(), Sight::Broken("500".to_owned()));
    course.report(Report::Flowing);
    assert_eq!(course.sight(), Sight::Synced);
}

#[tokio::test]
async fn a_404_is_a_hint_and_the_table_decides() {
    let mut course = Course::new();
    let _ = course.look(Ok(usable("u1", "v1")));
    for _ in 0..4 {
        course.report(Report::NotFound);
        assert_eq!(course.sight(), Sight::Listing, "the endpoint lags behind its definition");
        course.now = course.kind.due(course.now).expect("it is tried again");
        assert!(matches!(course.look(Ok(usable("u1", "v1"))), Some(Act::Open { .. })));
    }
    course.later(LAG);
    assert!(matches!(course.sight(), Sight::Broken(_)));
    assert_eq!(course.look(Err(Absence::Missing)), Some(Act::Gone));
}

#[tokio::test]
async fn one_watch_serves_all_who_need_the_kind() {
    let mut course = Course::synced();
    let package = Needer::Package(NamespacedName::new("ns", "package"));
    course.kind.need(package.clone(), PART);
    assert_eq!(course.look(Ok(usable("u1", "v1"))), None, "the wide watch covers it");
    course.kind.release(&CAPABILITY, course.now);
    assert_eq!(course.look(Ok(usable("u1", "v1"))), None, "it stays as it is");
    course.kind.release(&package, course.now);
    course.later(GRACE - Duration::from_secs(1));
    assert_eq!(course.look(Ok(usable("u1", "v1"))), None, "somebody may need it again");
    course.kind.need(package.clone(), PART);
    course.kind.release(&package, course.now);
    course.later(GRACE);
    assert_eq!(course.look(Ok(usable("u1", "v1"))), Some(Act::Forget));
    assert!(course.kind.is_done());
}

#[tokio::test]
async fn who_needs_more_gets_a_wider_watch() {
    let mut course = Course::new();
    course.kind.release(&CAPABILITY, course.now);
    course.kind.need(Needer::Package(NamespacedName::new("ns", "package")), PART);
    let Some(Act::Open { reach, .. }) = course.look(Ok(usable("u1", "v1"))) else { panic!("opened") };
    assert_eq!(reach, PART);
    course.report(Report::Flowing);
    course.kind.need(CAPABILITY, WHOLE);
    let Some(Act::Open { reach, .. }) = course.look(Ok(usable("u1", "v1"))) else { panic!("opened wider") };
    assert_eq!((reach, course.sight()), (WHOLE, Sight::Listing));
}

#[tokio::test]
async fn a_kind_in_several_namespaces_is_seen_when_all_are() {
    let now = Instant::now();
    let mut kind = Watched::new(2, now);
    kind.need(CAPABILITY, WHOLE);
    let _ = kind.look(Ok(usable("u1", "v1")), now, Epoch(1));
    kind.report(Epoch(1), 0, Report::Flowing, now);
    assert_eq!(kind.sight(now), Sight::Listing);
    kind.report(Epoch(1), 1, Report::Flowing, now);
    assert_eq!(kind.sight(now), Sight::Synced);
    kind.report(Epoch(1), 1, Report::Refused(Verb::List), now);
    assert_eq!(kind.sight(now), Sight::Forbidden(Verb::List));
}
