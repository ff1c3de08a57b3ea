//! The name by which the program was called: `interlock`, or `kubectl interlock` as a plug-in of kubectl.

use std::ffi::OsStr;
use std::path::Path;

/// The file that kubectl runs for `kubectl interlock`.
const PLUGIN: &str = "kubectl-interlock";
/// How its users call it.
pub(in crate::cli) const AS_PLUGIN: &str = "kubectl interlock";

/// Whether this is the path of the plug-in of kubectl.
fn is_plugin(path: &OsStr) -> bool {
    Path::new(path).file_stem().is_some_and(|name| name == PLUGIN)
}

/// Whether the program was called as a plug-in of kubectl.
pub(in crate::cli) fn by_kubectl() -> bool {
    std::env::args_os().next().is_some_and(|path| is_plugin(&path))
}

/// A text whose commands are named as the program was called.
pub(in crate::cli) fn as_called(text: &str) -> String {
    in_words(text, by_kubectl())
}

fn in_words(text: &str, plugin: bool) -> String {
    if plugin { text.replace("`interlock ", &format!("`{AS_PLUGIN} ")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("kubectl-interlock", true)]
    #[case("/usr/local/bin/kubectl-interlock", true)]
    #[case("kubectl-interlock.exe", true)]
    #[case("/usr/local/bin/interlock", false)]
    #[case("kubectl", false)]
    fn the_name_decides(#[case] path: &str, #[case] plugin: bool) {
        assert_eq!(is_plugin(OsStr::new(path)), plugin);
    }

    #[test]
    fn commands_are_named_as_they_are_called() {
        let text = "wait with `interlock plan wait demo`";
        assert_eq!(in_words(text, false), text);
        assert_eq!(in_words(text, true), "wait with `kubectl interlock plan wait demo`");
    }
}
