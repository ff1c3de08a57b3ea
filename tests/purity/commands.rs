//! Commands of ours in the texts of the sources are ones that the program takes.

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use interlock::cli::Cli;

/// What may stand for a placeholder.
const WORDS: [&str; 6] = ["x", "x -n y", "dataplane/x", "expressions", "webhooks", "bash"];

/// The commands of Interlock between backticks, as the source has them; those that go over several lines too.
pub fn printed(source: &str) -> Vec<String> {
    // A string that goes on in the next line leaves out the blanks before it.
    let joined = source.split("\\\n").map(str::trim_start).collect::<String>();
    let quoted = joined.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let ours = quoted.filter(|text| text.starts_with("interlock "));
    // Of a command that a text puts together by itself, only the beginning is here.
    ours.filter(|text| !text.contains('"'))
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Why the program does not take a command, whatever its placeholders stand for; `None` where it does.
pub fn refusal(command: &str) -> Option<String> {
    let command = command.split(" | ").next().unwrap_or_default();
    let mut why = None;
    for word in WORDS {
        let line = filled(command, word);
        match Cli::command().try_get_matches_from(line.split_whitespace()) {
            Ok(_) => return None,
            Err(error) if is_mention(command, error.kind()) => return None,
            Err(error) => why = why.or_else(|| Some(error.to_string())),
        }
    }
    why
}

/// A command without its arguments, named and not to be run.
fn is_mention(command: &str, error: ErrorKind) -> bool {
    let bare = command
        .split(' ')
        .all(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-'));
    let incomplete = [
        ErrorKind::MissingSubcommand,
        ErrorKind::MissingRequiredArgument,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    bare && incomplete.contains(&error)
}

/// The command with a word for each placeholder of a format string.
fn filled(command: &str, word: &str) -> String {
    let mut pieces = command.split('{');
    let mut line = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (_, rest) = piece.split_once('}').unwrap_or(("", piece));
        line.push_str(word);
        line.push_str(rest);
    }
    line
}
