//! What admission reads of the index.

use std::sync::Arc;

use interlock_core::admission::lister::{KindListers, Lister, Overridden};
use interlock_core::api::interlock::Actions;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::namespace::NamespaceLister;
use interlock_core::kinds::{OVERRIDE, fact};
use interlock_core::topology::ObjectRow;
use interlock_kong::data_plane::GatewayLister;
use interlock_kong::data_plane::flavor::gateway_ref::GatewayRef;
use interlock_kong::data_plane::flavor::inventory::{FlavorDependent, GatewayContext};
use interlock_kong::data_plane::flavor::sources::FlavorSource;
use interlock_kudo::operator_version::{NAMES_LISTED, PackageLister, PackageUsers};
use interlock_kudo::package::Package;

use super::row::{is, name};
use super::store::Store;
use crate::cluster::tamper::GuardState;

impl PackageLister for Store {
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>> {
        self.read().packages.get(key).cloned()
    }

    fn names_in(&self, namespace: &str) -> Vec<String> {
        self.read().packages.names_in(namespace).take(NAMES_LISTED).map(str::to_owned).collect()
    }

    fn left_out(&self, operator_version: &NamespacedName) -> Option<String> {
        self.read().packages.left_out(operator_version)
    }

    fn users_of(&self, operator_version: &NamespacedName) -> PackageUsers {
        let tables = self.read();
        let mut users = PackageUsers::default();
        for row in tables.users(operator_version) {
            users.total += 1;
            let locked = row.word(fact::LOCKED).filter(|plan| !plan.is_empty());
            users.locked.extend(locked.map(|plan| (name(&row.id()), plan.to_owned())));
        }
        users.locked.sort();
        users
    }
}

impl NamespaceLister for Store {
    fn namespace_terminating(&self, namespace: &str) -> bool {
        let tables = self.read();
        let row = tables.graph.row(tables.kinds.namespace, "", namespace);
        row.is_some_and(|row| is(&row, fact::TERMINATING))
    }
}

impl GatewayLister for Store {
    fn context_of(&self, gateway: &GatewayRef) -> GatewayContext {
        self.read().flavors.context_of(gateway)
    }

    fn dependents(&self, source: &FlavorSource) -> Vec<FlavorDependent> {
        self.read().flavors.dependents(source)
    }

    fn overrides_guarded(&self) -> Result<(), String> {
        match &self.read().overrides {
            GuardState::Intact => Ok(()),
            GuardState::Broken(why) => Err(why.clone()),
            GuardState::Unknown => {
                Err("whether its policy is in force is not known yet; try again".to_owned())
            }
        }
    }
}

impl Store {
    /// The Override, by name, that admits what a rule denies.
    pub fn overridden(&self, of: Overridden<'_>) -> Option<String> {
        let tables = self.read();
        let kind = tables.graph.find_kind(OVERRIDE.group, OVERRIDE.kind)?;
        let admits = |row: &ObjectRow<'_>| {
            let is = |name, word: &str| row.word(name) == Some(word);
            let expires = row.number(fact::EXPIRES).and_then(|expires| i64::try_from(expires).ok());
            is(fact::OVERRIDDEN_OBJECT, of.uid)
                && is(fact::OVERRIDDEN_RULE, of.rule.id())
                && of.user.is_none_or(|user| is(fact::OVERRIDING_USER, user))
                && expires.is_some_and(|expires| of.now.as_second() < expires)
        };
        let found = tables.graph.rows(kind).find(admits)?;
        Some(found.id().name.to_string())
    }

    /// The actions of the rules in a namespace; they deny if its labels are unknown.
    pub fn actions(&self, namespace: &str) -> Actions {
        let tables = self.read();
        if tables.rules.is_empty() {
            return Actions::default();
        }
        tables.rules.within(tables.labels.get(namespace))
    }
}

/// The index as the lister of rules that are applied outside of a review.
pub struct IndexLister {
    store: Arc<Store>,
    kinds: KindListers,
}

impl IndexLister {
    /// The lister of an index; `gateways` answers about gateways.
    pub fn new(store: Arc<Store>, gateways: Arc<dyn GatewayLister>) -> Self {
        let kinds = KindListers::default()
            .with::<dyn PackageLister>(store.clone())
            .with::<dyn NamespaceLister>(store.clone())
            .with::<dyn GatewayLister>(gateways);
        Self { store, kinds }
    }
}

impl Lister for IndexLister {
    fn actions(&self, namespace: &str) -> Actions {
        self.store.actions(namespace)
    }

    fn overridden(&self, of: Overridden<'_>) -> Option<String> {
        self.store.overridden(of)
    }

    fn kinds(&self) -> &KindListers {
        &self.kinds
    }
}
