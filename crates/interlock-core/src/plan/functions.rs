//! What the templates of a package may call.

use std::sync::LazyLock;

use go_template::{Functions, Interrupted, ParseError, TO_YAML, Template};

/// Why a rendering ends that took too much processor time.
pub const TIME_LIMIT: Interrupted =
    Interrupted("took more processor time than --render-limit allows; it is tried again");

/// Why a rendering ends whose process does.
pub const SHUTDOWN: Interrupted = Interrupted("interrupted as the process ends; it is tried again");

/// sprig 2.22 and `toYaml`, without what KUDO takes out of sprig's map: `env`, `expandenv` and the
/// functions of paths (KUDO `pkg/engine/renderer/engine.go`).
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let taken_out = ["env", "expandenv", "base", "dir", "clean", "ext", "isAbs"];
    Functions::sprig().with(TO_YAML).without(&taken_out)
});

/// Reads a template of a package; `file` is the name of its file.
///
/// # Errors
/// As [`Template::parse`].
pub fn parse(file: &str, text: &str) -> Result<Template, ParseError> {
    Template::parse(file, text, &FUNCTIONS)
}
