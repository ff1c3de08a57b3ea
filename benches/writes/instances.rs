//! Instances of a size, the package that they take, and the stamps of their specs.

use interlock_core::api::meta;
use interlock_core::api::stamp::{Applied, Envelope, KeptSpec, VersionRef};
use serde_json::{Map, Value, json};

const PACKAGE: &str = "written-0.1.0";

/// How a webhook's stamp keeps the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// As Interlock writes it, up to a limit: canonical JSON in the envelope.
    Inline,
    /// Without it, as Interlock does beyond that limit.
    Reference,
    /// As inline, with a second spec: what an edit's stamp was before it held the changes alone.
    Twice,
    /// As inline without quotes, in the flow form of YAML: nothing is escaped.
    Flow,
}

impl Stamp {
    /// The annotation's value for an Instance of a namespace.
    pub fn text(self, namespace: &str, parameters: usize) -> String {
        let spec = Applied {
            operator_version: VersionRef { name: PACKAGE.into(), namespace: namespace.into() },
            parameters: (0..parameters).map(value).map(|(name, value)| (name.into(), value.into())).collect(),
        };
        let hash = spec.hash();
        let kept = match self {
            Self::Reference => KeptSpec::Referenced,
            _ => KeptSpec::Inline { spec },
        };
        let text = Envelope { hash, kept, previous: None, uid: None, generation: None }.to_json();
        match self {
            Self::Inline | Self::Reference => text,
            Self::Twice => {
                let (_, previous) = text.split_once(',').expect("a hash and a spec");
                format!("{},\"previous\":{{{previous}}}", &text[..text.len() - 1])
            }
            Self::Flow => text.replace("\":", ": ").replace(',', ", ").replace('"', ""),
        }
    }
}

/// How many parameters an Instance of that many bytes has.
pub fn parameters(bytes: usize) -> usize {
    (1..).find(|&n| instance("r0-00-00", n + 1).to_string().len() > bytes).expect("sizes grow")
}

fn value(number: usize) -> (String, String) {
    (format!("PARAM_{number:04}"), format!("value-{number:04}-of-a-usual-length"))
}

pub fn instance(name: &str, parameters: usize) -> Value {
    let values = (0..parameters).map(value).map(|(name, value)| (name, json!(value)));
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
        "metadata": {"name": name, "labels": {"kudo.dev/operator": "written"}},
        "spec": {"operatorVersion": {"name": PACKAGE}, "parameters": values.collect::<Map<_, _>>()},
    })
}

pub fn operator_version(parameters: usize) -> Value {
    let declared: Vec<Value> =
        (0..parameters).map(|number| json!({"name": value(number).0, "default": ""})).collect();
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion",
        "metadata": {"name": PACKAGE},
        "spec": {
            "operator": {"kind": "Operator", "name": "written"}, "version": "0.1.0",
            "parameters": declared,
            "tasks": [{"name": "nothing", "kind": "Dummy", "spec": {"done": true}}],
            "plans": {"deploy": {"strategy": "serial", "phases": [
                {"name": "only", "strategy": "serial", "steps": [{"name": "only", "tasks": ["nothing"]}]},
            ]}},
        },
    })
}
