//! PEM blocks.

use pem::{EncodeConfig, LineEnding, Pem};

/// A block as Go's `pem.Encode` writes it.
pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new(label, der), lines)
}

/// The content of the first block of a text, whatever its label is.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    pem::parse(text).ok().map(Pem::into_contents)
}
