//! Changes of gateways without I/O: present state, wanted state, and the steps between them.

pub mod flavor;
pub mod live;
pub mod shape;
