//! The webhook server: sockets, deadlines and caps around the pure rooms.
//!
//! `accept` takes connections, and `connections` says which of them give way when they are too
//! many; `callers` says who is answered; `doors` turns a request into a review and a verdict into
//! an answer, and `waiting` bounds the reviews that wait for the cache; `health` says when not to
//! send any; `tls` holds the certificate that is shown. Nothing here knows a rule, and nothing on
//! the way from request to answer makes a call.

pub mod accept;
pub mod admission;
pub mod body;
pub mod callers;
pub mod client_auth;
pub mod connections;
pub mod doors;
mod duration;
pub mod files;
pub mod graph;
pub mod health;
pub mod in_flight;
pub mod limits;
pub mod open_connections;
pub mod ops;
pub mod phase;
pub mod shutdown;
pub mod tls;
pub mod waiting;
