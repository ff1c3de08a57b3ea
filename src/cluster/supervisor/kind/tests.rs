use interlock_core::api::object::NamespacedName;
use rstest::rstest;

use super::super::state::WatchState;
use super::*;
use crate::cluster::crds::Identity;
use crate::cluster::supervisor::watch_request::ResourceNames;

/// A kind over time; its requester is a capability unless a test names another.
struct Course {
    kind: WatchedKind,
    now: Instant,
    epoch: u64,
}

fn usable(uid: &str, version: &str) -> Usable {
    Usable {
        identity: Identity { uid: uid.to_owned(), version: version.to_owned(), dropped: Vec::new() },
        plural: "filters".to_owned(),
        namespaced: true,
        served: vec![version.to_owned()],
        terminating: false,
        status_fields: None,
    }
}

/// Served at several versions, and used at the first.
fn served(versions: &[&str]) -> Result<Usable, Absence> {
    Ok(Usable { served: owned(versions), ..usable("u1", versions[0]) })
}

fn owned(versions: &[&str]) -> Vec<String> {
    versions.iter().map(|version| (*version).to_owned()).collect()
}

fn request(scope: WatchScope, versions: &[&str]) -> WatchRequest {
    WatchRequest { versions: owned(versions), names: None, scope }
}

fn package() -> KindRequester {
    KindRequester::Package(NamespacedName::new("ns", "package"))
}

fn absent(wanted: &[&str], served: &[&str]) -> WatchState {
    WatchState::Absent(Absence::NotServed { wanted: owned(wanted), served: owned(served) })
}

const CAPABILITY: KindRequester = KindRequester::Capability("test");
const WHOLE: WatchScope = WatchScope { all: true, whole: true, managed_fields: false };
const PART: WatchScope = WatchScope { all: false, whole: false, managed_fields: false };

impl Course {
    fn new() -> Self {
        let now = Instant::now();
        let mut kind = WatchedKind::new(1, now);
        kind.request(CAPABILITY, request(WHOLE, &["v1", "v2"]));
        Self { kind, now, epoch: 0 }
    }

    /// A kind that is listed and watched.
    fn synced() -> Self {
        let mut course = Self::new();
        assert!(matches!(course.step(Ok(usable("u1", "v1"))), Some(WatchAction::Open { .. })));
        course.report(KindReport::Opened);
        assert_eq!(course.watch_state(), WatchState::Synced);
        course
    }

    fn step(&mut self, found: Result<Usable, Absence>) -> Option<WatchAction> {
        let execute = self.kind.step(found, self.now, Epoch(self.epoch + 1));
        if execute.is_some() {
            self.epoch += 1;
        }
        execute
    }

    fn report(&mut self, report: KindReport) {
        self.kind.report(Epoch(self.epoch), 0, report, self.now);
    }

    fn watch_state(&self) -> WatchState {
        self.kind.state_for(&CAPABILITY, self.now)
    }

    fn later(&mut self, by: Duration) {
        self.now += by;
    }
}

#[tokio::test]
async fn a_definition_that_is_created_anew_has_another_identity_and_another_watch() {
    let mut course = Course::synced();
    let crd_identity = course.kind.crd_identity();
    assert_eq!(course.step(Ok(usable("u1", "v1"))), None, "nothing new");
    let Some(WatchAction::Open { epoch, .. }) = course.step(Ok(usable("u2", "v1"))) else {
        panic!("opened anew")
    };
    assert_eq!((epoch, course.watch_state()), (Epoch(2), WatchState::Listing));
    assert_ne!(course.kind.crd_identity(), crd_identity);
    course.kind.report(Epoch(1), 0, KindReport::Opened, course.now);
    assert_eq!(course.watch_state(), WatchState::Listing, "what the old watch says does not count");
    course.report(KindReport::Opened);
    assert_eq!(course.watch_state(), WatchState::Synced);
    assert!(
        matches!(course.step(Ok(usable("u2", "v2"))), Some(WatchAction::Open { .. })),
        "another version too"
    );
}

#[tokio::test]
async fn only_a_definition_that_is_gone_takes_its_objects_along() {
    let absences = [
        Absence::NotEstablished("names are taken".to_owned()),
        Absence::NotServed { wanted: owned(&["v1", "v2"]), served: vec![] },
        Absence::OtherScope,
    ];
    for absence in absences {
        let mut course = Course::synced();
        assert_eq!(course.step(Err(absence.clone())), Some(WatchAction::Close), "frozen, not forgotten");
        assert_eq!(course.watch_state(), WatchState::Absent(absence));
        assert_eq!(course.step(Err(Absence::Missing)), Some(WatchAction::Gone));
        assert_eq!(course.step(Err(Absence::Missing)), None);
    }
}

#[tokio::test]
async fn a_refusal_is_shown_at_once_and_tried_again_with_a_bounded_pause() {
    let mut course = Course::synced();
    let mut pauses = Vec::new();
    for _ in 0..8 {
        course.report(KindReport::Refused(ApiVerb::Watch));
        assert_eq!(course.watch_state(), WatchState::Forbidden(ApiVerb::Watch));
        assert_eq!(course.step(Ok(usable("u1", "v1"))), None, "not at once");
        let due = course.kind.due(course.now).expect("it is tried again");
        pauses.push(due - course.now);
        course.now = due;
        assert!(matches!(course.step(Ok(usable("u1", "v1"))), Some(WatchAction::Open { .. })));
        assert_eq!(course.watch_state(), WatchState::Forbidden(ApiVerb::Watch), "until it is seen to flow");
    }
    assert_eq!(pauses.first(), Some(&AFTER_REFUSAL));
    assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
    course.report(KindReport::Opened);
    assert_eq!(course.watch_state(), WatchState::Synced);
}

#[tokio::test]
async fn a_short_failure_is_not_reported_and_a_long_one_is() {
    let mut course = Course::synced();
    course.report(KindReport::Trouble("500".to_owned()));
    assert_eq!(course.watch_state(), WatchState::Synced);
    course.later(TROUBLE_GRACE);
    assert_eq!(course.watch_state(), WatchState::Broken("500".to_owned()));
    course.report(KindReport::Opened);
    assert_eq!(course.watch_state(), WatchState::Synced);
}

#[tokio::test]
async fn a_404_is_a_hint_and_the_table_decides() {
    let mut course = Course::new();
    let _ = course.step(Ok(usable("u1", "v1")));
    for _ in 0..4 {
        course.report(KindReport::NotFound);
        assert_eq!(course.watch_state(), WatchState::Listing, "the endpoint lags behind its definition");
        course.now = course.kind.due(course.now).expect("it is tried again");
        assert!(matches!(course.step(Ok(usable("u1", "v1"))), Some(WatchAction::Open { .. })));
    }
    course.later(ENDPOINT_LAG);
    assert!(matches!(course.watch_state(), WatchState::Broken(_)));
    assert_eq!(course.step(Err(Absence::Missing)), Some(WatchAction::Gone));
}

#[tokio::test]
async fn a_watch_that_breaks_is_opened_anew_later_each_time_and_shown_once_it_lasts() {
    let mut course = Course::synced();
    let mut pauses = Vec::new();
    let broke = course.now;
    while course.now < broke + TROUBLE_GRACE {
        course.report(KindReport::Broken("panicked: x".to_owned()));
        assert_eq!(course.watch_state(), WatchState::Synced, "for a moment that is no news");
        assert_eq!(course.step(Ok(usable("u1", "v1"))), None, "not at once");
        let due = course.kind.due(course.now).expect("it is opened anew");
        let said_at = broke + TROUBLE_GRACE;
        if due < said_at {
            pauses.push(due - course.now);
        }
        course.now = due;
        if due == said_at {
            break;
        }
        let epoch = Epoch(course.epoch + 1);
        let opened = course.step(Ok(usable("u1", "v1")));
        assert!(
            matches!(opened, Some(WatchAction::Open { epoch: found, .. }) if found == epoch),
            "{opened:?}"
        );
    }
    assert!(pauses.len() > 3 && pauses.is_sorted_by(|one, next| one < next), "{pauses:?}");
    assert_eq!(course.watch_state(), WatchState::Broken("panicked: x".to_owned()));
    while course.step(Ok(usable("u1", "v1"))).is_none() {
        course.now = course.kind.due(course.now).expect("it is opened anew");
    }
    course.report(KindReport::Opened);
    assert_eq!(course.watch_state(), WatchState::Synced);
}

#[tokio::test]
async fn one_watch_serves_all_who_need_the_kind() {
    let mut course = Course::synced();
    let package = package();
    course.kind.request(package.clone(), request(PART, &["v1"]));
    assert_eq!(course.step(Ok(usable("u1", "v1"))), None, "the wide watch covers it");
    course.kind.release(&CAPABILITY, course.now);
    assert_eq!(course.step(Ok(usable("u1", "v1"))), None, "it stays as it is");
    course.kind.release(&package, course.now);
    course.later(UNUSED_GRACE - Duration::from_secs(1));
    assert_eq!(course.step(Ok(usable("u1", "v1"))), None, "somebody may need it again");
    course.kind.request(package.clone(), request(PART, &["v1"]));
    course.kind.release(&package, course.now);
    course.later(UNUSED_GRACE);
    assert_eq!(course.step(Ok(usable("u1", "v1"))), Some(WatchAction::Forget));
    assert!(course.kind.is_done());
}

/// The task sleeps until then: a time in the past would keep it awake.
#[rstest]
#[case::refused(KindReport::Refused(ApiVerb::List))]
#[case::not_found(KindReport::NotFound)]
#[case::broken(KindReport::Broken("panicked: x".to_owned()))]
#[case::in_trouble(KindReport::Trouble("500".to_owned()))]
#[case::flowing(KindReport::Opened)]
#[tokio::test]
async fn a_kind_without_requesters_is_checked_again_when_its_grace_ends(#[case] last: KindReport) {
    let mut course = Course::synced();
    course.report(last);
    course.kind.release(&CAPABILITY, course.now);
    let forgotten = course.now + UNUSED_GRACE;
    for _ in 0..3 {
        let due = course.kind.due(course.now).expect("it is forgotten");
        assert!(due > course.now && due <= forgotten, "{:?}", due - course.now);
        course.now = due;
        if due == forgotten {
            break;
        }
        assert_eq!(course.step(Ok(usable("u1", "v1"))), None);
    }
    assert_eq!(course.step(Ok(usable("u1", "v1"))), Some(WatchAction::Forget));
    assert_eq!(course.kind.due(course.now), None);
}

/// While its serving is unknown, the last result stays.
#[rstest]
#[case::served(Ok(usable("u1", "v1")))]
#[case::not_served(Err(Absence::OtherScope))]
#[tokio::test]
async fn a_kind_without_requesters_is_forgotten_even_while_it_is_refused(
    #[case] last: Result<Usable, Absence>,
) {
    let mut course = Course::synced();
    let _ = course.step(last.clone());
    assert_eq!(course.kind.found(), last);
    course.kind.release(&CAPABILITY, course.now);
    course.later(UNUSED_GRACE);
    assert_eq!(course.step(course.kind.found()), Some(WatchAction::Forget));
    assert_eq!(course.kind.due(course.now), None);
}

#[tokio::test]
async fn a_wider_request_opens_a_wider_watch() {
    let mut course = Course::new();
    course.kind.release(&CAPABILITY, course.now);
    course.kind.request(package(), request(PART, &["v1"]));
    let Some(WatchAction::Open { scope, .. }) = course.step(Ok(usable("u1", "v1"))) else { panic!("opened") };
    assert_eq!(scope, PART);
    course.report(KindReport::Opened);
    course.kind.request(CAPABILITY, request(WHOLE, &["v1", "v2"]));
    let Some(WatchAction::Open { scope, .. }) = course.step(Ok(usable("u1", "v1"))) else {
        panic!("opened wider")
    };
    assert_eq!((scope, course.watch_state()), (WHOLE, WatchState::Listing));
}

#[tokio::test]
async fn a_kind_in_several_namespaces_is_seen_when_all_are() {
    let now = Instant::now();
    let mut kind = WatchedKind::new(2, now);
    kind.request(CAPABILITY, request(WHOLE, &["v1", "v2"]));
    let _ = kind.step(Ok(usable("u1", "v1")), now, Epoch(1));
    kind.report(Epoch(1), 0, KindReport::Opened, now);
    assert_eq!(kind.state_for(&CAPABILITY, now), WatchState::Listing);
    kind.report(Epoch(1), 1, KindReport::Opened, now);
    assert_eq!(kind.state_for(&CAPABILITY, now), WatchState::Synced);
    kind.report(Epoch(1), 1, KindReport::Refused(ApiVerb::List), now);
    assert_eq!(kind.state_for(&CAPABILITY, now), WatchState::Forbidden(ApiVerb::List));
}

/// A capability reads a kind at one version; a package makes it at another.
#[tokio::test]
async fn there_is_one_watch_of_a_kind_and_it_outlives_those_who_need_less() {
    let mut course = Course::new();
    course.kind.request(CAPABILITY, request(WHOLE, &["v1", "v1alpha2"]));
    let both = served(&["v1", "v1alpha2"]);
    assert!(matches!(course.step(both.clone()), Some(WatchAction::Open { scope: WHOLE, .. })));
    course.report(KindReport::Opened);
    course.kind.request(package(), request(PART, &["v1alpha2"]));
    assert_eq!(course.kind.versions(), ["v1", "v1alpha2"]);
    assert_eq!(course.step(both.clone()), None, "the same objects");
    assert_eq!(course.kind.state_at("v1alpha2", course.now), WatchState::Synced);
    assert!(course.kind.is_whole("v1") && !course.kind.is_whole("v1alpha2"), "whole objects are of v1");
    assert_eq!(course.kind.published_versions(), BTreeSet::from(["v1".to_owned(), "v1alpha2".to_owned()]));
    assert_eq!(course.kind.requesters("v1alpha2").collect::<Vec<_>>(), [&CAPABILITY, &package()]);
    course.kind.release(&package(), course.now);
    course.later(UNUSED_GRACE * 2);
    assert_eq!(
        (course.step(both), course.watch_state()),
        (None, WatchState::Synced),
        "neither ended nor forgotten"
    );
}

#[tokio::test]
async fn requests_for_whole_objects_choose_the_version() {
    let mut course = Course::new();
    course.kind.release(&CAPABILITY, course.now);
    course.kind.request(package(), request(PART, &["v1alpha2"]));
    assert!(matches!(course.step(served(&["v1alpha2", "v1"])), Some(WatchAction::Open { scope: PART, .. })));
    course.report(KindReport::Opened);
    course.kind.request(CAPABILITY, request(WHOLE, &["v1", "v1alpha2"]));
    assert_eq!(course.kind.versions(), ["v1", "v1alpha2"]);
    let crd_identity = course.kind.crd_identity();
    assert!(matches!(course.step(served(&["v1", "v1alpha2"])), Some(WatchAction::Open { scope: WHOLE, .. })));
    assert_ne!(course.kind.crd_identity(), crd_identity, "nothing was read at this version");
    course.report(KindReport::Opened);
    course.kind.release(&CAPABILITY, course.now);
    assert_eq!(course.kind.versions(), ["v1", "v1alpha2"], "what is used will do");
    assert_eq!(course.step(served(&["v1", "v1alpha2"])), None);
    assert_eq!(course.step(served(&["v1"])), Some(WatchAction::Close), "nobody needs it at this version");
    assert_eq!(course.kind.state_at("v1alpha2", course.now), absent(&["v1alpha2"], &["v1"]));
}

#[tokio::test]
async fn a_version_is_missed_by_those_who_need_it_alone() {
    let mut course = Course::synced();
    course.kind.request(package(), request(PART, &["v1beta1"]));
    assert_eq!(course.step(served(&["v1"])), None);
    assert_eq!(course.watch_state(), WatchState::Synced);
    assert_eq!(course.kind.state_for(&package(), course.now), absent(&["v1beta1"], &["v1"]));
    assert_eq!(course.kind.state_at("v1beta1", course.now), absent(&["v1beta1"], &["v1"]));

    let Some(WatchAction::Open { scope, .. }) = course.step(served(&["v1beta1"])) else { panic!("opened") };
    assert_eq!(scope, PART, "only the package can use it");
    course.report(KindReport::Opened);
    assert_eq!(course.watch_state(), absent(&["v1", "v2"], &["v1beta1"]));
    assert_eq!(course.kind.state_for(&package(), course.now), WatchState::Synced);
}

/// Another definition has the kind, under another plural.
#[tokio::test]
async fn a_kind_of_another_shape_is_followed_for_those_who_name_none() {
    let mut course = Course::new();
    let names = Some(ResourceNames { plural: "sieves", namespaced: true });
    course.kind.request(CAPABILITY, WatchRequest { names, ..request(WHOLE, &["v1"]) });
    assert_eq!(
        (course.step(served(&["v1"])), course.watch_state()),
        (None, WatchState::Absent(Absence::OtherScope))
    );
    assert_eq!(course.kind.state_at("v1", course.now), WatchState::Absent(Absence::OtherScope));
    course.kind.request(package(), request(PART, &["v1"]));
    assert!(matches!(course.step(served(&["v1"])), Some(WatchAction::Open { scope: PART, .. })));
    course.report(KindReport::Opened);
    assert_eq!(course.watch_state(), WatchState::Absent(Absence::OtherScope));
    assert_eq!(course.kind.state_at("v1", course.now), WatchState::Synced);
}
