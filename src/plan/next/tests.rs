//! The drift table, one case a row and a sentence of `docs/architecture.md`, "Drift".

use rstest::rstest;

use super::*;
use crate::api::condition::Time;
use crate::api::kudo::OperatorVersionSpec;
use crate::api::object::NamespacedName;
use crate::plan::basis::Owed;

/// An Instance in the making; every method adds one fact and reads as a sentence.
#[derive(Clone)]
struct World {
    spec: Applied<'static>,
    stamp: Option<(SpecHash, Option<Applied<'static>>)>,
    basis: Option<Basis>,
    plan: String,
    uid: String,
    entries: BTreeMap<String, PlanStatus>,
    whole: bool,
    finalizer: bool,
    stampable: bool,
    deletion: Option<Deletion>,
    refusal: Option<Refusal>,
    packages: BTreeMap<String, Arc<Package>>,
    asked: Option<Asked>,
}

const V5: &str = "74738ff5-5367-5958-9aee-98fffdcd1876";
const V4: &str = "9b2c2d3e-8c1f-4b5e-9d6a-0123456789ab";

fn spec(version: &str, parameters: &[(&str, &str)]) -> Applied<'static> {
    Applied {
        operator_version: VersionRef { name: version.to_owned().into(), namespace: "ns".into() },
        parameters: parameters
            .iter()
            .map(|(k, v)| ((*k).to_owned().into(), (*v).to_owned().into()))
            .collect(),
    }
}

fn package(name: &str, plans: &[&str]) -> Arc<Package> {
    let parameter =
        |name: &str, trigger: Option<&str>| serde_json::json!({ "name": name, "trigger": trigger });
    let spec: OperatorVersionSpec = serde_json::from_value(serde_json::json!({
        "plans": plans.iter().map(|p| ((*p).to_owned(), serde_json::json!({}))).collect::<serde_json::Map<_, _>>(),
        "parameters": [
            parameter("A", Some("backup")), parameter("B", Some("audit")), parameter("D", Some("deploy")),
            parameter("PLAIN", None),
        ],
    }))
    .unwrap();
    Arc::new(Package::new(NamespacedName::new("ns", name), spec))
}

const PLANS: [&str; 6] = ["audit", "backup", "cleanup", "deploy", "update", "upgrade"];

impl World {
    /// Idle, stamped, carried out: nothing to do.
    fn settled() -> Self {
        let spec = spec("v1", &[("A", "1"), ("B", "1")]);
        Self {
            stamp: Some((spec.hash(), Some(spec.clone()))),
            basis: Some(Basis::new(&spec, BTreeMap::new())),
            spec,
            plan: String::new(),
            uid: String::new(),
            entries: BTreeMap::new(),
            whole: true,
            finalizer: true,
            stampable: true,
            deletion: None,
            refusal: None,
            asked: None,
            packages: [package("v1", &PLANS), package("v2", &PLANS)]
                .into_iter()
                .map(|p| (p.key.name.clone(), p))
                .collect(),
        }
        .ran("deploy", "d0", ExecutionStatus::Complete)
    }

    fn fresh() -> Self {
        let mut world = Self::settled().no_basis();
        world.entries.clear();
        world
    }

    fn entry(mut self, plan: &str, uid: &str, status: ExecutionStatus, at: i64) -> Self {
        let time = Some(Time(Timestamp::from_second(at).unwrap()));
        let entry = PlanStatus {
            name: plan.to_owned(),
            uid: uid.to_owned(),
            status,
            last_updated_timestamp: time,
            ..PlanStatus::default()
        };
        self.entries.insert(plan.to_owned(), entry);
        self
    }

    fn ran(self, plan: &str, uid: &str, status: ExecutionStatus) -> Self {
        self.entry(plan, uid, status, 1000)
    }

    fn running(self, plan: &str, uid: &str) -> Self {
        self.entry(plan, uid, ExecutionStatus::InProgress, 1000)
    }

    fn scheduled(mut self, plan: &str, uid: &str) -> Self {
        (self.plan, self.uid) = (plan.to_owned(), uid.to_owned());
        self
    }

    fn edited(mut self, parameters: &[(&str, &str)]) -> Self {
        self.spec = spec(&self.spec.operator_version.name.clone(), parameters);
        self
    }

    fn on_version(mut self, version: &str) -> Self {
        self.spec.operator_version.name = version.to_owned().into();
        self
    }

    fn stamped_as_spec(mut self) -> Self {
        self.stamp = Some((self.spec.hash(), Some(self.spec.clone())));
        self
    }

    fn stamp_lost(mut self) -> Self {
        self.stamp = None;
        self
    }

    fn stamp_text_only(mut self) -> Self {
        self.stamp = self.stamp.map(|(hash, _)| (hash, None));
        self
    }

    fn no_basis(mut self) -> Self {
        self.basis = None;
        self
    }

    fn bare_hash(mut self) -> Self {
        self.basis = self.basis.map(|b| Basis { detail: None, ..b });
        self
    }

    fn owes(mut self, owed: &[(&str, Owed)]) -> Self {
        let owed = owed.iter().map(|(plan, state)| ((*plan).to_owned(), *state)).collect();
        self.basis = self.basis.map(|b| Basis { owed, ..b });
        self
    }

    fn refused(mut self) -> Self {
        self.refusal = Some(Refusal { rule: "some-rule".to_owned(), message: "no".to_owned() });
        self
    }

    fn half_created(mut self) -> Self {
        self.whole = false;
        self
    }

    fn without_package(mut self) -> Self {
        self.packages.clear();
        self
    }

    fn packages_without(mut self, plan: &str) -> Self {
        let plans: Vec<_> = PLANS.into_iter().filter(|p| *p != plan).collect();
        self.packages = ["v1", "v2"].into_iter().map(|v| (v.to_owned(), package(v, &plans))).collect();
        self
    }

    fn deleted(mut self, terminating: bool, failures: usize) -> Self {
        let since = Timestamp::from_second(2000).unwrap();
        let overdue = false;
        self.deletion = Some(Deletion { since, namespace_terminating: terminating, failures, overdue });
        self
    }

    fn without_room(mut self) -> Self {
        self.stampable = false;
        self.stamp_lost()
    }

    fn without_finalizer(mut self) -> Self {
        self.finalizer = false;
        self
    }

    /// Somebody asks something of a run; the retry of `r` runs under [`V5`].
    fn asked(mut self, request: &str) -> Self {
        let of = super::super::uid::Retry { namespace: "ns", name: "i" };
        let asked = Asked::read(request, "because", "alice", of).unwrap();
        self.asked = Some(Asked { retry: V5.to_owned(), ..asked });
        self
    }

    /// What the status write that starts a run records of it.
    fn recorded(mut self, uid: &str) -> Self {
        let package = self.packages.values().next().map(|p| p.hash.clone()).unwrap();
        let run = super::super::basis::Ran { uid: uid.to_owned(), package, started: Timestamp::UNIX_EPOCH };
        self.basis = self.basis.map(|b| b.ran(Some(run)));
        self
    }

    fn next(&self) -> Next {
        next(&Facts {
            asked: self.asked.as_ref(),
            spec: &self.spec,
            plan: &self.plan,
            uid: &self.uid,
            entries: &self.entries,
            basis: self.basis.as_ref(),
            stamp: self.stamp.as_ref().map(|(hash, spec)| Stamp { hash, spec: spec.as_ref() }),
            finalizer: self.finalizer,
            stampable: self.stampable,
            created_whole: self.whole,
            deletion: self.deletion,
            package: &|version| self.packages.get(version.name.as_ref()).cloned(),
            refusal: &|| self.refusal.clone(),
        })
    }
}

fn schedule(plan: &str, source: Source) -> Next {
    Next::Schedule { plan: plan.to_owned(), source }
}

fn abort(plan: &str) -> Next {
    Next::Answer(Answer::Abort { plan: plan.to_owned() })
}

fn retry(plan: &str) -> Next {
    Next::Answer(Answer::Retry { plan: plan.to_owned() })
}

fn forget(why: Option<&str>) -> Next {
    Next::Answer(Answer::Forget(why.map(str::to_owned)))
}

/// A plan that failed, as run `r`, and nothing scheduled.
fn failed() -> World {
    World::settled().ran("backup", "r", FatalError).owes(&[("backup", Owed::Failed)]).recorded("r")
}

fn report() -> Next {
    Next::Report(Refusal { rule: "some-rule".to_owned(), message: "no".to_owned() })
}

use ExecutionStatus::{Complete, FatalError, InProgress};
use Source::{Spec, Stamp as Stamped};

#[rstest]
#[case::nothing_to_do(World::settled(), Next::Idle)]
// The rows of the table.
#[case::no_basis_but_a_finished_run_is_adopted(World::settled().no_basis().stamp_lost(), Next::Adopt)]
#[case::no_basis_but_a_failed_run_is_adopted(
    World::fresh().stamp_lost().ran("deploy", "d", FatalError), Next::Adopt)]
#[case::created_unseen(World::fresh().stamp_lost().half_created(), Next::Create)]
#[case::copied_with_stamp_and_plan_name(World::fresh().half_created().scheduled("backup", V4), Next::Create)]
#[case::copied_with_the_stamp_of_another(
    World::fresh().edited(&[("A", "9")]).half_created().scheduled("deploy", V4), Next::Create)]
#[case::created_through_admission(World::fresh().scheduled("deploy", V5), Next::Start { source: Spec })]
#[case::created_unseen_and_refused(World::fresh().stamp_lost().half_created().refused(), report())]
#[case::stamp_missing(World::settled().stamp_lost(), Next::Restamp)]
#[case::stamp_of_something_else(
    World::settled().edited(&[("A", "2")]).stamped_as_spec().edited(&[("A", "1"), ("B", "1")]), Next::Restamp)]
#[case::one_trigger(World::settled().edited(&[("A", "2"), ("B", "1")]), schedule("backup", Spec))]
#[case::one_trigger_by_removal(World::settled().edited(&[("A", "1")]), schedule("audit", Spec))]
#[case::one_trigger_of_a_put_that_dropped_the_stamp(
    World::settled().edited(&[("A", "2"), ("B", "1")]).stamp_lost(), schedule("backup", Spec))]
#[case::several_triggers_by_name(World::settled().edited(&[("A", "2"), ("B", "2")]), schedule("audit", Spec))]
#[case::deploy_before_others(
    World::settled().edited(&[("A", "2"), ("B", "1"), ("D", "1")]), schedule("deploy", Spec))]
#[case::a_parameter_without_trigger(
    World::settled().edited(&[("A", "1"), ("B", "1"), ("PLAIN", "1")]), schedule("update", Spec))]
#[case::the_queue_goes_on(World::settled().owes(&[("backup", Owed::Queued)]), schedule("backup", Spec))]
#[case::failed_plans_are_not_in_the_queue(World::settled().owes(&[("backup", Owed::Failed)]), Next::Idle)]
#[case::the_queue_in_order(
    World::settled().owes(&[("audit", Owed::Queued), ("update", Owed::Queued), ("deploy", Owed::Failed)]),
    schedule("update", Spec))]
#[case::drift_and_queue_together(
    World::settled().owes(&[("audit", Owed::Queued)]).edited(&[("A", "2"), ("B", "1")]), schedule("audit", Spec))]
#[case::only_a_bare_hash(World::settled().bare_hash().edited(&[("A", "2")]), schedule("deploy", Spec))]
#[case::another_version(World::settled().on_version("v2"), schedule("upgrade", Spec))]
#[case::another_version_without_upgrade(
    World::settled().packages_without("upgrade").on_version("v2"), schedule("update", Spec))]
#[case::another_version_before_parameters(
    World::settled().edited(&[("A", "2"), ("B", "1")]).on_version("v2"), schedule("upgrade", Spec))]
#[case::refused_is_neither_carried_out_nor_reverted(
    World::settled().edited(&[("A", "2")]).refused(), report())]
#[case::refused_while_something_is_owed_runs_that_on_the_stamp(
    World::settled().owes(&[("backup", Owed::Queued)]).edited(&[("A", "2")]).refused(),
    schedule("backup", Stamped))]
#[case::mended_again(World::settled().refused(), Next::Idle)]
#[case::unknown_parameter_needs_no_plan(
    World::settled().edited(&[("A", "1"), ("B", "1"), ("NOBODY", "1")]), Next::Adopt)]
#[case::a_version_that_is_not_there(
    World::settled().on_version("v3"), Next::Await("ns/v3".to_owned()))]
// Scheduled and not begun.
#[case::an_accepted_edit(
    World::settled().edited(&[("A", "2"), ("B", "1")]).stamped_as_spec().scheduled("backup", V5),
    Next::Start { source: Stamped })]
#[case::a_direct_trigger(World::settled().scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::a_trigger_without_stamp_on_the_basis(
    World::settled().stamp_lost().scheduled("backup", V5), Next::Start { source: Spec })]
#[case::a_trigger_on_an_unstamped_drifted_spec_is_dropped(
    World::settled().edited(&[("A", "2")]).stamp_lost().scheduled("backup", V4), Next::Drop)]
#[case::a_trigger_on_a_drifted_spec_with_a_stamp_runs_on_the_stamp(
    World::settled().edited(&[("A", "2")]).scheduled("backup", V4), Next::Start { source: Stamped })]
#[case::a_trigger_whose_stamp_is_text_only_is_dropped(
    World::settled().stamp_text_only().edited(&[("A", "2")]).scheduled("backup", V4), Next::Drop)]
#[case::a_trigger_without_a_uid_gets_one(World::settled().scheduled("backup", ""), schedule("backup", Stamped))]
#[case::a_trigger_without_its_package_waits(
    World::settled().without_package().scheduled("backup", V5), Next::Await("ns/v1".to_owned()))]
#[case::a_trigger_on_an_adopted_old_instance_is_stamped_first(
    World::settled().no_basis().stamp_lost().scheduled("backup", V4), schedule("backup", Spec))]
#[case::an_accepted_edit_of_an_old_instance(
    World::settled().no_basis().scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::finished(World::settled().scheduled("deploy", "d0"), Next::Clear)]
#[case::failed(World::settled().ran("deploy", "d1", FatalError).scheduled("deploy", "d1"), Next::Clear)]
#[case::finished_with_another_uid_is_a_new_run(
    World::settled().scheduled("deploy", "d1"), Next::Start { source: Stamped })]
// Too large for a stamp.
#[case::no_room_and_nothing_to_do(World::settled().without_room(), Next::Idle)]
#[case::no_room_created(World::fresh().without_room().scheduled("deploy", V5), Next::Start { source: Spec })]
#[case::no_room_and_an_accepted_edit(
    World::settled().edited(&[("A", "2")]).without_room().scheduled("backup", V5), Next::Start { source: Spec })]
// Running.
#[case::goes_on(
    World::settled().running("backup", V5).scheduled("backup", V5), Next::Continue { source: Stamped })]
#[case::goes_on_though_the_stamp_is_lost_while_the_spec_is_the_same(
    World::settled().stamp_lost().running("backup", V5).scheduled("backup", V5), Next::Continue { source: Spec })]
#[case::edited_while_it_runs_goes_on_with_what_it_started_with(
    World::settled().edited(&[("A", "2")]).running("backup", V5).scheduled("backup", V5),
    Next::Continue { source: Stamped })]
#[case::edited_and_stamp_dropped_starts_anew(
    World::settled().edited(&[("A", "2")]).stamp_lost().running("backup", V5).scheduled("backup", V5),
    schedule("backup", Spec))]
#[case::put_back(World::settled().running("backup", V5), Next::PutBack { plan: "backup".to_owned(), uid: V5.to_owned() })]
#[case::put_back_over_another_plan(
    World::settled().running("backup", V5).scheduled("audit", V4),
    Next::PutBack { plan: "backup".to_owned(), uid: V5.to_owned() })]
#[case::put_back_over_another_uid(
    World::settled().running("backup", V5).scheduled("backup", V4),
    Next::PutBack { plan: "backup".to_owned(), uid: V5.to_owned() })]
#[case::scheduled_anew(
    World::settled().running("backup", "r").scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::scheduled_anew_on_a_run_of_an_older_kudo(
    World::settled().no_basis().running("deploy", V4).scheduled("deploy", V5), Next::Start { source: Stamped })]
#[case::not_put_back_when_the_stamp_is_lost(
    World::settled().stamp_lost().running("backup", V5), schedule("backup", Spec))]
#[case::a_run_of_an_older_kudo_is_taken_from_its_first_step(
    World::fresh().stamp_lost().running("deploy", V4).scheduled("deploy", V4), schedule("deploy", Spec))]
#[case::a_run_of_an_older_kudo_that_nothing_names(
    World::fresh().stamp_lost().running("deploy", V4), schedule("deploy", Spec))]
// Deletion.
#[case::deletion_without_finalizer(World::settled().without_finalizer().deleted(false, 0), Next::Idle)]
#[case::deletion_runs_cleanup(World::settled().deleted(false, 0), schedule("cleanup", Stamped))]
#[case::deletion_starts_cleanup(
    World::settled().scheduled("cleanup", V5).deleted(false, 0), Next::Start { source: Stamped })]
#[case::cleanup_goes_on(
    World::settled().entry("cleanup", V5, InProgress, 2001).scheduled("cleanup", V5).deleted(false, 0),
    Next::Continue { source: Stamped })]
#[case::cleanup_is_put_back(
    World::settled().entry("cleanup", V5, InProgress, 2001).deleted(false, 0),
    Next::PutBack { plan: "cleanup".to_owned(), uid: V5.to_owned() })]
#[case::cleanup_before_the_deletion_does_not_count(
    World::settled().entry("cleanup", "c", Complete, 1999).deleted(false, 0), schedule("cleanup", Stamped))]
#[case::cleanup_done(
    World::settled().entry("cleanup", V5, Complete, 2001).scheduled("cleanup", V5).deleted(false, 0),
    Next::Release { warning: None })]
#[case::cleanup_failed(
    World::settled().entry("cleanup", V5, FatalError, 2001).scheduled("cleanup", V5).deleted(false, 1),
    Next::RetryCleanup { failures: 1 })]
// What people ask.
#[case::abort_of_a_run(
    World::settled().running("backup", "r").scheduled("backup", "r").asked("abort/r/nonce-01"), abort("backup"))]
#[case::abort_of_a_run_that_nothing_names(
    World::settled().running("backup", "r").asked("abort/r/nonce-01"), abort("backup"))]
#[case::abort_before_the_start(
    World::settled().scheduled("backup", "r").asked("abort/r/nonce-01"), abort("backup"))]
#[case::abort_without_its_package(
    World::settled().without_package().scheduled("backup", "r").asked("abort/r/nonce-01"), abort("backup"))]
#[case::abort_of_a_new_instance(
    World::fresh().scheduled("deploy", "r").asked("abort/r/nonce-01"), abort("deploy"))]
#[case::an_aborted_run_is_cleared(
    failed().scheduled("backup", "r").asked("abort/r/nonce-01"), Next::Clear)]
#[case::an_aborted_run_that_an_edit_replaced(
    failed().scheduled("audit", V4).asked("abort/r/nonce-01"), forget(None))]
#[case::abort_and_go_back(
    failed().scheduled("backup", "r").asked("abort-revert/r/nonce-01"), Next::Answer(Answer::Revert))]
#[case::a_newer_edit_is_not_reverted(
    failed().scheduled("deploy", V5).asked("abort-revert/r/nonce-01"), Next::Answer(Answer::Overtaken))]
#[case::a_run_that_completed_meanwhile_is_not_reverted(
    World::settled().ran("backup", "r", Complete).scheduled("backup", "r").asked("abort-revert/r/nonce-01"),
    Next::Clear)]
#[case::retry_of_a_run(failed().asked("retry/r/nonce-01"), retry("backup"))]
#[case::retry_waits_for_the_clear(failed().scheduled("backup", "r").asked("retry/r/nonce-01"), Next::Clear)]
#[case::retry_goes_on_where_it_failed(
    failed().scheduled("backup", V5).asked("retry/r/nonce-01"), Next::Retry { source: Stamped })]
#[case::retry_of_a_run_that_is_not_the_newest_begins_anew(
    failed().recorded("later").scheduled("backup", V5).asked("retry/r/nonce-01"), Next::Start { source: Stamped })]
#[case::retry_on_another_spec_begins_anew(
    failed().edited(&[("A", "2")]).stamped_as_spec().scheduled("backup", V5).asked("retry/r/nonce-01"),
    Next::Start { source: Stamped })]
#[case::retry_without_its_mark_begins_anew(failed().scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::an_edit_that_came_first_is_no_retry(
    failed().scheduled("backup", V4).recorded("r").asked("retry/other/nonce-01"),
    forget(Some("run other is none of this Instance's; plan backup runs now as 9b2c2d3e-8c1f-4b5e-9d6a-0123456789ab")))]
#[case::a_retry_that_has_started_is_forgotten(
    failed().running("backup", V5).scheduled("backup", V5).asked("retry/r/nonce-01"), forget(None))]
#[case::a_retry_that_has_ended_is_forgotten(
    failed().ran("backup", V5, FatalError).asked("retry/r/nonce-01"), forget(None))]
#[case::retry_of_a_spec_that_is_lost(
    failed().edited(&[("A", "2")]).stamp_lost().asked("retry/r/nonce-01"),
    forget(Some("the spec that it would run on is lost")))]
#[case::retry_of_what_runs(
    World::settled().running("backup", "r").scheduled("backup", "r").asked("retry/r/nonce-01"),
    forget(Some("run r of plan backup has not ended: abort it first, or wait")))]
#[case::retry_of_what_is_complete(
    World::settled().ran("backup", "r", Complete).asked("retry/r/nonce-01"),
    forget(Some("run r of plan backup has ended: it is COMPLETE")))]
#[case::retry_while_another_plan_is_scheduled(
    failed().scheduled("audit", V4).asked("retry/r/nonce-01"),
    forget(Some(&format!("plan audit runs now (run {V4}): wait until it has ended"))))]
#[case::abort_of_another_instances_run(
    World::settled().asked("abort/r/nonce-01"),
    forget(Some("run r is none of this Instance's; no plan runs now")))]
#[case::abort_of_cleanup(
    World::settled().entry("cleanup", "r", InProgress, 2001).scheduled("cleanup", "r").deleted(false, 0)
        .asked("abort/r/nonce-01"), abort("cleanup"))]
fn table(#[case] world: World, #[case] expected: Next) {
    assert_eq!(world.next(), expected);
}

#[rstest]
#[case::refused("ended: the spec it started with is lost", World::settled().edited(&[("A", "2")]).stamp_lost()
    .refused().running("backup", V5))]
#[case::deleted("ended: the Instance is being deleted", World::settled().running("backup", V5)
    .scheduled("backup", V5).deleted(false, 0))]
#[case::two_at_once("ended: plan deploy is the one", World::settled().running("backup", V5).running("deploy", V4)
    .scheduled("deploy", V4))]
#[case::two_at_once_and_neither_named("ended: plan deploy is the one", World::settled().running("backup", V5)
    .entry("deploy", V4, InProgress, 1001))]
fn a_run_ends(#[case] text: &str, #[case] world: World) {
    let Next::End(ended) = world.next() else { panic!("{:?}", world.next()) };
    assert_eq!(ended.keys().collect::<Vec<_>>(), ["backup"]);
    assert!(ended["backup"].starts_with(text), "{ended:?}");
}

#[rstest]
#[case::namespace("namespace is being terminated", World::settled().deleted(true, 0))]
#[case::package_gone("OperatorVersion ns/v1 is gone", World::settled().without_package().deleted(false, 0))]
#[case::no_such_plan("has no such plan", World::settled().packages_without("cleanup").deleted(false, 0))]
#[case::aborted("cleanup was aborted by alice: because", World::settled().entry("cleanup", "r", FatalError, 2001)
    .scheduled("cleanup", "r").deleted(false, 1).asked("abort/r/nonce-01"))]
#[case::given_up("cleanup failed 3 times", World::settled().entry("cleanup", V5, FatalError, 2001).deleted(false, 3))]
fn the_finalizer_comes_off_with_a_warning(#[case] text: &str, #[case] world: World) {
    let Next::Release { warning: Some(warning) } = world.next() else { panic!("{:?}", world.next()) };
    assert!(warning.contains(text), "{warning}");
}

/// Whatever the facts are, a spec that was refused is never what a run starts on.
#[test]
fn a_refused_spec_is_never_scheduled() {
    let base = World::settled().edited(&[("A", "2")]).refused();
    let worlds = [
        base.clone(),
        base.clone().stamp_lost(),
        base.clone().bare_hash(),
        base.clone().on_version("v2"),
        base.clone().owes(&[("backup", Owed::Queued)]),
        base.clone().owes(&[("backup", Owed::Queued)]).stamp_lost(),
        base.running("backup", V5).stamp_lost(),
    ];
    for world in worlds {
        let next = world.next();
        assert!(
            !matches!(next, Next::Schedule { source: Spec, .. } | Next::Create | Next::Adopt),
            "{next:?}"
        );
    }
}

/// Every step that only writes the Instance must lead somewhere: doing what is said never leads
/// back to the same saying.
#[rstest]
#[case::older_kudo(World::fresh().stamp_lost().running("deploy", V4).scheduled("deploy", V4))]
#[case::older_kudo_unnamed(World::fresh().stamp_lost().running("deploy", V4))]
#[case::stamp_lost(World::settled().stamp_lost().running("backup", V4))]
#[case::stamp_lost_and_edited(World::settled().edited(&[("A", "2")]).stamp_lost().running("backup", V4))]
#[case::put_back(World::settled().running("backup", V4).scheduled("audit", V5))]
#[case::drift(World::settled().edited(&[("A", "2")]))]
#[case::drift_without_room(World::settled().edited(&[("A", "2")]).without_room())]
#[case::created(World::fresh().stamp_lost().half_created())]
#[case::created_without_room(World::fresh().without_room().half_created())]
#[case::no_uid(World::settled().scheduled("backup", ""))]
#[case::deleted(World::settled().deleted(false, 0))]
fn a_written_step_is_not_asked_for_again(#[case] mut world: World) {
    let mut said = Vec::new();
    loop {
        let next = world.next();
        assert!(!said.contains(&next), "{next:?} again");
        match &next {
            Next::Schedule { plan, source } => {
                if *source == Spec && world.stampable {
                    world = world.stamped_as_spec();
                }
                world = world.scheduled(&plan.clone(), "0b0a2e0c-1111-5222-8333-444455556666");
            }
            Next::Create => {
                world.whole = true;
                if world.stampable {
                    world = world.stamped_as_spec();
                }
                world = world.scheduled("deploy", V5);
            }
            Next::PutBack { plan, uid } => world = world.scheduled(&plan.clone(), &uid.clone()),
            Next::Start { .. } | Next::Continue { .. } => return,
            other => panic!("{other:?}"),
        }
        said.push(next);
    }
}
