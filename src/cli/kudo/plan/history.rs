//! `interlock plan history`.

use std::fmt::Write as _;

use interlock_core::api::display::one_line;
use interlock_core::api::meta;
use interlock_kudo::instance::change::history;
use interlock_kudo::instance::change::history::EndedRun;

use crate::cli::common::error::CliError;
use crate::cli::common::output::{Output, table};
use crate::cli::kudo::instance::{InstanceRef, annotation};

/// Prints the last runs, newest first.
pub(super) async fn run(subject: &InstanceRef, form: Output) -> Result<(), CliError> {
    let instance = subject.read().await?;
    let runs = history::read(annotation(&instance, meta::HISTORY));
    form.print(&runs, || text(&runs))
}

fn text(runs: &[EndedRun]) -> String {
    if runs.is_empty() {
        return "no run has ended yet\n".to_owned();
    }
    let time = |time: &Option<jiff::Timestamp>| {
        time.map_or_else(|| "-".to_owned(), |t| t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    let rows = runs.iter().map(|run| {
        let spec = run.hash.as_ref().map_or("-", |hash| hash.short()).to_owned();
        let (plan, uid, result) = (run.plan.clone(), run.uid.clone(), run.result.as_str().to_owned());
        vec![plan, uid, result, time(&run.start), time(&run.end), spec]
    });
    let table = table(&["PLAN", "RUN", "RESULT", "START", "END", "SPEC"], rows);
    let mut out = String::new();
    for (i, row) in table.lines().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{row}");
        for asked in i.checked_sub(1).and_then(|i| runs.get(i)).iter().flat_map(|run| &run.asked) {
            let who = if asked.who.is_empty() { "somebody" } else { asked.who.as_str() };
            let dropped = asked.dropped.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let line = format!("  {} by {who}: {}{dropped}", asked.verb, asked.reason);
            let _ = writeln!(out, "{}", one_line(&line));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_with_what_was_asked_of_them() {
        let runs = history::read(Some(
            r#"[{"plan": "deploy", "uid": "u2", "result": "COMPLETE", "start": "2026-01-02T03:04:05.678Z", "end": "2026-01-02T03:04:06Z",
                "asked": [{"verb": "retry", "who": "alice", "reason": "it can now", "nonce": "n"}]},
               {"plan": "not-allowed", "uid": "u1", "result": "FATAL_ERROR", "asked": [{"verb": "abort", "reason": "no", "nonce": "m"}]}]"#,
        ));
        assert_eq!(
            text(&runs),
            "PLAN         RUN  RESULT       START                 END                   SPEC\n\
             deploy       u2   COMPLETE     2026-01-02T03:04:05Z  2026-01-02T03:04:06Z  -\n\
             \x20 retry by alice: it can now\n\
             not-allowed  u1   FATAL_ERROR  -                     -                     -\n\
             \x20 abort by somebody: no\n"
        );
        assert_eq!(text(&[]), "no run has ended yet\n");
    }

    #[test]
    fn no_text_steers_the_terminal() {
        let runs = history::read(Some(
            r#"[{"plan": "a\u001b[2J\nb", "uid": "u", "result": "COMPLETE", "asked": [{"verb": "retry", "who": "\u202ealice", "reason": "x\ny", "nonce": "n"}]}]"#,
        ));
        let text = text(&runs);
        let shown: Vec<&str> = text.lines().skip(1).collect();
        let [run, asked] = shown.as_slice() else { panic!("{text:?}") };
        assert!(run.starts_with("a\\u001b[2J b  u "), "{run}");
        assert_eq!(*asked, "  retry by \\u202ealice: x y");
    }
}
