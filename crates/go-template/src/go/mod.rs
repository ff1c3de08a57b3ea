//! The parts of Go's standard library whose output users see in templates and YAML.

pub mod duration;
pub mod float;
pub mod number;
pub mod pattern;
pub mod quote;
pub mod utf8;

/// The bytes of a text in base 64, in which Go's decoder skips line breaks.
pub(crate) fn base64_bytes(text: &[u8]) -> Result<Vec<u8>, base64::DecodeError> {
    use base64::Engine as _;
    let text: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    base64::engine::general_purpose::STANDARD.decode(text)
}
