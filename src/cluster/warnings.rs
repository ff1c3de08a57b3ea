//! Warnings in the answers of the API server, as `kubectl` prints them: of fields that it does not know, of versions
//! that are deprecated, of admission webhooks.

use http::HeaderMap;
use http::header::WARNING;

/// Warnings that are kept of one answer.
const MOST: usize = 8;
/// Bytes that are kept of one; webhooks write them.
const LONGEST: usize = 256;

/// The warnings of an answer: `299 - "TEXT"` (RFC 7234, section 5.5), each text once.
pub fn of(headers: &HeaderMap) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in headers.get_all(WARNING).iter().filter_map(|value| text(value.to_str().ok()?)) {
        if texts.len() == MOST {
            break;
        }
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

fn text(header: &str) -> Option<String> {
    let quoted = header.splitn(3, ' ').nth(2)?.strip_prefix('"')?;
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
        if text.len() >= LONGEST {
            text.push('…');
            break;
        }
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::field(r#"299 - "unknown field \"spec.replicsa\"""#, Some(r#"unknown field "spec.replicsa""#))]
    #[case::dated(r#"299 kube "is deprecated" "Thu, 26 Nov 2026 05:00:00 GMT""#, Some("is deprecated"))]
    #[case::unquoted("299 - text", None)]
    #[case::short("299", None)]
    #[case::empty(r#"299 - """#, None)]
    fn a_header_has_a_text(#[case] header: &str, #[case] expected: Option<&str>) {
        assert_eq!(text(header).as_deref(), expected);
    }

    #[test]
    fn a_hostile_webhook_is_cut_short() {
        let mut headers = HeaderMap::new();
        for number in 0..100 {
            let value = format!("299 - \"{number} {}\"", "x".repeat(4096));
            headers.append(WARNING, HeaderValue::from_str(&value).unwrap());
        }
        headers.append(WARNING, HeaderValue::from_static("299 - \"again\""));
        let found = of(&headers);
        assert_eq!(found.len(), MOST);
        assert!(found.iter().all(|text| text.len() <= LONGEST + '…'.len_utf8()));
    }
}
