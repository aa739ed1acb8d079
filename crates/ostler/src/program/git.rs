//! Git for callers from outside: which of its commands and options they may use,
//! and how it is run so that a repository decides nothing. Pure.
//!
//! There are two who may mean ill. A caller may only do what the listed commands
//! do: `options` says which of their options would run programs, or read and write
//! elsewhere. A repository, which an agent or a stranger made, may have settings
//! that name programs: `settings` makes all of them harmless.

mod options;
mod settings;

use std::path::Path;

use ostler_core::environment::Variables;

pub(crate) use self::settings::{Settings, listing};
use super::{Refused, listed};

/// Commands whose purpose is to run what they are told, to serve others, or to
/// change what is run later. They are refused though they are listed: who wants
/// them can list `git` in `api.shell`.
const NEVER: [&str; 33] = [
    "bisect",
    "bugreport",
    "citool",
    "config",
    "credential",
    "credential-cache",
    "credential-store",
    "cvsserver",
    "daemon",
    "diagnose",
    "difftool",
    "fast-import",
    "filter-branch",
    "fsmonitor--daemon",
    "gui",
    "help",
    "hook",
    "http-backend",
    "imap-send",
    "instaweb",
    "interpret-trailers",
    "maintenance",
    "mergetool",
    "p4",
    "receive-pack",
    "remote-ext",
    "remote-fd",
    "send-email",
    "shell",
    "submodule",
    "svn",
    "upload-archive",
    "upload-pack",
];

/// Settings for every call. They outrank those of the repository.
const FIXED: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "protocol.ext.allow=never",
    // A folder that looks like a repository may be a part of somebody's files.
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "diff.submodule=short",
    "status.submoduleSummary=false",
    "log.showSignature=false",
];

/// Variables for every call.
const VARIABLES: [(&str, &str); 13] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // Nobody is there who could type.
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    // Objects that are missing are not fetched from where the repository says.
    ("GIT_NO_LAZY_FETCH", "1"),
    // These have no program or file of the machine behind them.
    ("GIT_ALLOW_PROTOCOL", "http:https:git:ssh"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    // Looking changes nothing, and waits for nobody.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_MERGE_AUTOEDIT", "no"),
];

/// Options that commands are given first. Those that would undo them are refused.
fn forced(command: &str) -> &'static [&'static str] {
    match command {
        "diff" | "diff-files" | "diff-index" | "diff-tree" => {
            &["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
        }
        "log" | "show" | "format-patch" | "whatchanged" => &["--no-ext-diff", "--no-textconv"],
        "blame" | "annotate" => &["--no-textconv"],
        // Git would be run in submodules, which have settings of their own.
        "status" => &["--ignore-submodules=dirty"],
        _ => &[],
    }
}

/// Returns what is run for these arguments, if they are allowed: all of it.
pub(crate) fn allow(
    args: &[String],
    allowed: &[String],
    directory: &str,
) -> Result<Vec<String>, Refused> {
    if allowed.is_empty() {
        return Err(Refused::forbidden(
            "no commands of git may be run here; the operator lists those that may in `api.git`",
        ));
    }
    let Some((command, rest)) = args.split_first() else {
        return Err(Refused::wrong("`args` is empty; give a command of git and its arguments"));
    };
    if args.iter().any(|word| word.contains('\0')) {
        return Err(Refused::wrong("an argument has a NUL character in it"));
    }
    if command.starts_with('-') {
        let message = format!("{command:?} is an option; the first argument is a command of git");
        return Err(Refused::wrong(message));
    }
    if !allowed.contains(command) {
        let may = listed(allowed);
        let message = format!("`git {command}` may not be run here; these may: {may}");
        return Err(Refused::forbidden(message));
    }
    if NEVER.contains(&command.as_str()) {
        let message = format!("`git {command}` runs or serves what it is told, and is never run");
        return Err(Refused::forbidden(message));
    }
    options::check(command, rest)?;
    let mut words = vec!["git".to_owned(), "--no-pager".to_owned()];
    words.extend(fixed(directory));
    words.push(command.clone());
    words.extend(forced(command).iter().map(|word| (*word).to_owned()));
    words.extend(rest.iter().cloned());
    Ok(words)
}

/// Returns the settings of every call, as words.
fn fixed(directory: &str) -> impl Iterator<Item = String> {
    // The operator says whose projects these are, also where somebody else owns them.
    let safe = format!("safe.directory={directory}");
    let all = FIXED.into_iter().map(str::to_owned).chain([safe]);
    all.flat_map(|setting| ["-c".to_owned(), setting])
}

/// Whether a call would look at any files if there were no repository.
pub(crate) fn needs_repository(words: &[String]) -> bool {
    words.iter().any(|word| word == "diff" || word == "grep")
}

/// Returns the environment of every call in a project's folder. A repository above
/// it is not looked for: more lies in that than the project. The error says why
/// this cannot be had.
pub(crate) fn variables(base: &Variables, directory: &Path) -> Result<Variables, String> {
    let mut all = base.clone();
    all.extend(VARIABLES.map(|(name, value)| (name.into(), value.into())));
    let ceiling = std::env::join_paths(directory.parent())
        .map_err(|_| "the path of the folder has a colon in it".to_owned())?;
    all.insert("GIT_CEILING_DIRECTORIES".into(), ceiling);
    Ok(all)
}

#[cfg(test)]
mod tests;
