//! What admission reads of the index.

use std::sync::Arc;

use interlock_core::admission::lister::{Aside, KindListers, Lister, Overridden};
use interlock_core::api::interlock::Actions;
use interlock_core::kinds::inventory::ReadKinds;
use interlock_core::kinds::namespace::NamespaceLister;
use interlock_core::kinds::row::is;
use interlock_core::kinds::{OVERRIDE, fact};
use interlock_core::topology::ObjectRow;
use interlock_kong::data_plane::GatewayLister;
use interlock_kudo::operator_version::PackageLister;

use super::store::Store;

impl NamespaceLister for Store {
    fn namespace_terminating(&self, namespace: &str) -> bool {
        let tables = self.read();
        let row = tables.graph.row(tables.kinds.namespace, "", namespace);
        row.is_some_and(|row| is(&row, fact::TERMINATING))
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

/// Hands the other tasks of a thread to another one.
struct BlockingThread;

impl Aside for BlockingThread {
    fn run(&self, decision: &mut dyn FnMut()) {
        tokio::task::block_in_place(decision);
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
            .with::<dyn GatewayLister>(gateways)
            .with::<dyn Aside>(Arc::new(BlockingThread));
        let kinds = store.read().inventories.listers(kinds);
        Self { store, kinds }
    }

    /// The same, with what says of which kinds the index has all objects.
    #[must_use]
    pub fn with_read_kinds(self, read: Arc<dyn ReadKinds>) -> Self {
        Self { kinds: self.kinds.with::<dyn ReadKinds>(read), ..self }
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
