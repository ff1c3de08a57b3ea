//! End-to-end suites on a real control plane: a module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test binary uses a part of the harness")]
mod support;

mod add_a_kind;
mod archives;
mod at_rest;
mod awaited;
mod bookkeeping;
mod budgets;
mod bypass;
mod certificate_secret;
mod check;
mod children;
mod cli;
mod cluster_scoped;
mod conditions;
mod data_plane_children;
mod data_plane_refused;
mod dependencies_hash;
mod drift;
mod effects;
mod existing;
mod flavor;
mod flavor_routes;
mod flavor_sources;
mod generated;
mod graph_page;
mod ground;
mod guards;
mod health;
mod helm;
mod hostile_tenant;
mod installed;
mod kudo_accepts;
mod kudo_client;
mod kudo_commands;
mod kudo_manager;
mod kudo_suites;
mod layers;
mod lifecycle;
mod limits;
mod manifests;
mod merge_schema;
mod merges;
mod monitoring;
mod namespaces;
mod neighbours;
mod outage;
mod overload;
mod overrides;
mod packages;
mod pipes;
mod plan_chaos;
mod plans;
mod process;
mod prune;
mod real_packages;
mod rejections;
mod removed_apis;
mod requests;
mod rights;
mod rollouts_seen;
mod see;
mod settings;
mod sharing;
mod stamps;
mod takeover;
mod tenancy;
mod tenants;
mod uninstall;
mod verbs;
mod verify;
mod wire;
