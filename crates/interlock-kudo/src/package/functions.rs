//! The functions of package templates.

use std::sync::LazyLock;

use go_template::{Functions, Interrupted, ParseError, TO_YAML, Template};

/// Interrupts a rendering that takes too much processor time.
pub const TIME_LIMIT: Interrupted =
    Interrupted("took more processor time than --render-limit allows; it is tried again");

/// Interrupts a rendering when the process ends.
pub const SHUTDOWN: Interrupted = Interrupted("interrupted as the process ends; it is tried again");

/// sprig 2.22 and `toYaml`, without the functions that KUDO removes: `env`, `expandenv` and those
/// on paths (KUDO `pkg/engine/renderer/engine.go`).
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let taken_out = ["env", "expandenv", "base", "dir", "clean", "ext", "isAbs"];
    Functions::sprig().with(TO_YAML).without(&taken_out)
});

/// Parses a template of a package; `file` is its file name.
///
/// # Errors
/// As [`Template::parse`].
pub fn parse(file: &str, text: &str) -> Result<Template, ParseError> {
    Template::parse(file, text, &FUNCTIONS)
}
