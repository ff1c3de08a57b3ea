//! PEM blocks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const LINE: usize = 64;

/// A block as Go's `pem.Encode` writes it.
pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// The content of the first block of a text, whatever its label is.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines();
    loop {
        let line = lines.next()?.trim_end();
        let Some(label) = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) else {
            continue;
        };
        let end = format!("-----END {label}-----");
        let mut body = String::new();
        for line in lines.by_ref().map(str::trim_end) {
            if line == end {
                // Go goes on with the next block where one cannot be decoded.
                match STANDARD.decode(&body) {
                    Ok(der) => return Some(der),
                    Err(_) => break,
                }
            }
            // Headers, such as those of encrypted keys.
            if !line.contains(':') {
                body.extend(line.split_whitespace());
            }
        }
    }
}
