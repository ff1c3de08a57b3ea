//! `auth-server ADDRESS FILE`: answers Envoy's questions of external authorization by AuthConfigs, of which it knows what
//! the tests use: `plain` identities, `patternMatching` by selectors, and `dynamicMetadata`. The file has them by host, and
//! is read for each question, which is printed. A host that the file does not have is refused, as Authorino does.

mod grpc;

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message;
use serde_json::{Map, Value, json};

/// `envoy.service.auth.v3.CheckRequest`
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(message, optional, tag = "1")]
    attributes: Option<Attributes>,
}

/// `envoy.service.auth.v3.AttributeContext`
#[derive(Clone, PartialEq, Message)]
struct Attributes {
    #[prost(message, optional, tag = "4")]
    request: Option<Asked>,
    #[prost(map = "string, string", tag = "10")]
    context_extensions: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct Asked {
    #[prost(message, optional, tag = "2")]
    http: Option<HttpRequest>,
}

#[derive(Clone, PartialEq, Message)]
struct HttpRequest {
    #[prost(string, tag = "2")]
    method: String,
    #[prost(map = "string, string", tag = "3")]
    headers: HashMap<String, String>,
    #[prost(string, tag = "4")]
    path: String,
}

/// `envoy.service.auth.v3.CheckResponse`
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "1")]
    status: Option<Code>,
    #[prost(message, optional, tag = "2")]
    denied: Option<Denied>,
    #[prost(message, optional, tag = "3")]
    ok: Option<Nothing>,
    #[prost(message, optional, tag = "4")]
    dynamic_metadata: Option<Fields>,
}

/// `google.rpc.Status`, and `envoy.type.v3.HttpStatus`.
#[derive(Clone, PartialEq, Message)]
struct Code {
    #[prost(int32, tag = "1")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Denied {
    #[prost(message, optional, tag = "1")]
    status: Option<Code>,
}

#[derive(Clone, PartialEq, Message)]
struct Nothing {}

/// `google.protobuf.Struct`
#[derive(Clone, PartialEq, Message)]
struct Fields {
    #[prost(map = "string, message", tag = "1")]
    fields: HashMap<String, Field>,
}

#[derive(Clone, PartialEq, Message)]
struct Field {
    #[prost(string, optional, tag = "3")]
    text: Option<String>,
    #[prost(message, optional, tag = "5")]
    fields: Option<Fields>,
}

/// gRPC's PERMISSION_DENIED.
const DENIED: i32 = 7;

/// Lets a request in with metadata, or refuses it with a code of HTTP.
fn decide(config: &Value, request: &HttpRequest) -> Result<Map<String, Value>, i32> {
    if config.is_null() {
        return Err(404);
    }
    let mut known = json!({"request": {"method": request.method, "path": request.path, "headers": request.headers}});
    let select = |known: &Value, selector: &Value| {
        selector.as_str().unwrap_or_default().split('.').fold(known, |at, part| &at[part]).clone()
    };
    let ways = config["authentication"].as_object().into_iter().flatten();
    let mut identities = ways.map(|(_, way)| select(&known, &way["plain"]["selector"]));
    let Some(identity) = identities.find(Value::is_string) else { return Err(401) };
    known["auth"]["identity"] = identity;
    for (_, rule) in config["authorization"].as_object().into_iter().flatten() {
        for pattern in rule["patternMatching"]["patterns"].as_array().into_iter().flatten() {
            if select(&known, &pattern["selector"]) != pattern["value"] {
                return Err(403);
            }
        }
    }
    let mut metadata = Map::new();
    for (name, item) in config["response"]["success"]["dynamicMetadata"].as_object().into_iter().flatten() {
        let properties = item["json"]["properties"].as_object().into_iter().flatten();
        let values = properties.map(|(key, from)| (key.clone(), select(&known, &from["selector"])));
        metadata.insert(name.clone(), values.collect::<Map<_, _>>().into());
    }
    Ok(metadata)
}

fn fields(value: &Value) -> Field {
    match value {
        Value::Object(members) => {
            let fields = members.iter().map(|(name, own)| (name.clone(), fields(own))).collect();
            Field { text: None, fields: Some(Fields { fields }) }
        }
        own => Field { text: Some(own.as_str().unwrap_or_default().to_owned()), fields: None },
    }
}

fn answer(file: &str, question: Question) -> anyhow::Result<Answer> {
    let attributes = question.attributes.unwrap_or_default();
    let host = attributes.context_extensions.get("host").cloned().unwrap_or_default();
    let request = attributes.request.and_then(|own| own.http).unwrap_or_default();
    let configs: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let decided = decide(&configs[&host], &request);
    println!("{}", json!({"host": host, "path": request.path, "let_in": decided.is_ok()}));
    Ok(match decided {
        Ok(metadata) => Answer {
            status: Some(Code { code: 0 }),
            ok: Some(Nothing {}),
            dynamic_metadata: fields(&metadata.into()).fields,
            denied: None,
        },
        Err(code) => Answer {
            status: Some(Code { code: DENIED }),
            denied: Some(Denied { status: Some(Code { code }) }),
            ..Answer::default()
        },
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(file)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("usage: auth-server ADDRESS FILE");
    };
    let decide = move |message: &[u8]| Ok(answer(&file, Question::decode(message)?)?.encode_to_vec());
    grpc::serve(&address, Arc::new(decide)).await
}
