//! Rules as tables, over whole reviews: each row is a request and its outcome.

mod data_plane;
mod data_plane_children;
mod flavor_source;
mod gateway;
mod goldens;
mod rollout;
