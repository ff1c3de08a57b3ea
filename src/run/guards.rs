//! Tamper detection: compares the guard objects with those that this process would render.

use interlock_core::api::meta::install::FREEZE_BINDING;
use interlock_kong::data_plane::policies::{GUARDED_SOURCES, OVERRIDES};
use interlock_kudo::instance::policies::{VERBS, VERSIONS};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::{Guards, Parts, Process};
use crate::cluster::binding::BindingState;
use crate::cluster::events::EventPublisher;
use crate::cluster::lease::Leadership;
use crate::cluster::tamper::{GuardId, GuardKind, GuardStates, Observation, TamperMonitor, TamperNotifier};
use crate::install::{self, Endpoint};

impl Guards {
    fn on_guard_states(&self, states: &GuardStates) {
        replace(&self.verbs, states.policy_state(VERBS));
        replace(&self.versions, states.policy(VERSIONS));
        let freeze = GuardId { kind: GuardKind::Binding, name: FREEZE_BINDING.to_owned() };
        replace(&self.freeze, states.found(&freeze).map(BindingState::of).unwrap_or_default());
    }
}

fn replace<T: PartialEq>(sender: &watch::Sender<T>, now: T) {
    sender.send_if_modified(|old| {
        let changed = *old != now;
        *old = now;
        changed
    });
}

impl Process {
    /// Watches the guard objects, as soon as the user in them is known. The watch of the webhook
    /// configurations is that of the certificates, which sends its observations here.
    pub(super) fn watch_guards(
        &self,
        process_client: &Client,
        guards: Guards,
        leadership: watch::Receiver<Leadership>,
        parts: &mut Parts,
    ) -> mpsc::UnboundedSender<Observation> {
        let (seen, webhooks) = mpsc::unbounded_channel();
        let notifier = TamperNotifier::new(
            self.metrics.clone(),
            EventPublisher::new(process_client.clone()),
            leadership,
        );
        let monitor = TamperMonitor { client: process_client.clone(), webhooks, notifier };
        let (options, configuration) = (self.installation(), self.options.webhook_configuration.clone());
        let (mut user, store) = (self.user.subscribe(), self.store.clone());
        let all = self.options.roles.controllers;
        let guarding = async move {
            // The process holds the sender.
            let known = user.wait_for(Option::is_some).await.map(|user| user.clone()).unwrap_or_default();
            let options = install::InstallOptions { controller_user: known, ..options };
            let mut installed = install::policies::all(&options);
            let mut optional = install::policies::protect_live(&options);
            if all {
                installed.extend(webhooks_named(&configuration, &options));
            } else {
                // A separate webhook may read only this one.
                installed.retain(|object| object["metadata"]["name"] == OVERRIDES);
                optional.clear();
            }
            let on_change = |states: &GuardStates| {
                guards.on_guard_states(states);
                store.guard_overrides(states.policy(OVERRIDES));
                store.guard_sources(states.policy(GUARDED_SOURCES));
            };
            monitor.run(installed, optional, on_change).await;
            Ok("the watch of the guard objects")
        };
        parts.spawn_on(guarding, &self.runtimes.watching);
        seen
    }

    /// The options of the installation, as far as the flags show them.
    fn installation(&self) -> install::InstallOptions {
        let options = &self.options;
        let endpoint = match &options.webhook_url {
            Some(url) => Endpoint::Url { base: url.clone(), ca_bundle: Vec::new() },
            None => Endpoint::Service { name: options.service.clone() },
        };
        install::InstallOptions {
            kinds: options.kinds,
            namespace: options.namespace.clone(),
            endpoint,
            freeze: options.freeze,
            watch_namespaces: options.watch_namespaces.clone(),
            ..install::InstallOptions::default()
        }
    }
}

fn webhooks_named(name: &str, options: &install::InstallOptions) -> Vec<Value> {
    let mut configurations = install::webhooks::all(options);
    for configuration in &mut configurations {
        configuration["metadata"]["name"] = json!(name);
    }
    configurations
}
