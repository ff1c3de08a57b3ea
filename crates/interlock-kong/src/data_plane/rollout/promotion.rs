//! Requests for a promotion: the annotation `gateway-operator.konghq.com/promote-when-ready`.

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use interlock_core::api::stamp::SpecHash;
use serde::Serialize;
use serde_json::Value;

use crate::data_plane::live_spec;

/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;

/// What the annotation requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PromotionRequest {
    /// `true`, as Kong has it: the promotion of what is staged, whatever it is.
    True,
    /// The promotion of the spec that is written.
    ThisSpec,
    /// The promotion of a spec that is not written any more.
    AnotherSpec,
    /// Nothing: the value is neither `true` nor a hash.
    Nonsense,
}

impl PromotionRequest {
    /// Whether it requests the promotion of the spec that is written.
    pub fn is_for_this(self) -> bool {
        matches!(self, Self::True | Self::ThisSpec)
    }
}

/// Whether a spec asks for promotions without a request: Kong's `AutomaticPromotion`.
pub fn is_automatic(spec: &Value) -> bool {
    const STRATEGY: &str = "/deployment/rollout/strategy/blueGreen/promotion/strategy";
    spec.pointer(STRATEGY).is_some_and(|strategy| strategy == "AutomaticPromotion")
}

/// The hash of what a promotion of the written spec makes live: not of the fields that take effect at once, so that
/// scaling leaves a request for a promotion as it is.
pub fn staged_hash(spec: &Value) -> SpecHash {
    SpecHash::of(&live_spec::staged_part(spec).to_string())
}

/// What the annotation of a DataPlane requests; `None` without it.
pub fn of(object: &Value) -> Option<PromotionRequest> {
    annotation(object, meta::PROMOTE_WHEN_READY).map(|value| requested(value, &object["spec"]))
}

/// What a value of the annotation requests, for a written spec.
pub fn requested(annotation: &str, spec: &Value) -> PromotionRequest {
    if annotation == "true" {
        return PromotionRequest::True;
    }
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match annotation.strip_prefix("sha256:") {
        Some(hex) if hex.len() == DIGITS && hex.bytes().all(digit) => {
            match staged_hash(spec).as_str() == annotation {
                true => PromotionRequest::ThisSpec,
                false => PromotionRequest::AnotherSpec,
            }
        }
        _ => PromotionRequest::Nonsense,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn spec() -> Value {
        json!({"deployment": {"replicas": 2, "rollout": {"strategy": {"blueGreen": {}}}}})
    }

    fn upper(hash: &SpecHash) -> String {
        hash.as_str().replace("sha256:", "SHA256:")
    }

    #[test]
    fn scaling_leaves_a_request_as_it_is() {
        let mut scaled = spec();
        scaled["deployment"]["replicas"] = json!(7);
        scaled["resources"] = json!({"podDisruptionBudget": {"spec": {"minAvailable": 1}}});
        assert_eq!(staged_hash(&scaled), staged_hash(&spec()));
        scaled["deployment"]["podTemplateSpec"] = json!({"spec": {}});
        assert_ne!(staged_hash(&scaled), staged_hash(&spec()));
    }

    #[rstest]
    #[case::kong("true".to_owned(), PromotionRequest::True)]
    #[case::this(staged_hash(&spec()).to_string(), PromotionRequest::ThisSpec)]
    #[case::another(staged_hash(&json!({"x": 1})).to_string(), PromotionRequest::AnotherSpec)]
    #[case::empty(String::new(), PromotionRequest::Nonsense)]
    #[case::yes("True".to_owned(), PromotionRequest::Nonsense)]
    #[case::short("sha256:0".to_owned(), PromotionRequest::Nonsense)]
    #[case::no_digits(format!("sha256:{}", "z".repeat(64)), PromotionRequest::Nonsense)]
    #[case::upper_case(upper(&staged_hash(&spec())), PromotionRequest::Nonsense)]
    fn values_of_the_annotation(#[case] annotation: String, #[case] request: PromotionRequest) {
        assert_eq!(requested(&annotation, &spec()), request);
    }
}
