//! Which container of a pod template runs Kong.
//!
//! Kong's operator, charts and manifests call it `proxy`. Of a Deployment, which anybody may have written, it is found
//! by annotation, image and environment as well.

use interlock_core::api::meta;
use interlock_core::api::pod::{Container, PodTemplate};
use serde::Deserialize as _;
use serde_json::Value;

use super::environment::{FILE_VARIABLE, Unknown, VARIABLE};
use super::sources::LONGEST;
use crate::api::PROXY;

/// Repositories of Kong's images, without registry and organisation.
const IMAGES: [&str; 3] = ["kong", "kong-gateway", "kong-gateway-fips"];

/// The container `proxy`.
pub fn proxy(template: &PodTemplate) -> Result<&Container, Unknown> {
    let mut proxies = template.spec.containers.iter().filter(|container| container.name == PROXY);
    match (proxies.next(), proxies.next()) {
        (Some(proxy), None) => Ok(proxy),
        (None, _) => Err(Unknown::NoProxy),
        (Some(_), Some(_)) => Err(Unknown::ManyProxies),
    }
}

/// `proxy`, else the only container with an image of Kong, else the one that the annotation of the pods names, else the
/// only one that sets the flavor. So the annotation tells what cannot be seen, and hides nothing that can.
pub fn find(template: &PodTemplate) -> Result<&Container, Unknown> {
    let containers = || template.spec.containers.iter();
    match proxy(template) {
        Err(Unknown::NoProxy) => {}
        found => return found,
    }
    let by_image = only(containers().filter(|container| has_image(container)));
    if let Some(Ok(found)) = by_image {
        return Ok(found);
    }
    if let Some(name) = template.metadata.annotations.get(meta::KONG_CONTAINER) {
        let named = containers().find(|container| container.name == *name);
        return named.ok_or_else(|| Unknown::NoContainer(name.clone()));
    }
    by_image
        .or_else(|| only(containers().filter(|container| sets_flavor(container))))
        .unwrap_or(Err(Unknown::NoKong))
}

/// Whether a Deployment has a container that may run Kong: that of an ingress controller has none.
pub fn may_be_in(deployment: &Value) -> bool {
    let template = PodTemplate::deserialize(&deployment["spec"]["template"]);
    template.is_ok_and(|template| find(&template).err() != Some(Unknown::NoKong))
}

/// How many of several containers are remembered.
const NAMED: usize = 4;

/// `None`: there is none.
fn only<'t>(candidates: impl Iterator<Item = &'t Container>) -> Option<Result<&'t Container, Unknown>> {
    let found: Vec<&Container> = candidates.collect();
    match found[..] {
        [] => None,
        [one] => Some(Ok(one)),
        _ => Some(Err(Unknown::ManyKongs(
            found.iter().take(NAMED).map(|kong| (kong.name.clone(), said(kong))).collect(),
        ))),
    }
}

/// The flavor that a container says itself, as far as one can be.
fn said(container: &Container) -> String {
    let last = container.env.iter().rfind(|entry| entry.name == VARIABLE);
    last.map(|entry| entry.value.chars().take(LONGEST).collect()).unwrap_or_default()
}

fn has_image(container: &Container) -> bool {
    let image = container.image.as_deref().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    IMAGES.contains(&last.split([':', '@']).next().unwrap_or_default())
}

fn sets_flavor(container: &Container) -> bool {
    container.env.iter().any(|entry| [VARIABLE, FILE_VARIABLE].contains(&entry.name.as_str()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn named(name: &str, image: &str) -> Value {
        json!({"name": name, "image": image})
    }

    #[rstest]
    #[case::proxy(json!([named("kong", "kong:3.9"), named("proxy", "x")]), Ok("proxy"))]
    #[case::image(json!([named("gw", "registry:5000/kong/kong-gateway:3.4"), named("kic", "kong/kubernetes-ingress-controller:3.5")]), Ok("gw"))]
    #[case::digest(json!([named("gw", "kong@sha256:0123")]), Ok("gw"))]
    #[case::environment(json!([named("a", "mirror/k:1"), {"name": "b", "env": [{"name": VARIABLE, "value": "x"}]}]), Ok("b"))]
    #[case::several(json!([named("a", "kong:3.9"), named("b", "kong:3.4")]), Err(Unknown::ManyKongs(vec![("a".to_owned(), String::new()), ("b".to_owned(), String::new())])))]
    #[case::none(json!([named("kic", "kong/kubernetes-ingress-controller:3.5")]), Err(Unknown::NoKong))]
    #[case::twice(json!([named("proxy", "kong:3.9"), named("proxy", "kong:3.4")]), Err(Unknown::ManyProxies))]
    fn of_a_deployment(#[case] containers: Value, #[case] expected: Result<&str, Unknown>) {
        let template = PodTemplate::deserialize(json!({"spec": {"containers": containers}})).unwrap();
        assert_eq!(find(&template).map(|container| container.name.as_str()), expected);
    }

    #[rstest]
    #[case::unseen("b", "mirror/gateway:3.9", Ok("b"))]
    #[case::lost("c", "mirror/gateway:3.9", Err(Unknown::NoContainer("c".to_owned())))]
    #[case::decoy("b", "kong:3.9", Ok("a"))]
    fn that_is_named(#[case] name: &str, #[case] image: &str, #[case] expected: Result<&str, Unknown>) {
        let template = PodTemplate::deserialize(json!({
            "metadata": {"annotations": {"interlock.dev/kong-container": name}},
            "spec": {"containers": [named("a", image), named("b", "mirror/k:1")]},
        }));
        assert_eq!(find(&template.unwrap()).map(|container| container.name.as_str()), expected);
    }
}
