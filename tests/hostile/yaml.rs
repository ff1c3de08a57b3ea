//! The way in for hostile YAML, shared by the fuzz target and the time-bounded run of the tests.
//!
//! Bytes as what a template has rendered, and as the value of a parameter.
//!
//! Whatever comes in: no panic, nothing beyond the budget, and what was read is written and read again.

use go_template::Never;
use go_template::yaml::{self, Aliases, MAX_MADE, Reader};

/// Decodes it both ways.
pub fn call(body: &[u8]) {
    let text = String::from_utf8_lossy(body);
    let _ = Reader::new(Aliases::Refused, &Never).read(&text);
    let reader = Reader::new(Aliases::Counted, &Never);
    let Ok(documents) = reader.documents(&text) else { return };
    assert!(reader.made() <= MAX_MADE);
    // Written out it has no aliases left, so it can be too large to be read again.
    for document in documents.iter().take(4) {
        let written = yaml::write(document);
        if let Ok(again) = yaml::read(&written) {
            assert_eq!(again, *document, "{written}");
        }
    }
}
