//! No circles between modules: whoever reads a module can read what it rests on first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rstest::rstest;

use super::house::{self, Files};
use super::imports::{self, Uses};
use super::{CORE, CRD_SCHEMA, GATEWAY, GATEWAY_POLICIES, GO_TEMPLATE, INTERLOCK, KONG, KUDO};

/// Everything that a module rests on.
fn below<'a>(uses: &'a Uses, module: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![module];
    while let Some(at) = open.pop() {
        let next = uses.get(at).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        open.extend(next.filter(|other| found.insert(*other)));
    }
    found
}

/// The modules that rest on each other, a circle a row.
fn circles(uses: &Uses) -> BTreeSet<Vec<&str>> {
    let below: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|module| (module.as_str(), below(uses, module))).collect();
    let circle = |module: &str| -> Vec<&str> {
        below[module].iter().copied().filter(|other| below[other].contains(module)).collect()
    };
    below.keys().map(|module| circle(module)).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn no_modules_run_in_a_circle() {
    let mut told = String::new();
    for house in [GO_TEMPLATE, CRD_SCHEMA, GATEWAY_POLICIES, CORE, KUDO, KONG, GATEWAY, INTERLOCK] {
        told += &shown(&imports::uses(&house.modules()));
    }
    assert!(told.is_empty(), "modules that rest on each other:\n{told}");
}

/// The circles of a crate, each with the lines that close it.
fn shown(uses: &Uses) -> String {
    let mut told = String::new();
    for circle in circles(uses) {
        told += &format!("{}\n", circle.join(", "));
        for (from, others) in uses.iter().filter(|(from, _)| circle.contains(&from.as_str())) {
            for (to, line) in others.iter().filter(|(to, _)| circle.contains(&to.as_str())) {
                told += &format!("    {from}:{line} -> {to}\n");
            }
        }
    }
    told
}

#[rstest]
#[case::downwards("mod a; mod b;", &[("a", "use crate::b::B;"), ("b", "pub struct B;")], &[])]
#[case::two("mod a; mod b;", &[("a", "use crate::b::B;"), ("b", "use super::a::A;")], &["a, b"])]
#[case::itself("mod a;", &[("a", "fn f() { crate::a::g() }")], &[])]
#[case::three(
    "mod a; mod b; mod c;",
    &[("a", "use super::{b::{self, B}, c};"), ("b", "fn f() { crate::c::g() }"), ("c", "#[x(super::a::y)] struct C;")],
    &["a, b, c"]
)]
#[case::through_a_name("mod a; mod b;", &[("a", "use super::b as c; fn f() { c::g() }"), ("b", "use crate::a::A;")], &["a, b"])]
#[case::by_its_name_alone("mod a; mod b;", &[("a", "use super::b;"), ("b", "use crate::a::A;")], &[])]
#[case::declared_and_handed_on(
    "pub mod a;",
    &[("a", "mod x; mod y; pub use x::X;"), ("a/x", "use super::y::Y;"), ("a/y", "struct Y;")],
    &[]
)]
#[case::handed_on_and_used(
    "pub mod a;",
    &[("a", "mod x; pub use x::X; pub struct Y(X);"), ("a/x", "use super::Y;")],
    &["a, a::x"]
)]
#[case::parent_and_child("mod a;", &[("a", "mod x; pub struct A; fn f() { x::g() }"), ("a/x", "use super::A;")], &["a, a::x"])]
#[case::parent_above_child("mod a;", &[("a", "mod x; fn f() { x::g() }"), ("a/x", "pub fn g() {}")], &[])]
#[case::child_above_parent("mod a;", &[("a", "mod x; pub struct A;"), ("a/x", "use super::A;")], &[])]
#[case::through_the_parent(
    "mod a;",
    &[("a", "mod x; mod y; pub use y::Y;"), ("a/x", "use super::Y;"), ("a/y", "use super::x::X;")],
    &["a::x, a::y"]
)]
#[case::inside_inline("mod a; mod b;", &[("a", "mod i { use super::super::b::B; }"), ("b", "use crate::a::i::I;")], &["a, b"])]
#[case::tests_do_not_count(
    "mod a; mod b;",
    &[("a", "use crate::b::B;"), ("b", "#[cfg(test)] mod tests { use crate::a::A; } #[cfg(test)] mod more;")],
    &[]
)]
#[case::nor_do_texts("mod a; mod b;", &[("a", "use crate::b::B;"), ("b", "/// [`crate::a::A`]\n// crate::a::A\nfn f() { \"crate::a::A\" }")], &[])]
#[case::nor_methods_of_types("mod a; mod b;", &[("a", "mod x; use crate::b::B;"), ("a/x", ""), ("b", "fn f() { <u8>::x::a() }")], &[])]
#[case::two_circles(
    "mod a; mod b; mod c; mod d;",
    &[
        ("a", "use crate::b::B;"), ("b", "use crate::a::A; use crate::c::C;"),
        ("c", "use crate::d::D;"), ("d", "use crate::c::C;"),
    ],
    &["a, b", "c, d"]
)]
fn circles_are_found(#[case] top: &str, #[case] files: &[(&str, &str)], #[case] expected: &[&str]) {
    let file = |(name, text): &(&str, &str)| (PathBuf::from(format!("{name}.rs")), (*text).to_owned());
    let files: Files = files.iter().chain([&("lib", top)]).map(file).collect();
    let uses = imports::uses(&house::modules(&files, "lib.rs"));
    let found: Vec<String> = circles(&uses).iter().map(|circle| circle.join(", ")).collect();
    assert_eq!(found, expected);
}
