//! `docs/policies.md` shows what the commands print.

use super::run;

const PAGE: &str = "docs/policies.md";

/// The page with what each of its commands prints now: errors and notes before the answer.
fn printed(page: &str) -> String {
    let mut parts = page.split("```console\n");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (block, rest) = part.split_once("```\n").unwrap();
        out += "```console\n";
        for command in block.lines().filter_map(|line| line.strip_prefix("$ interlock ")) {
            let ended = run(command, "");
            out += &format!("$ interlock {command}\n{}{}", ended.stderr, ended.stdout);
        }
        out += &format!("```\n{rest}");
    }
    out
}

#[test]
fn the_page_shows_what_the_commands_print() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    assert!(page.matches("$ interlock policies ").count() >= 5, "{PAGE} shows too few commands");
    let now = printed(&page);
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        std::fs::write(PAGE, &now).unwrap();
    }
    similar_asserts::assert_eq!(page, now, "{}; INTERLOCK_BLESS=1 writes what is printed now", PAGE);
}
