//! How many Instances a second KUDO's own manager carries through their plans.

use serde_json::{Value, json};

use crate::manager::Manager;
use crate::support::{Cluster, block_on};
use crate::{PACKAGE, Rates, completed, instance, make, through};

/// So many Instances show it: 20 requests a second, which its client allows itself, bind it on any machine.
const ENOUGH: usize = 100;

/// What it does. Its webhook schedules the plans of the first; the others are made as it would leave
/// them.
pub fn rates(cluster: fn() -> Cluster, count: usize) -> Rates {
    let count = count.min(ENOUGH);
    let cluster = cluster();
    let admin = cluster.admin();
    let spaces = ["made", "there"].map(|name| cluster.namespace(name));
    let [made, there] = spaces.each_ref().map(|space| space.name());
    admin.create_package(made, PACKAGE);
    admin.create_package(there, PACKAGE);
    let mut manager = Manager::on(&cluster);
    let rate = block_on(through(&admin, made, count, instance));
    manager.stop();
    manager.unregister();
    block_on(make(&admin.kube(), there, count, scheduled));
    manager.start();
    Rates { made: rate, there: block_on(completed(&admin.kube(), there, count)) }
}

/// As KUDO's webhook leaves it.
fn scheduled(number: usize) -> Value {
    let mut object = instance(number);
    let uid = uuid::Uuid::new_v4().to_string();
    object["spec"]["planExecution"] = json!({"planName": "deploy", "uid": uid, "status": "NEVER_RUN"});
    object
}
