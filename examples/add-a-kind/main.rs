//! A kind of one's own in the topology: a `Backup` that belongs to an Instance, and whose end the
//! Instance waits for. `docs/add-a-kind.md` goes through it.
//!
//! ```console
//! $ cargo run --example add-a-kind
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;

use interlock_core::kinds::{ALL, INSTANCE, MADE, schemas};
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};
use interlock_core::topology::{
    AffectedNodes, Epoch, Graph, GraphChange, KindName, NodeId, event_table, fingerprint,
};
use serde_json::{Value, json};

const BACKUP: KindName = KindName::new("backup.example.com", "Backup");

/// All that the topology has to know of the kind.
static BACKUPS: DeclaredKind = DeclaredKind {
    name: BACKUP,
    about: "a copy of an Instance's data",
    facts: &[PHASE],
    links: &[Link {
        name: "instance",
        family: Family::Needs,
        other: Side::Parent,
        kind: Some(INSTANCE),
        read: instance,
    }],
    sections: None,
    events: EventRow {
        create: EventTriggers::Nobody("it has to end first"),
        update: EventScope::When(&[
            When { differs: &[PHASE], concerns: &[OF] },
            When { differs: &[SPEC], concerns: &[LinkPath::Itself] },
        ]),
        delete: EventTriggers::Roots(&[OF]),
    },
};

const OF: LinkPath = LinkPath::Up(Family::Needs, INSTANCE);
const PHASE: Fact = Fact { name: "phase", read: ReadDepth::Word(phase) };
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(fingerprint::spec) };

fn phase(object: &Value) -> Cow<'_, str> {
    object["status"]["phase"].as_str().unwrap_or_default().into()
}

fn instance(holder: &Holder<'_>) -> Vec<Ref> {
    let name = holder.object["spec"]["instance"].as_str();
    name.map(|name| Ref::to(holder.namespace, name)).into_iter().collect()
}

/// A graph that knows the kind beside those of the product.
fn graph() -> Graph {
    let kinds: Vec<&'static DeclaredKind> = schemas(ALL).into_iter().chain([&BACKUPS]).collect();
    Graph::new(&kinds, &MADE)
}

fn backup(of: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "backup.example.com/v1", "kind": "Backup",
        "metadata": {"namespace": "shop", "name": "nightly", "uid": "b"},
        "spec": {"instance": of},
        "status": {"phase": phase},
    })
}

/// What happens, and whom it concerns.
pub fn story() -> String {
    let (mut graph, mut text, epoch) = (graph(), event_table::text([&BACKUPS]), Epoch(1));
    let instances = graph.kind(INSTANCE.group, INSTANCE.kind);
    let backups = graph.kind(BACKUP.group, BACKUP.kind);
    graph.kind_available(instances, epoch);
    graph.kind_available(backups, epoch);

    let mut tell = |what: &str, dirty: AffectedNodes, expected: &[NodeId]| {
        let roots: Vec<String> = dirty.roots.iter().map(NodeId::to_string).collect();
        let _ =
            write!(text, "\n{what}: {}", if roots.is_empty() { "nobody".into() } else { roots.join(", ") });
        assert_eq!(dirty.roots, expected, "{what}");
    };
    let mysql = || NodeId::new(INSTANCE, "shop", "mysql");
    let mut see = |object: &Value| graph.apply(backups, epoch, GraphChange::Applied(object));

    // The edge dangles: nobody is there who could be concerned.
    tell("it appears", see(&backup("mysql", "Running")), &[]);
    tell("it ends, and the Instance is not there", see(&backup("mysql", "Done")), &[]);

    let object = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
        "metadata": {"namespace": "shop", "name": "mysql", "uid": "i"},
        "spec": {"operatorVersion": {"name": "mysql-0.3.1"}},
    });
    let dirty = graph.apply(instances, epoch, GraphChange::Applied(&object));
    tell("the Instance appears", dirty, &[mysql()]);

    let mut see = |object: &Value| graph.apply(backups, epoch, GraphChange::Applied(object));
    tell("it runs again", see(&backup("mysql", "Running")), &[mysql()]);
    let mut labelled = backup("mysql", "Running");
    labelled["metadata"]["labels"] = json!({"team": "a"});
    tell("it is labelled", see(&labelled), &[]);
    let nightly = NodeId::new(BACKUP, "shop", "nightly");
    tell("it is of another Instance now", see(&backup("postgres", "Running")), &[nightly, mysql()]);

    let _ = write!(text, "\n\n{}", graph.picture().tree());
    text
}

fn main() {
    println!("{}", story());
}
