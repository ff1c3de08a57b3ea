//! A kind of one's own in the topology: a `Backup` that belongs to an Instance, and whose end the
//! Instance waits for. `docs/add-a-kind.md` goes through it.
//!
//! ```console
//! $ cargo run --example add-a-kind
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;

use interlock_core::topology::declare::{
    Concerns, Events, Fact, Family, Holder, Kind, Link, Reach, Read, Ref, Side, Update, When,
};
use interlock_core::topology::kinds::{DECLARED, INSTANCE, MADE};
use interlock_core::topology::{Change, Dirty, Epoch, Graph, Id, KindName, mark, table};
use serde_json::{Value, json};

const BACKUP: KindName = KindName::new("backup.example.com", "Backup");

/// All that the topology has to know of the kind.
static BACKUPS: Kind = Kind {
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
    events: Events {
        create: Concerns::Nobody("it has to end first"),
        update: Update::When(&[
            When { differs: &[PHASE], concerns: &[OF] },
            When { differs: &[SPEC], concerns: &[Reach::Itself] },
        ]),
        delete: Concerns::Roots(&[OF]),
    },
};

const OF: Reach = Reach::Up(Family::Needs, INSTANCE);
const PHASE: Fact = Fact { name: "phase", read: Read::Word(phase) };
const SPEC: Fact = Fact { name: "spec", read: Read::Mark(mark::spec) };

fn phase(object: &Value) -> Cow<'_, str> {
    object["status"]["phase"].as_str().unwrap_or_default().into()
}

fn instance(holder: &Holder<'_>) -> Vec<Ref> {
    let name = holder.object["spec"]["instance"].as_str();
    name.map(|name| Ref::to(holder.namespace, name)).into_iter().collect()
}

/// A graph that knows the kind beside those of the product.
fn graph() -> Graph {
    let kinds: Vec<&'static Kind> = DECLARED.into_iter().chain([&BACKUPS]).collect();
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
    let (mut graph, mut text, epoch) = (graph(), table::text([&BACKUPS]), Epoch(1));
    let instances = graph.kind(INSTANCE.group, INSTANCE.kind);
    let backups = graph.kind(BACKUP.group, BACKUP.kind);
    graph.kind_available(instances, epoch);
    graph.kind_available(backups, epoch);

    let mut tell = |what: &str, dirty: Dirty, expected: &[Id]| {
        let roots: Vec<String> = dirty.roots.iter().map(Id::to_string).collect();
        let _ =
            write!(text, "\n{what}: {}", if roots.is_empty() { "nobody".into() } else { roots.join(", ") });
        assert_eq!(dirty.roots, expected, "{what}");
    };
    let mysql = || Id::new(INSTANCE, "shop", "mysql");
    let mut see = |object: &Value| graph.apply(backups, epoch, Change::Applied(object));

    // The edge dangles: nobody is there who could be concerned.
    tell("it appears", see(&backup("mysql", "Running")), &[]);
    tell("it ends, and the Instance is not there", see(&backup("mysql", "Done")), &[]);

    let object = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
        "metadata": {"namespace": "shop", "name": "mysql", "uid": "i"},
        "spec": {"operatorVersion": {"name": "mysql-0.3.1"}},
    });
    let dirty = graph.apply(instances, epoch, Change::Applied(&object));
    tell("the Instance appears", dirty, &[mysql()]);

    let mut see = |object: &Value| graph.apply(backups, epoch, Change::Applied(object));
    tell("it runs again", see(&backup("mysql", "Running")), &[mysql()]);
    let mut labelled = backup("mysql", "Running");
    labelled["metadata"]["labels"] = json!({"team": "a"});
    tell("it is labelled", see(&labelled), &[]);
    let nightly = Id::new(BACKUP, "shop", "nightly");
    tell("it is of another Instance now", see(&backup("postgres", "Running")), &[nightly, mysql()]);

    let _ = write!(text, "\n\n{}", graph.picture().tree());
    text
}

fn main() {
    println!("{}", story());
}
