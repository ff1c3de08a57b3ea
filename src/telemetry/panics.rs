//! Panics as values: a panic in the work on one object ends no other work.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use thiserror::Error;

/// Work that panicked; the log names the place ([`super::log`]).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("panicked: {0}")]
pub struct Panicked(String);

impl Panicked {
    fn of(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Self(text.unwrap_or("(no text)").to_owned())
    }
}

/// Runs work to its end, or until it panics. State that it shares must tolerate that it stops half-way.
pub async fn caught<W: Future>(work: W) -> Result<W::Output, Panicked> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|payload| Panicked::of(payload.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_reported_with_its_text() {
        let panics = |work: fn()| async move { caught(async move { work() }).await.unwrap_err().to_string() };
        assert_eq!(caught(async { 1 }).await, Ok(1));
        assert_eq!(panics(|| panic!("as it is")).await, "panicked: as it is");
        assert_eq!(panics(|| panic!("with {}", 1)).await, "panicked: with 1");
        assert_eq!(panics(|| std::panic::panic_any(1)).await, "panicked: (no text)");
    }

    #[tokio::test]
    async fn a_panic_after_a_pause_is_caught_as_well() {
        let work = async {
            tokio::task::yield_now().await;
            panic!("later");
        };
        assert!(caught(work).await.is_err());
    }
}
