//! What changes to gateways come to, as a pure room: what is there, what is wanted, what is in
//! between.

pub mod flavor;
pub mod live;
pub mod shape;
