//! A report as JUnit XML: a test suite for each file, a test case for each object.

use std::fmt::Write as _;

use crate::cli::check::decision::{ObjectDecision, Report, Verdict};
use crate::cli::check::manifests::STDIN;

/// The XML of a report.
pub(super) fn of(report: &Report) -> String {
    let all: Vec<&ObjectDecision> = report.decisions.iter().collect();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(xml, "<testsuites name=\"interlock check\" {}>", counts(&all));
    let mut rest = all.as_slice();
    while let Some(first) = rest.first() {
        let of_file = rest.iter().take_while(|decision| decision.place.file == first.place.file).count();
        let (suite, others) = rest.split_at(of_file);
        let _ = writeln!(xml, "  <testsuite name=\"{}\" {}>", escaped(file(first)), counts(suite));
        for decision in suite {
            case(decision, &mut xml);
        }
        xml.push_str("  </testsuite>\n");
        rest = others;
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn file(decision: &ObjectDecision) -> &str {
    if decision.place.file == STDIN { "stdin" } else { &decision.place.file }
}

fn counts(decisions: &[&ObjectDecision]) -> String {
    let count = |verdict| decisions.iter().filter(|decision| decision.verdict == verdict).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        decisions.len(),
        count(Verdict::Refused),
        count(Verdict::NotChecked)
    )
}

fn case(decision: &ObjectDecision, xml: &mut String) {
    let _ = write!(
        xml,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\"",
        escaped(&format!("{} {}", decision.api_version, decision.kind)),
        escaped(&decision.subject()),
        escaped(file(decision)),
        decision.place.line
    );
    let body = body(decision);
    match body.is_empty() {
        true => xml.push_str("/>\n"),
        false => {
            let _ = write!(xml, ">\n{body}    </testcase>\n");
        }
    }
}

fn body(decision: &ObjectDecision) -> String {
    let mut xml = String::new();
    if let Some(refusal) = &decision.refusal {
        let rules = decision.rules.join(", ");
        let first = refusal.message.lines().next().unwrap_or_default();
        let places = refusal.causes.iter().map(|cause| format!("\n{}: {}", cause.place, cause.field));
        let text = format!("{}{}", refusal.message, places.collect::<String>());
        let _ = writeln!(
            xml,
            "      <failure type=\"{}\" message=\"{}\">{}</failure>",
            escaped(&rules),
            escaped(first),
            escaped(&text)
        );
    }
    match (&decision.note, decision.verdict) {
        (Some(note), Verdict::NotChecked) => {
            let _ = writeln!(xml, "      <skipped message=\"{}\"/>", escaped(note));
        }
        (Some(note), _) => {
            let _ = writeln!(xml, "      <system-err>{}</system-err>", escaped(note));
        }
        (None, _) => {}
    }
    let warnings = decision.warnings.iter().map(|warning| format!("Warning: {warning}"));
    let rules = decision.unevaluated.iter().map(|rule| format!("Not evaluated: {rule}"));
    let lines: Vec<String> = warnings.chain(rules).collect();
    if !lines.is_empty() {
        let _ = writeln!(xml, "      <system-out>{}</system-out>", escaped(&lines.join("\n")));
    }
    xml
}

/// A text in XML, without the characters that XML has no way to write.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => out.push(c),
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_write_is_replaced() {
        assert_eq!(
            escaped("<a b=\"&\">\u{0}\u{ffff}\n"),
            "&lt;a b=&quot;&amp;&quot;&gt;\u{fffd}\u{fffd}&#10;"
        );
    }
}
