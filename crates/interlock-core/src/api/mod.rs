//! The API: wire types, one file a group, and every string of the contract once.
//!
//! Nothing here decides anything; higher modules read these types and give them meaning.

pub mod violation;

pub mod age;
pub mod canonical;
pub mod capability;
pub mod cidr;
pub mod condition;
pub mod display;
pub mod docs;
pub mod interlock;
pub mod inventory;
pub mod json;
pub mod listers;
pub mod map;
pub mod meta;
pub mod object;
pub mod override_object;
pub mod ownership;
pub mod path;
pub mod pod;
pub mod remedy;
pub mod resource;
pub mod revision;
pub mod rule;
pub mod stamp;
pub mod suggest;
pub mod text;
pub mod values;
pub mod watched;
