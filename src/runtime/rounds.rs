//! The loop under what is decided by a pure function of what was read: each round decides from the start, then reads what
//! the decision lacks or writes what it wants, on the versions that were read.

use super::controller::Action;

/// What a round decided.
pub enum Decision<L, W, E> {
    Lacks(L),
    Write(W),
    End(E),
}

/// What follows a read or a write.
#[derive(Debug)]
pub enum Flow<E = Action> {
    /// Another round, on the new state.
    Again,
    End(E),
}

/// The decision of a round, or why the work stops.
pub type Decided<R> =
    Result<Decision<<R as Rounds>::Lacks, <R as Rounds>::Writes, <R as Rounds>::End>, <R as Rounds>::Stop>;

/// Work that is done in rounds.
pub trait Rounds: Send + Sized {
    type Lacks: Send;
    type Writes: Send;
    type End: Send;
    /// Why it stops before its end.
    type Stop: Send;

    /// Whether the leader epoch lasts in which the work began: between two epochs another process may have led.
    fn leads(&self) -> Result<(), Self::Stop>;

    /// Decides on what is known by now.
    fn decide(&mut self) -> impl Future<Output = Decided<Self>> + Send;

    /// Gets what a decision lacks; ends where it cannot be known yet.
    fn read(
        &mut self,
        lacks: Self::Lacks,
    ) -> impl Future<Output = Result<Flow<Self::End>, Self::Stop>> + Send;

    /// Writes what a decision wants, and takes in what the API server answers.
    fn write(
        &mut self,
        wanted: Self::Writes,
    ) -> impl Future<Output = Result<Flow<Self::End>, Self::Stop>> + Send;
}

/// Does work while this process leads; `None` where it has no end within so many rounds.
pub async fn drive<R: Rounds>(work: &mut R, rounds: usize) -> Result<Option<R::End>, R::Stop> {
    for _ in 0..rounds {
        work.leads()?;
        let flow = match work.decide().await? {
            Decision::Lacks(lacks) => work.read(lacks).await?,
            Decision::Write(wanted) => {
                work.leads()?;
                work.write(wanted).await?
            }
            Decision::End(end) => Flow::End(end),
        };
        if let Flow::End(end) = flow {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Lacks something, writes, and ends after so many writes.
    struct Work {
        writes: usize,
        /// After how many decisions another process leads.
        leads: usize,
        done: Vec<&'static str>,
    }

    impl Work {
        fn did(&self, what: &str) -> usize {
            self.done.iter().filter(|done| **done == what).count()
        }
    }

    impl Rounds for Work {
        type Lacks = ();
        type Writes = ();
        type End = &'static str;
        type Stop = &'static str;

        fn leads(&self) -> Result<(), &'static str> {
            if self.did("decide") < self.leads { Ok(()) } else { Err("another leads") }
        }

        async fn decide(&mut self) -> Decided<Self> {
            self.done.push("decide");
            Ok(match (self.did("read"), self.did("write")) {
                (0, _) => Decision::Lacks(()),
                (_, writes) if writes < self.writes => Decision::Write(()),
                _ => Decision::End("ended"),
            })
        }

        async fn read(&mut self, (): ()) -> Result<Flow<&'static str>, &'static str> {
            self.done.push("read");
            Ok(Flow::Again)
        }

        async fn write(&mut self, (): ()) -> Result<Flow<&'static str>, &'static str> {
            self.done.push("write");
            Ok(Flow::Again)
        }
    }

    #[rstest]
    #[case::to_its_end(1, 9, Ok(Some("ended")), &["decide", "read", "decide", "write", "decide"])]
    #[case::within_its_rounds(9, 9, Ok(None), &["decide", "read", "decide", "write", "decide", "write"])]
    #[case::no_write_of_a_former_leader(1, 2, Err("another leads"), &["decide", "read", "decide"])]
    #[case::no_read_either(1, 0, Err("another leads"), &[])]
    #[tokio::test]
    async fn work_goes_on(
        #[case] writes: usize,
        #[case] leads: usize,
        #[case] ended: Result<Option<&'static str>, &'static str>,
        #[case] done: &[&str],
    ) {
        let mut work = Work { writes, leads, done: Vec::new() };
        assert_eq!(drive(&mut work, 3).await, ended);
        assert_eq!(work.done, done);
    }
}
