//! A certificate in a Secret, for what belongs to an object: what is asked for, and whether it has to be written.
//! Keys are made and kept outside of what decides.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::object::meta_str;
use crate::api::ownership::{is_applied, is_of};

/// How long until a Secret is looked at again that is as it shall be: nothing tells of Secrets, as no right to watch
/// them is asked for.
const LOOK: Duration = Duration::from_secs(600);
/// How long until one is looked at again that goes soon.
const GOING: Duration = Duration::from_secs(5);

/// What is asked for: a Secret of type `kubernetes.io/tls` with `tls.crt`, `tls.key` and `ca.crt`, signed by the CA of
/// the installation for DataPlanes.
#[derive(Clone, Debug, PartialEq)]
pub struct CertificateRequest {
    /// The Secret without data. Its controller tells whose it is.
    pub secret: Value,
    /// The common name of the certificate.
    pub common_name: String,
    /// Its DNS names.
    pub names: Vec<String>,
    /// Whether a Secret of that name that this process did not write is used as it is, also where it belongs to the
    /// same owner: another operator made it.
    pub keeps_found: bool,
    /// Whether pods wait that mount it: it may be why they do not start.
    pub is_awaited: bool,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateAnswer {
    /// The Secret is there as it was asked for, and is looked at again then.
    InPlace(Timestamp),
    /// A Secret of another owner has the name: it is used as it is, and looked at again then.
    OfAnother(Timestamp),
    /// The API server did not allow it; its text.
    Denied(String),
    /// The CA cannot sign it; why, and what to do, for people.
    NoAuthority(String),
}

/// What is known of the Secret that has the name.
#[derive(Clone, Copy, Debug)]
pub struct FoundCertificate<'f> {
    /// The object; its data is not looked at.
    pub object: &'f Value,
    /// Its certificate; `None` where it has none that can be served.
    pub certificate: Option<&'f ServedCertificate>,
}

/// A certificate that goes with its key and is signed by the CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedCertificate {
    /// When it was made.
    pub issued: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    /// Its DNS names.
    pub names: Vec<String>,
    /// Whether the Secret has the CAs that are trusted now.
    pub has_authorities: bool,
}

/// What to do about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateStep {
    /// Nothing; this is the answer.
    Answer(CertificateAnswer),
    /// Write the Secret with another certificate.
    Renew,
    /// Write the Secret with the certificate that it has.
    Restore,
}

/// Decides on a request. `found` is the Secret that has the name.
pub fn next(
    request: &CertificateRequest,
    found: Option<FoundCertificate<'_>>,
    now: Timestamp,
) -> CertificateStep {
    let Some(FoundCertificate { object, certificate }) = found else { return CertificateStep::Renew };
    let owner = &request.secret["metadata"]["ownerReferences"][0];
    let is_kept = request.keeps_found && !is_applied(object);
    if is_kept || !is_of(owner["uid"].as_str().unwrap_or_default(), object) {
        let goes = match is_kept {
            true => meta_str(object, "deletionTimestamp").is_some(),
            false => is_of_namesake(owner, object),
        };
        let pause = if goes { GOING } else { LOOK };
        return CertificateStep::Answer(CertificateAnswer::OfAnother(after(now, pause)));
    }
    if meta_str(object, "deletionTimestamp").is_some() {
        return CertificateStep::Answer(CertificateAnswer::InPlace(after(now, GOING)));
    }
    let named = |served: &&ServedCertificate| request.names.iter().all(|name| served.names.contains(name));
    let Some(served) = certificate.filter(named).filter(|served| now < renewal(served)) else {
        return CertificateStep::Renew;
    };
    if !served.has_authorities || !has_marks(&request.secret, object) {
        return CertificateStep::Restore;
    }
    let look = after(now, LOOK).min(renewal(served));
    CertificateStep::Answer(CertificateAnswer::InPlace(look))
}

/// Whether an object belongs to one of the owner's name that is gone: the garbage collector deletes it.
fn is_of_namesake(owner: &Value, found: &Value) -> bool {
    let mut references = found["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    references.any(|there| there["kind"] == owner["kind"] && there["name"] == owner["name"])
}

/// A certificate is renewed at two thirds of its life.
fn renewal(served: &ServedCertificate) -> Timestamp {
    let life = Duration::try_from(served.expires.duration_since(served.issued)).unwrap_or_default();
    after(served.issued, life * 2 / 3)
}

fn after(time: Timestamp, pause: Duration) -> Timestamp {
    time.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// Whether an object has the labels and owners that were asked for.
fn has_marks(wanted: &Value, found: &Value) -> bool {
    let (wanted, found) = (&wanted["metadata"], &found["metadata"]);
    let mut labels = wanted["labels"].as_object().into_iter().flatten();
    let mut owners = wanted["ownerReferences"].as_array().into_iter().flatten();
    let has_owner = |owner: &Value| {
        let mut there = found["ownerReferences"].as_array().into_iter().flatten();
        there.any(|there| there["uid"] == owner["uid"] && there["controller"] == owner["controller"])
    };
    labels.all(|(name, value)| found["labels"][name] == *value) && owners.all(has_owner)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::api::meta;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn request() -> CertificateRequest {
        CertificateRequest {
            secret: json!({
                "kind": "Secret",
                "metadata": {
                    "name": "c", "labels": {"app": "edge"},
                    "ownerReferences": [{"kind": "DataPlane", "name": "edge", "uid": "u-1", "controller": true}],
                },
            }),
            common_name: "edge".to_owned(),
            names: vec!["a".to_owned()],
            keeps_found: false,
            is_awaited: false,
        }
    }

    fn served() -> ServedCertificate {
        ServedCertificate {
            issued: at(0),
            expires: at(9000),
            names: vec!["a".to_owned(), "b".to_owned()],
            has_authorities: true,
        }
    }

    fn answer(answer: CertificateAnswer) -> CertificateStep {
        CertificateStep::Answer(answer)
    }

    /// What a change of the Secret, and of its certificate, leads to.
    #[rstest]
    #[case::as_asked_for(100, |_: &mut Value| {}, Some(served()), answer(CertificateAnswer::InPlace(at(700))))]
    #[case::before_its_renewal(5900, |_: &mut Value| {}, Some(served()), answer(CertificateAnswer::InPlace(at(6000))))]
    #[case::at_two_thirds(6000, |_: &mut Value| {}, Some(served()), CertificateStep::Renew)]
    #[case::ended(9001, |_: &mut Value| {}, Some(served()), CertificateStep::Renew)]
    #[case::broken(100, |_: &mut Value| {}, None, CertificateStep::Renew)]
    #[case::of_other_names(
        100, |_: &mut Value| {}, Some(ServedCertificate { names: vec!["b".to_owned()], ..served() }), CertificateStep::Renew
    )]
    #[case::without_a_new_ca(
        100, |_: &mut Value| {}, Some(ServedCertificate { has_authorities: false, ..served() }), CertificateStep::Restore
    )]
    #[case::label_changed(
        100, |o: &mut Value| o["metadata"]["labels"]["app"] = json!("other"), Some(served()), CertificateStep::Restore
    )]
    #[case::label_added(
        100, |o: &mut Value| o["metadata"]["labels"]["team"] = json!("a"), Some(served()),
        answer(CertificateAnswer::InPlace(at(700)))
    )]
    #[case::stripped(
        100,
        |o: &mut Value| {
            o["metadata"]["ownerReferences"] = Value::Null;
            o["metadata"]["managedFields"] = json!([{"manager": meta::APPLY_MANAGER, "operation": "Apply"}]);
        },
        Some(served()),
        CertificateStep::Restore
    )]
    #[case::of_a_user(
        100, |o: &mut Value| o["metadata"]["ownerReferences"] = Value::Null, None,
        answer(CertificateAnswer::OfAnother(at(700)))
    )]
    #[case::of_another_controller(
        9001,
        |o: &mut Value| o["metadata"]["ownerReferences"] = json!([{"kind": "Issuer", "uid": "u-2", "controller": true}]),
        Some(served()),
        answer(CertificateAnswer::OfAnother(at(9601)))
    )]
    #[case::of_one_of_its_name_that_is_gone(
        100, |o: &mut Value| o["metadata"]["ownerReferences"][0]["uid"] = json!("u-2"), Some(served()),
        answer(CertificateAnswer::OfAnother(at(105)))
    )]
    #[case::being_deleted(
        100, |o: &mut Value| o["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"), Some(served()),
        answer(CertificateAnswer::InPlace(at(105)))
    )]
    fn what_is_found_decides(
        #[case] now: i64,
        #[case] change: fn(&mut Value),
        #[case] certificate: Option<ServedCertificate>,
        #[case] expected: CertificateStep,
    ) {
        let mut object = request().secret;
        change(&mut object);
        let found = FoundCertificate { object: &object, certificate: certificate.as_ref() };
        assert_eq!(next(&request(), Some(found), at(now)), expected);
    }

    /// That of another operator is neither renewed nor given our CA, and made again once it is gone.
    #[rstest]
    #[case::of_the_operator(json!({}), answer(CertificateAnswer::OfAnother(at(700))))]
    #[case::going(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), answer(CertificateAnswer::OfAnother(at(105))))]
    #[case::ours(
        json!({"managedFields": [{"manager": meta::APPLY_MANAGER, "operation": "Apply"}]}), CertificateStep::Renew
    )]
    fn one_that_another_operator_made_is_kept(#[case] metadata: Value, #[case] expected: CertificateStep) {
        let request = CertificateRequest { keeps_found: true, ..request() };
        let mut object = request.secret.clone();
        json_patch::merge(&mut object["metadata"], &metadata);
        let found = FoundCertificate { object: &object, certificate: None };
        assert_eq!(next(&request, Some(found), at(100)), expected);
        assert_eq!(next(&request, None, at(100)), CertificateStep::Renew);
    }

    #[test]
    fn a_missing_one_is_made() {
        assert_eq!(next(&request(), None, at(0)), CertificateStep::Renew);
    }
}
