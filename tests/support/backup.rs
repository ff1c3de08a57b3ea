//! The Secret of the certificates as it may have been once, with a CA of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use ::interlock::cluster::certificates::authority::{authority, leaf};
use ::interlock::cluster::certificates::stored::{CertificateFacts, Stored};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::Value;

/// What is in the data of the Secret.
pub fn stored(data: &Value) -> Stored {
    let data: BTreeMap<String, ByteString> = serde_json::from_value(data.clone()).expect("data of a Secret");
    Stored::read(&data).expect("a usable Secret")
}

/// Another CA and a leaf of it, for the same names.
pub fn another(data: &Value) -> Stored {
    let (now, life) = (Timestamp::now(), Duration::from_secs(3600));
    let names = CertificateFacts::of(&stored(data).leaf.certificate).expect("a leaf").names;
    let authority = authority(now, life).expect("a CA");
    let leaf = leaf(&authority, &names, now, life).expect("a leaf");
    Stored { authority, leaf, next: None, previous: String::new() }
}

/// The caBundle that trusts nothing else, as JSON has it.
pub fn ca_bundle(stored: &Stored) -> Value {
    serde_json::json!(ByteString(stored.bundle().into_bytes()))
}
