//! `interlock rollout promote`, `abort` and `undo`: each is written on the condition that the spec is still the one that
//! was seen.

use clap::{Args, ValueEnum};
use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use interlock_core::api::stamp::SpecHash;
use interlock_kong::data_plane::rollout::history::History;
use interlock_kong::data_plane::rollout::history::undo::{
    Undo, UndoOutcome, UndoRefusal, undo, undo_progress,
};
use interlock_kong::data_plane::rollout::promotion;
use interlock_kong::data_plane::rollout::promotion::PromotionRequest;
use interlock_kong::data_plane::rollout::report::RolloutPhase;
use interlock_kong::data_plane::rollout::report::changes::StagedChanges;
use interlock_kong::data_plane::rollout::report::follow::{PromotionFollower, abort_progress};
use interlock_kong::data_plane::rollout::report::summary::RolloutSummary;
use interlock_kong::data_plane::rollout::report::verbs;
use interlock_kong::data_plane::rollout::staged_hash;
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, ReplaceOperation};
use kube::api::Patch;
use serde_json::{Value, json};

use super::data_plane::{DataPlaneRef, VerbFlags};
use super::history;
use super::status::until_done;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;

/// How often it is written again, as the status changes while pods start.
const TRIES: u32 = 5;

/// A write of a verb, in words.
#[derive(Clone, Copy, Debug)]
struct VerbWrite {
    /// What is done to the DataPlane.
    done: &'static str,
    /// What to do where the spec was changed meanwhile.
    again: &'static str,
    /// Whether the API server stores nothing.
    is_dry_run: bool,
}

const PROMOTE: VerbWrite = VerbWrite { done: "promoted", again: "promote that", is_dry_run: false };
const ABORT: VerbWrite = VerbWrite { done: "set back", again: "abort that", is_dry_run: false };
const UNDO: VerbWrite = VerbWrite { done: "undone", again: "undo that", is_dry_run: false };

impl VerbWrite {
    /// Writes what `decide` makes of the object; returns the object as written, and what was decided. Without a patch
    /// the object is as it should be.
    async fn write<T>(
        &self,
        plane: &DataPlaneRef,
        mut object: Value,
        decide: impl AsyncFn(&Value) -> Result<T, CliError>,
        patch: impl Fn(&Value, &T) -> Option<Patch<Value>>,
    ) -> Result<(Value, T), CliError> {
        let not_done = || format!("{plane} is not {}", self.done);
        let seen = staged_hash(&object["spec"]);
        for _ in 0..TRIES {
            let decided = decide(&object).await?;
            let Some(patch) = patch(&object, &decided) else { return Ok((object, decided)) };
            if let Some(patched) = plane.patch(&patch, self.is_dry_run).await? {
                return Ok((patched, decided));
            }
            object = plane.get().await?;
            if staged_hash(&object["spec"]) != seen {
                let now = format!("`interlock rollout status {}`", plane.arguments());
                return Err(CliError::refused(not_done())
                    .why("the spec was changed meanwhile")
                    .next(format!("look at what is staged now ({now}), and {}", self.again)));
            }
        }
        Err(CliError::unreached(not_done()).why("it is changed all the time").next("try again"))
    }
}

/// Requests the promotion of what is staged.
pub(super) async fn promote(plane: &DataPlaneRef, flags: &VerbFlags) -> Result<(), CliError> {
    let object = plane.get().await?;
    let hash = staged(plane, &object).await?;
    let follower = PromotionFollower::of(&object);
    let requested = request_promotion(plane, object, &hash).await?;
    output::line(&plain(&requested_line(plane, &requested, &hash)))?;
    if !flags.wait {
        return Ok(());
    }
    let progress = |object: &Value| follower.progress(object);
    until_done(plane, flags.limit.timeout, &requested, progress).await?;
    output::line(&format!("dataplane {}: spec {} is live", plane.key(), hash.short()))
}

async fn staged(plane: &DataPlaneRef, object: &Value) -> Result<SpecHash, CliError> {
    let kept = plane.kept(object).await;
    verbs::promote(object, kept.spec.as_ref()).map_err(|why| plane.refusal(PROMOTE.done, &why))
}

/// Writes the annotation of a spec that is known to be staged.
pub(in crate::cli) async fn request_promotion(
    plane: &DataPlaneRef,
    object: Value,
    hash: &SpecHash,
) -> Result<Value, CliError> {
    let first = meta_str(&object, "resourceVersion").map(str::to_owned);
    let decide = async |object: &Value| match meta_str(object, "resourceVersion") == first.as_deref() {
        true => Ok(()),
        false => staged(plane, object).await.map(drop),
    };
    let patch = |object: &Value, (): &()| {
        let stands = promotion::of(object) == Some(PromotionRequest::ThisSpec);
        let patch = json!({"metadata": {
            "resourceVersion": meta_str(object, "resourceVersion"),
            "annotations": {meta::PROMOTE_WHEN_READY: hash},
        }});
        (!stands).then_some(Patch::Merge(patch))
    };
    PROMOTE.write(plane, object, decide, patch).await.map(|(object, ())| object)
}

/// The line about a request.
pub(in crate::cli) fn requested_line(plane: &DataPlaneRef, object: &Value, hash: &SpecHash) -> String {
    let summary = RolloutSummary::of(object, None);
    let done = format!("dataplane {}: the promotion of spec {} is requested", plane.key(), hash.short());
    match summary.phase {
        RolloutPhase::AwaitingPromotion | RolloutPhase::Promoting => done,
        RolloutPhase::Unreported => {
            format!("{done}; no controller has reported on it: {}", summary.next.unwrap_or_default())
        }
        phase => {
            let waits_for = summary.waits_for.map_or_else(String::new, |what| format!(": {what}"));
            format!("{done}, and takes effect when the preview is ready (now {phase}{waits_for})")
        }
    }
}

/// Sets the spec back to what is live.
pub(super) async fn abort(plane: &DataPlaneRef, flags: &VerbFlags) -> Result<(), CliError> {
    let decide = async |object: &Value| {
        let kept = plane.kept(object).await;
        verbs::abort(object, kept.spec.as_ref()).map_err(|why| {
            let refusal = plane.refusal(ABORT.done, &why);
            match &kept.unread {
                Some(unread) => refusal.why(unread),
                None => refusal,
            }
        })
    };
    let patch = |object: &Value, abort: &verbs::Abort| Some(spec_patch(object, abort.spec.clone()));
    let (object, done) = ABORT.write(plane, plane.get().await?, decide, patch).await?;
    output::line(&format!("dataplane {}: the spec is what is live again; undone:", plane.key()))?;
    print_changes(&done.undone)?;
    if !flags.wait {
        return Ok(());
    }
    until_done(plane, flags.limit.timeout, &object, abort_progress).await?;
    output::line(&format!("dataplane {}: nothing is staged", plane.key()))
}

/// Flags of `undo`.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct UndoFlags {
    #[command(flatten)]
    pub(super) verb: VerbFlags,
    /// The revision to go back to, as `rollout history` lists it. Without it, the one before the live one.
    #[arg(long, value_name = "REVISION", alias = "to-revision")]
    to: Option<i64>,
    /// Let the API server and admission judge the write, and store nothing.
    #[arg(long, value_enum, conflicts_with = "wait")]
    dry_run: Option<DryRun>,
}

/// Who judges a write that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DryRun {
    /// The API server.
    Server,
}

/// Writes the spec of a revision.
pub(super) async fn undo_to(plane: &DataPlaneRef, flags: &UndoFlags) -> Result<(), CliError> {
    let decide = async |object: &Value| {
        let listed = plane.history(object).await?;
        let kept = plane.kept(object).await;
        undo(object, kept.spec.as_ref(), &History::of(&listed, history::uid(object)), flags.to)
            .map_err(|why| undo_refusal(plane, &why))
    };
    let patch = |object: &Value, undo: &Undo| Some(spec_patch(object, undo.spec.clone()));
    let is_dry_run = flags.dry_run.is_some();
    let write = VerbWrite { is_dry_run, ..UNDO };
    let (object, done) = write.write(plane, plane.get().await?, decide, patch).await?;
    let dry_run = if is_dry_run { " (server dry run)" } else { "" };
    let (key, revision) = (plane.key(), done.revision);
    output::line(&format!("dataplane {key}: the spec is that of revision {revision}{dry_run}; changed:"))?;
    print_changes(&done.changes)?;
    if is_dry_run {
        return Ok(());
    }
    if flags.verb.wait {
        let hash = staged_hash(&object["spec"]);
        let progress = |object: &Value| undo_progress(&hash, object);
        until_done(plane, flags.verb.limit.timeout, &object, progress).await?;
    }
    output::line(&undo_next(plane, &done))
}

/// What has become of the write, and the next command.
fn undo_next(plane: &DataPlaneRef, done: &Undo) -> String {
    let (key, arguments) = (plane.key(), plane.arguments());
    match done.outcome {
        UndoOutcome::Staged => {
            format!(
                "dataplane {key}: revision {} is staged; promote it: `interlock rollout promote {arguments}`",
                done.revision
            )
        }
        UndoOutcome::Unstaged => {
            format!("dataplane {key}: nothing is staged, as revision {} is live", done.revision)
        }
        UndoOutcome::InPlace => {
            format!("dataplane {key}: revision {} is rolled out in place", done.revision)
        }
    }
}

fn undo_refusal(plane: &DataPlaneRef, why: &UndoRefusal) -> CliError {
    let arguments = plane.arguments();
    let list = format!("`interlock rollout history {arguments}`");
    let error = CliError::refused(format!("{plane} is not undone")).why(why.to_string());
    error.next(match why {
        UndoRefusal::InProgress => {
            format!("wait for its end: `interlock rollout status {arguments} --watch`")
        }
        UndoRefusal::NoHistory => {
            "write the spec yourself; Interlock records a revision once the live pods were ready, \
                                   where it carries DataPlanes out"
                .to_owned()
        }
        UndoRefusal::NoFormer => format!("look at what there is: {list}"),
        UndoRefusal::Unknown { .. } => format!("choose one with --to: {list}"),
        UndoRefusal::Unreadable(_) => format!("choose another one with --to: {list}"),
        UndoRefusal::Written(_) => format!("look at what is staged: `interlock rollout status {arguments}`"),
    })
}

/// The spec, without a request for a promotion, of the version that was read.
fn spec_patch(object: &Value, spec: Value) -> Patch<Value> {
    let replace = |path: &[&str], value: Value| {
        PatchOperation::Replace(ReplaceOperation {
            path: PointerBuf::from_tokens(path.iter().copied()),
            value,
        })
    };
    let version = meta_str(object, "resourceVersion").unwrap_or_default();
    let mut operations =
        vec![replace(&["metadata", "resourceVersion"], version.into()), replace(&["spec"], spec)];
    if annotation(object, meta::PROMOTE_WHEN_READY).is_some() {
        let path = PointerBuf::from_tokens(["metadata", "annotations", meta::PROMOTE_WHEN_READY]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    Patch::Json(json_patch::Patch(operations))
}

/// Prints the fields that a write has changed.
fn print_changes(changes: &StagedChanges) -> Result<(), CliError> {
    for field in &changes.fields {
        output::line(&plain(&format!("  {field}")))?;
    }
    match changes.more {
        0 => Ok(()),
        more => output::line(&format!("  and {more} more")),
    }
}
