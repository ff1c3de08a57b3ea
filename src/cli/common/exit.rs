//! The end of a command: its exit code, and the error if there is one. All errors are printed here.

use std::process::ExitCode;

use interlock_core::api::display::printable;

use super::error::{CliError, Exit, of_api, of_client, of_watch};
use super::invoked::as_called;
use crate::cluster::client::ClientError;

/// Of a command that does something: 0 done, else the code of the error, 1 where it has none.
pub(in crate::cli) fn done(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, Exit::Refused),
    }
}

/// Of a command that decides: 0 yes, 1 no, else the code of the error, 2 where it has none.
pub(in crate::cli) fn decided(answer: anyhow::Result<bool>) -> ExitCode {
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(Exit::Refused.code()),
        Err(error) => failed(&error, Exit::Usage),
    }
}

/// Prints an error; its exit code, or this one where it has none.
pub(in crate::cli) fn failed(error: &anyhow::Error, exit: Exit) -> ExitCode {
    print(&from_anyhow(error, exit))
}

pub(in crate::cli) fn print(error: &CliError) -> ExitCode {
    eprint!("{}", printable(&as_called(&error.text())));
    ExitCode::from(error.exit().code())
}

/// An error with its contexts, as `anyhow` gathers them, in the one shape. What failed is the outermost context;
/// the exit code is that of the known cause, else this one.
fn from_anyhow(error: &anyhow::Error, exit: Exit) -> CliError {
    let mut contexts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let what = || contexts.first().cloned();
        if let Some(found) = cause.downcast_ref::<CliError>() {
            return contexts.iter().rev().fold(found.clone(), |found, context| found.within(context));
        }
        if let Some(found) = cause.downcast_ref::<kube::Error>() {
            return of_api(&what().unwrap_or_else(|| "the request failed".to_owned()), found);
        }
        if let Some(found) = cause.downcast_ref::<kube::runtime::watcher::Error>() {
            return of_watch(&what().unwrap_or_else(|| "the watch failed".to_owned()), found);
        }
        if let Some(found) = cause.downcast_ref::<ClientError>() {
            return of_client(found);
        }
        let text = cause.to_string();
        // Some errors repeat their cause.
        if !contexts.last().is_some_and(|known| known.contains(&text)) {
            contexts.push(text);
        }
    }
    let mut contexts = contexts.into_iter();
    let found = CliError::with(exit, contexts.next().unwrap_or_default());
    found.why(contexts.collect::<Vec<_>>().join(": "))
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    #[test]
    fn contexts_are_what_failed_and_causes_why() {
        let error = anyhow!("line 3: not a mapping").context("a.yaml cannot be read");
        let found = from_anyhow(&error, Exit::Usage);
        assert_eq!(found.text(), "error: a.yaml cannot be read\n  why:   line 3: not a mapping\n");
        assert_eq!(found.exit(), Exit::Usage);
    }

    #[test]
    fn a_cause_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the file cannot be read: {source}")]
        struct Repeats {
            source: std::io::Error,
        }
        let error = anyhow::Error::new(Repeats { source: std::io::Error::other("no space") });
        assert_eq!(from_anyhow(&error, Exit::Refused).text(), "error: the file cannot be read: no space\n");
    }

    #[test]
    fn an_error_in_the_shape_keeps_its_exit_code() {
        let error = Err::<(), _>(CliError::unreached("Instance a/b does not exist").next("choose another"))
            .context("plan status")
            .unwrap_err();
        let found = from_anyhow(&error, Exit::Refused);
        assert_eq!(
            found.text(),
            "error: plan status: Instance a/b does not exist\n  next:  choose another\n"
        );
        assert_eq!(found.exit(), Exit::Unreached);
    }

    #[test]
    fn a_request_is_classified_below_its_context() {
        let status = kube::core::Status { message: "etcd is gone".into(), code: 500, ..Default::default() };
        let error = Err::<(), _>(kube::Error::Api(Box::new(status))).context("Instances cannot be listed");
        let found = from_anyhow(&error.unwrap_err(), Exit::Refused);
        assert!(found.text().starts_with("error: Instances cannot be listed\n  why:   etcd is gone\n"));
        assert_eq!(found.exit(), Exit::Unreached);
    }
}
