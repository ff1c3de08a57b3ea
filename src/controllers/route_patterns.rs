//! Compiles the regular expressions of routes when they arrive, so that no review has to.
//!
//! Event of a route -> the patterns of its namespace -> compiled, on a thread that answers no review. Every process
//! with admission does this for itself.

use std::sync::Arc;

use interlock_kong::data_plane::flavor::pattern;
use tokio_util::sync::CancellationToken;

use crate::runtime::index::Store;

/// Runs until `stop`. One thread compiles at a time, however many routes change.
pub async fn run(store: Arc<Store>, stop: CancellationToken) {
    let mut changes = store.flavor_changes();
    loop {
        changes.mark_unchanged();
        let patterns = store.take_route_patterns();
        let compile = move || patterns.iter().for_each(|of_namespace| pattern::compile(of_namespace));
        if let Err(error) = tokio::task::spawn_blocking(compile).await {
            tracing::error!(%error, "patterns of routes were not compiled ahead");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            Ok(()) = changes.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::{Gvk, NamespacedName};
    use interlock_core::topology::Epoch;
    use interlock_kong::data_plane::GatewayLister;
    use interlock_kong::data_plane::flavor::gateway_ref::{GatewayKind, GatewayRef};
    use interlock_kong::data_plane::flavor::routes::{Inventory, Trait};
    use serde_json::json;

    use super::*;
    use crate::cluster::watch::WatchChange;

    /// Whether the patterns of all routes are compiled.
    fn compiled(store: &Store) -> bool {
        let edge = GatewayRef { kind: GatewayKind::DataPlane, name: NamespacedName::new("shop", "edge") };
        let Inventory::Seen { routes, .. } = &*store.context_of(&edge).routes else { return false };
        let mut traits = routes.iter().flat_map(|route| &route.traits);
        traits.all(|found| matches!(&found.what, Trait::Pattern(pattern) if pattern.is_compiled()))
    }

    #[tokio::test]
    async fn a_route_is_compiled_when_it_arrives() {
        let store = Store::new(crate::kinds::all(), true);
        let stop = CancellationToken::new();
        let running = tokio::spawn(run(store.clone(), stop.clone()));
        let gvk = Gvk { group: "networking.k8s.io".into(), version: "v1".into(), kind: "Ingress".into() };
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "1"},
            "spec": {"rules": [{"http": {"paths": [
                {"path": "/~/a\\d+", "pathType": "ImplementationSpecific"},
            ]}}]},
        });
        store.observe(&gvk, Epoch(1), &WatchChange::Listing("".into()));
        store.observe(&gvk, Epoch(1), &WatchChange::Listed(Arc::new(ingress)));
        assert!(!compiled(&store), "the task had no turn yet");
        while !compiled(&store) {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        running.await.unwrap();
    }
}
