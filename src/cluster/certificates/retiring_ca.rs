//! CAs in use that are no longer in the Secret, because it was restored from a backup or replaced. The API
//! server trusts them until every replica serves a leaf of the new CA.

use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use tokio::time::Instant;

use super::stored::{certificates, is_unexpired_ca, pem, unexpired_cas};

/// Each CA of ours that is in use beyond the Secret, and since when.
///
/// Every replica records the same CAs from the same caBundles, so that a new leader continues where the old
/// one stopped.
#[derive(Debug)]
pub struct RetiringCas {
    retention: Duration,
    recorded: Vec<(CertificateDer<'static>, Instant)>,
}

impl RetiringCas {
    /// Nothing recorded yet; each CA stays trusted for `retention`.
    pub fn new(retention: Duration) -> Self {
        Self { retention, recorded: Vec::new() }
    }

    /// Records CAs in use that are not `stored`: `bundles` are the current caBundles, `serving` is the CA of
    /// the leaf that this process serves.
    pub fn record(
        &mut self,
        stored: &str,
        bundles: &[Vec<u8>],
        serving: Option<&str>,
        now: Timestamp,
        at: Instant,
    ) {
        let trusted = unexpired_cas(bundles, stored, now);
        let stored_ones = certificates(stored.as_bytes());
        let retention = self.retention;
        // An expired entry stays until the caBundles no longer hold its CA: else the next check would
        // record it anew.
        self.recorded.retain(|(certificate, since)| {
            let here = at.duration_since(*since) < retention || trusted.contains(certificate);
            here && is_unexpired_ca(certificate, now) && !stored_ones.contains(certificate)
        });
        for certificate in trusted {
            self.entry(certificate, at);
        }
        let serving: Vec<_> = serving.map(|pem| pem.as_bytes().to_vec()).into_iter().collect();
        for certificate in unexpired_cas(&serving, stored, now) {
            *self.entry(certificate, at) = at;
        }
    }

    fn entry(&mut self, certificate: CertificateDer<'static>, at: Instant) -> &mut Instant {
        let known = self.recorded.iter().position(|(recorded, _)| *recorded == certificate);
        let place = known.unwrap_or(self.recorded.len());
        if known.is_none() {
            self.recorded.push((certificate, at));
        }
        &mut self.recorded[place].1
    }

    /// The CAs that must stay trusted, as PEM.
    pub fn trusted(&self, at: Instant) -> String {
        let trusted = self.recorded.iter().filter(|(_, since)| at.duration_since(*since) < self.retention);
        trusted.map(|(certificate, _)| pem(certificate)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::authority::authority;
    use super::*;

    const RETENTION: Duration = Duration::from_secs(100);

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn ca(lifetime: u64) -> String {
        authority(now(), Duration::from_secs(lifetime)).unwrap().certificate
    }

    /// A `RetiringCas` and a clock for it.
    struct Clock {
        retiring: RetiringCas,
        start: Instant,
    }

    impl Clock {
        fn new() -> Self {
            Self { retiring: RetiringCas::new(RETENTION), start: Instant::now() }
        }

        /// The CAs that stay at this second.
        fn at(&mut self, second: u64, stored: &str, bundle: &str, serving: Option<&str>) -> String {
            let after = Duration::from_secs(second);
            let bundles = [bundle.as_bytes().to_vec(), bundle.as_bytes().to_vec()];
            self.retiring.record(stored, &bundles, serving, now() + after, self.start + after);
            self.retiring.trusted(self.start + after)
        }
    }

    #[track_caller]
    fn same(trusted: &str, expected: &[&str]) {
        let expected = expected.concat();
        assert_eq!(certificates(trusted.as_bytes()), certificates(expected.as_bytes()));
    }

    #[test]
    fn what_is_trusted_when_the_secret_changes_stays_for_a_while() {
        let (old, new) = (ca(1000), ca(1000));
        let both = format!("{new}{old}");
        let mut bench = Clock::new();
        same(&bench.at(0, &old, &old, Some(&old)), &[]);
        same(&bench.at(1, &new, &old, Some(&old)), &[&old]);
        same(&bench.at(9, &new, &both, Some(&old)), &[&old]);
        // From here on this process serves the new CA.
        same(&bench.at(10, &new, &both, Some(&new)), &[&old]);
        same(&bench.at(50, &new, "", Some(&new)), &[&old]);
        same(&bench.at(108, &new, &both, Some(&new)), &[&old]);
        // The leader wrote the bundles without it; this process reads them later.
        same(&bench.at(109, &new, &both, Some(&new)), &[]);
        same(&bench.at(110, &new, &both, Some(&new)), &[]);
        same(&bench.at(111, &new, &new, Some(&new)), &[]);
        same(&bench.at(112, &new, &new, Some(&new)), &[]);
    }

    #[test]
    fn what_this_process_serves_stays_for_as_long() {
        let (old, new) = (ca(1000), ca(1000));
        let mut bench = Clock::new();
        same(&bench.at(0, &new, "", Some(&old)), &[&old]);
        same(&bench.at(500, &new, &new, Some(&old)), &[&old]);
        same(&bench.at(599, &new, &new, Some(&new)), &[&old]);
        same(&bench.at(600, &new, &new, Some(&new)), &[]);
    }

    #[test]
    fn what_another_process_serves_stays_when_this_one_has_moved() {
        let (old, older, new) = (ca(1000), ca(1000), ca(1000));
        let mut bench = Clock::new();
        let both = format!("{old}{older}");
        same(&bench.at(0, &new, &both, Some(&new)), &[&old, &older]);
        same(&bench.at(99, &new, &format!("{new}{both}"), Some(&new)), &[&old, &older]);
        same(&bench.at(100, &new, &format!("{new}{both}"), Some(&new)), &[]);
    }

    #[test]
    fn what_comes_back_or_ends_does_not_stay() {
        let (old, short, new) = (ca(1000), ca(20), ca(1000));
        let mut bench = Clock::new();
        let all = format!("{new}{old}{short}");
        same(&bench.at(0, &new, &all, None), &[&old, &short]);
        same(&bench.at(30, &new, &all, None), &[&old]);
        same(&bench.at(31, &old, &all, None), &[&new]);
        // Its time starts again.
        same(&bench.at(90, &new, &all, None), &[&old]);
        same(&bench.at(189, &new, &all, None), &[&old]);
        same(&bench.at(190, &new, &all, None), &[]);
    }
}
