//! The filters of authentication, as Envoy 1.40 has them.
//!
//! An auth server finds its AuthConfig by `context_extensions.host` of the question. The filter takes that from the
//! configuration of a route alone, which costs an operation a route; so a header of the question names the host, and a
//! filter of the auth server's cluster writes it into the question.

use std::time::Duration;

use interlock_core::api::interlock::AuthEndpoint;
use serde_json::{Map, Value, json};

use crate::policies::enforcement::envoy::{by_prefix, execute, extension};
use crate::policies::enforcement::names;

/// Where the name of a route is kept for this filter.
pub(in crate::policies::enforcement) const ROUTE: &str = "interlock.auth.route";
/// The filter of authentication, and the key of its map in a route configuration.
pub(in crate::policies::enforcement) const FILTER: &str = "interlock.auth";
/// What the auth server is called in requests.
const AUTHORITY: &str = "authorino";
/// The header of a question that names the host.
const HOST: &str = "x-interlock-host";
/// The name of requests that no route has; Envoy answers them with 404.
pub(super) const WITHOUT_ROUTE: &str = "-";

/// Appends `attributes.context_extensions.host` to a question, a message of gRPC: fields of a message that comes twice are
/// merged. The time that the proxy waits is not given to the auth server: Authorino lets a request in whose rules it has
/// no more time for (authorino 649).
const NAME_HOST: &str = r#"
local function varint(n)
  local bytes = ""
  while n >= 128 do
    bytes = bytes .. string.char(n % 128 + 128)
    n = math.floor(n / 128)
  end
  return bytes .. string.char(n)
end
local function field(tag, bytes) return string.char(tag) .. varint(#bytes) .. bytes end
function envoy_on_request(handle)
  local host = handle:headers():get("x-interlock-host")
  if not host then return end
  handle:headers():remove("grpc-timeout")
  local body = handle:body()
  local question = body:getBytes(5, body:length() - 5)
  question = question .. field(0x0a, field(0x52, field(0x0a, "host") .. field(0x12, host)))
  local n = #question
  local byte = function(unit) return math.floor(n / unit) % 256 end
  body:setBytes(string.char(0, byte(16777216), byte(65536), byte(256), byte(1)) .. question)
end
"#;

/// Lets a request go on.
pub(super) fn open() -> Value {
    let nothing =
        extension("open", "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation", json!({}));
    execute("open", nothing)
}

/// Refuses a request with 403.
pub(in crate::policies::enforcement) fn refuse() -> Value {
    let rules = json!({"rules": {"action": "ALLOW", "policies": {}}});
    execute(
        "refuse",
        extension("envoy.filters.http.rbac", "envoy.extensions.filters.http.rbac.v3.RBAC", rules),
    )
}

/// An auth server, as proxies know it.
#[derive(Default)]
pub(in crate::policies::enforcement) struct Server {
    /// The name of its cluster.
    pub(in crate::policies::enforcement) cluster: String,
    timeout: Duration,
}

impl Server {
    pub(in crate::policies::enforcement) fn of(endpoint: &AuthEndpoint) -> Self {
        Self { cluster: names::auth_cluster(&endpoint.address), timeout: endpoint.timeout }
    }

    /// Asks it about a request; the AuthConfig of that host decides. Without an answer the request is refused with 503.
    pub(super) fn ask(&self, host: &str) -> Value {
        let filter = json!({
            "transport_api_version": "V3",
            "failure_mode_allow": false,
            "include_peer_certificate": true,
            "status_on_error": {"code": "ServiceUnavailable"},
            "grpc_service": {
                "envoy_grpc": {"cluster_name": self.cluster, "authority": AUTHORITY},
                "timeout": format!("{}s", self.timeout.as_secs_f64()),
                "initial_metadata": [{"key": HOST, "value": host}],
            },
        });
        let kind = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz";
        execute("ask", extension("envoy.filters.http.ext_authz", kind, filter))
    }
}

/// What is done for routes by the beginnings of their names, and for all others.
pub(super) fn matcher(entries: Map<String, Value>, others: Option<Value>) -> Value {
    let mut matcher = by_prefix(ROUTE, entries);
    if let Some(others) = others {
        matcher["on_no_match"] = others;
    }
    matcher
}

/// The filter of a listener, with what is done where a route configuration has no map yet.
pub(in crate::policies::enforcement) fn composite(matcher: &Value) -> Value {
    extension(FILTER, "envoy.extensions.filters.http.composite.v3.Composite", json!({"matcher": matcher}))
}

/// The filters of an auth server's cluster.
pub(in crate::policies::enforcement) fn of_cluster() -> Value {
    let name_host = json!({"default_source_code": {"inline_string": NAME_HOST}});
    json!([
        extension("envoy.filters.http.lua", "envoy.extensions.filters.http.lua.v3.Lua", name_host),
        extension(
            "envoy.filters.http.upstream_codec",
            "envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
            json!({}),
        ),
    ])
}
