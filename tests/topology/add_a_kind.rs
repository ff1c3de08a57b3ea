//! The example of `docs/add-a-kind.md`, run.

#[path = "../../examples/add-a-kind/main.rs"]
#[allow(dead_code, reason = "its main function prints")]
mod example;

#[test]
fn the_example_of_the_tutorial_says_what_the_tutorial_says() {
    let told = example::story();
    let tutorial = std::fs::read_to_string("docs/add-a-kind.md").unwrap();
    assert!(tutorial.contains(&told), "docs/add-a-kind.md does not show what the example prints:\n{told}");
}
