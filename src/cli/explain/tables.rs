//! Rows of the tables of a Markdown page that are about a name. Pure.

/// The rows that are about a name, each as `column: cell` lines; a column without a header has none.
pub(super) fn rows(page: &str, name: &str) -> Vec<String> {
    let about =
        |(header, row): &(&str, Vec<String>)| row.iter().take(naming(header)).any(|cell| names(cell, name));
    whole_rows(page).filter(about).map(|(header, row)| text(&cells(header), &row)).collect()
}

/// The rows, where an empty first cell stands for that of the row before.
fn whole_rows(page: &str) -> impl Iterator<Item = (&str, Vec<String>)> {
    let mut before = String::new();
    table_lines(page).map(move |(header, line)| {
        let mut row = cells(line);
        match row.first_mut() {
            Some(first) if first.is_empty() => first.clone_from(&before),
            Some(first) => before.clone_from(first),
            None => {}
        }
        (header, row)
    })
}

/// Every word that a row is about and that stands for a rule, a condition or a reason.
pub(super) fn known(page: &str) -> Vec<&str> {
    let cells = table_lines(page).flat_map(|(header, line)| line.split('|').skip(1).take(naming(header)));
    cells.flat_map(words).filter(|word| is_name(word)).collect()
}

/// The rows of the tables of a page, each with the header of its table.
fn table_lines(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut lines = page.lines().peekable();
    let mut header = "";
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            if !line.starts_with('|') {
                header = "";
            } else if lines.peek().is_some_and(|next| next.starts_with("|--")) {
                header = line;
            } else if !line.starts_with("|--") {
                return Some((header, line));
            }
        }
    })
}

/// How many of its first cells name what a row is about: one in a table by reason, as sentences follow it.
fn naming(header: &str) -> usize {
    if header.starts_with("| reason |") { 1 } else { 2 }
}

fn cells(line: &str) -> Vec<String> {
    // A bar inside of a cell is written \|.
    let line = line.trim().trim_matches('|').replace("\\|", "\u{1}");
    line.split('|').map(|cell| cell.replace('\u{1}', "|").trim().to_owned()).collect()
}

/// A rule of router flavors (RF02), or CamelCase.
fn is_name(word: &str) -> bool {
    let upper = word.chars().filter(char::is_ascii_uppercase).count();
    word.len() >= 4 && upper >= 1 && word.starts_with(|c: char| c.is_ascii_uppercase())
}

fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

fn names(cell: &str, name: &str) -> bool {
    words(cell).any(|word| word.eq_ignore_ascii_case(name))
}

fn text(header: &[String], row: &[String]) -> String {
    let lines = row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()).map(|(i, cell)| {
        let column = header.get(i).map_or("", String::as_str);
        if column.is_empty() { cell.clone() } else { format!("{column}: {cell}") }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A page\n\n| state | conditions | kstatus |\n|---|---|---|\n\
        | all well | `Ready=True/ResourcesReady` | Current |\n\
        | it failed | `Stalled=True/PlanInFatalError` | Failed, not Ready |\n\ntext about Stalled\n";

    #[test]
    fn in_a_table_by_reason_the_first_cell_alone_counts() {
        let page = "| reason | what to do |\n|---|---|\n| `PlanOwed` | Correct the cause. |\n";
        assert_eq!(rows(page, "PlanOwed"), ["reason: `PlanOwed`\nwhat to do: Correct the cause."]);
        assert!(rows(page, "Correct").is_empty());
        assert_eq!(known(page), ["PlanOwed"]);
    }

    #[test]
    fn a_row_that_continues_is_about_what_the_row_before_is_about() {
        let page = "| rule | what | text |\n|---|---|---|\n| RF09 | warned | a |\n| | refused | b |\n| RF10 | warned | c |\n";
        assert_eq!(
            rows(page, "RF09"),
            ["rule: RF09\nwhat: warned\ntext: a", "rule: RF09\nwhat: refused\ntext: b"]
        );
    }

    #[test]
    fn a_row_is_found_by_a_word_of_its_first_cells() {
        assert_eq!(
            rows(PAGE, "stalled"),
            ["state: it failed\nconditions: `Stalled=True/PlanInFatalError`\nkstatus: Failed, not Ready"]
        );
        assert_eq!(rows(PAGE, "Ready").len(), 1, "a later cell does not count");
        assert!(rows(PAGE, "Current").is_empty());
    }

    #[test]
    fn names_are_those_of_conditions_and_reasons() {
        assert_eq!(known(PAGE), ["Ready", "True", "ResourcesReady", "Stalled", "True", "PlanInFatalError"]);
    }
}
