//! The webhook server: sockets, timeouts and limits around pure modules.
//!
//! `accept` accepts connections, and `connections` selects those to evict above the limit; `callers`
//! accepts or refuses callers; `webhook_routes` turns a request into a review and a decision into an answer, and
//! `waiting` limits the reviews that wait for the cache; `health` reports readiness; `tls` holds the
//! serving certificate. Nothing here knows a rule, and no step from request to answer makes a call.

pub mod accept;
pub mod admission;
pub mod body;
pub mod callers;
pub mod certificate_reloader;
pub mod client_auth;
pub mod connection_timeouts;
pub mod connections;
mod duration;
pub mod graph;
pub mod health;
pub mod in_flight;
pub mod limits;
pub mod loopback_host;
pub mod open_connections;
pub mod ops;
pub mod shutdown;
pub mod tls;
pub mod waiting;
pub mod webhook_routes;
