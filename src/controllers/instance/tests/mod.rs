//! The protocol between users, admission, the reconciler and the engine, explored exhaustively on the real code.
//!
//! One Instance of a package with two plans of two phases of two steps each, and a cleanup. Users edit it through
//! the webhook, past it (its webhook and policies are down), or by a replacement that drops what Interlock wrote;
//! they trigger a plan, and delete it. A process may die after any write, write on a version that is gone, and
//! sleep before any request while another process leads. In every state ([`ledger`]) and where nothing is left to
//! do ([`rest`]):
//!
//! - every edit is carried out, or a condition reports its refusal;
//! - a run writes the spec that it started with, and nothing of an earlier one comes back;
//! - no effect of a step is missing when its plan is COMPLETE;
//! - it comes to rest, whichever process sleeps.
//!
//! A situation is looked at once ([`exploration`]): what is already followed with a budget of further events is not
//! followed with less again, and what others do while a process sleeps is the same whichever process it is. What
//! people ask for by requests (abort, retry, pause) is not in it, nor are writes of others to the status.
//!
//! Admission is [`interlock_core::admission::answer`], and a process is [`super::reconcile`] with all that it
//! stands on, down to its requests, which [`api`] answers from memory. [`rules`] takes one rule away at a time, and
//! each must be missed.

mod api;
mod cluster;
mod deletions;
mod epochs;
mod exploration;
mod explored;
mod fingerprint;
mod ledger;
mod objects;
mod older_form;
mod package;
mod process;
mod requests;
mod rest;
mod rules;
mod shape;
mod situation;
mod users;
mod world;
