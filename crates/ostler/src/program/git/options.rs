//! The options of git that callers may not use, whatever the command. Pure.
//!
//! Git takes the start of a long option for the whole if no other begins like
//! that, and several short ones in one word; so do these rules, and rather too
//! often than too seldom.

use super::Refused;

/// A long option that is refused, and why. Everything that git might take for it
/// is refused with it.
const LONG: [(&str, &str); 29] = [
    ("config", SETS),
    ("config-env", SETS),
    ("contents", READS),
    ("edit", RUNS),
    ("edit-description", RUNS),
    ("exclude-from", READS),
    ("exec", RUNS),
    ("ext-diff", RUNS),
    ("extcmd", RUNS),
    // It shows a page of the manual, with a program that a repository may name.
    ("help", RUNS),
    ("ignore-revs-file", READS),
    ("ignore-submodules", ENTERS),
    ("mailmap-file", READS),
    ("no-index", READS),
    ("open-files-in-pager", RUNS),
    ("output", WRITES),
    ("output-directory", WRITES),
    ("pathspec-from-file", READS),
    ("receive-pack", RUNS),
    ("recurse-submodules", ENTERS),
    ("reference", READS),
    ("reference-if-able", READS),
    ("resolve-git-dir", READS),
    ("separate-git-dir", WRITES),
    ("show-signature", RUNS),
    ("submodule", ENTERS),
    ("template", READS),
    ("textconv", RUNS),
    ("upload-pack", RUNS),
];

const RUNS: &str = "it runs a program";
const WRITES: &str = "it writes a file of the caller's choice";
const READS: &str = "it reads a file of the caller's choice";
const SETS: &str = "it changes settings";
const ENTERS: &str = "it runs git in submodules, with their settings";

/// Options that begin like a refused one, and are none.
const HARMLESS: [&str; 10] = [
    "exclude",
    "ignore-rev",
    "no-edit",
    "no-ext-diff",
    "no-recurse-submodules",
    "no-show-signature",
    "no-signature",
    "no-textconv",
    "no-template",
    "text",
];

/// Short options that are refused: the command (`*` for all), the letter, and why.
const SHORT: [(&str, char, &str); 10] = [
    // The pager of grep, and the order of files of diff.
    ("*", 'O', READS),
    ("blame", 'S', READS),
    ("annotate", 'S', READS),
    ("ls-files", 'X', READS),
    ("rebase", 'x', RUNS),
    ("clone", 'c', SETS),
    ("clone", 'u', RUNS),
    ("grep", 'f', READS),
    ("commit", 'F', READS),
    ("commit", 't', READS),
];

/// The commands whose `-S`, `-G` and `-L` take the rest of the word for a text.
const SEARCHING: [&str; 3] = ["diff", "log", "show"];

/// Long options behind whose `=` stands a text, and no path.
const TEXTS: [&str; 7] =
    ["--author=", "--committer=", "--format=", "--grep=", "--message=", "--pretty=", "--since="];

/// The options of `branch` that only look. It makes, moves and removes otherwise.
const LOOKING_AT_BRANCHES: [&str; 24] = [
    "-a",
    "--all",
    "-r",
    "--remotes",
    "-v",
    "-vv",
    "--verbose",
    "-l",
    "--list",
    "-i",
    "--ignore-case",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
    "--sort",
    "--format",
    "--show-current",
    "--column",
    "--no-column",
    "--abbrev",
    "--no-abbrev",
    "--no-color",
];

/// Returns an error unless a command may have these arguments.
pub(super) fn check(command: &str, args: &[String]) -> Result<(), Refused> {
    for word in args {
        let why = match word.strip_prefix("--") {
            Some("") => None,
            Some(long) => refused_long(long),
            None => word.strip_prefix('-').and_then(|short| refused_short(command, short)),
        };
        if let Some(why) = why {
            let message = format!("`git {command}` may not have the option {word:?} here: {why}");
            return Err(Refused::forbidden(message));
        }
        if leads_elsewhere(command, word) {
            let message = format!("{word:?} may lead out of the project; name files from there");
            return Err(Refused::forbidden(message));
        }
    }
    if command == "branch" { only_looks(args) } else { Ok(()) }
}

/// Returns why a long option is refused, by everything before its value.
fn refused_long(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or_default();
    if HARMLESS.contains(&name) {
        return None;
    }
    let without_no = name.strip_prefix("no-");
    let may_mean = |known: &str| {
        let is_start = |name: &str| known.starts_with(name);
        is_start(name) || without_no.is_some_and(is_start)
    };
    // Those of which there are many.
    if name.starts_with("exec") {
        return Some(RUNS);
    }
    if name.starts_with("help") {
        return Some(RUNS);
    }
    if name.starts_with("output") {
        return Some(WRITES);
    }
    LONG.iter().find(|(known, _)| may_mean(known)).map(|(_, why)| *why)
}

/// Returns why a word of short options is refused.
fn refused_short(command: &str, letters: &str) -> Option<&'static str> {
    if letters == "c" || (letters.starts_with('c') && letters.contains('=')) {
        return Some(SETS);
    }
    let first = letters.chars().next();
    let is_text = match first {
        Some('S' | 'G' | 'L') => SEARCHING.contains(&command),
        Some(_) | None => false,
    };
    let is_lines = first == Some('L') && command == "blame";
    if is_text || is_lines {
        return None;
    }
    let mut refused = SHORT
        .iter()
        .filter(|(of, letter, _)| (*of == "*" || *of == command) && letters.contains(*letter));
    refused.next().map(|(_, _, why)| *why)
}

/// Whether a word, or the value in it, is a path that may lie outside. `git diff`
/// compares such files without any repository, and others write there.
fn leads_elsewhere(command: &str, word: &str) -> bool {
    if TEXTS.iter().any(|text| word.starts_with(text)) {
        return false;
    }
    let value = if word.starts_with("--") {
        word.split_once('=').map(|(_, value)| value)
    } else if SEARCHING.contains(&command) && (word.starts_with("-S") || word.starts_with("-G")) {
        return false;
    } else {
        // Behind one short option, and behind several.
        word.strip_prefix('-')
            .and_then(|short| short.find(['/', '.']).and_then(|at| short.get(at..)))
    };
    is_outside(word) || value.is_some_and(is_outside)
}

fn is_outside(path: &str) -> bool {
    path.starts_with('/') || path.split('/').any(|part| part == "..")
}

fn only_looks(args: &[String]) -> Result<(), Refused> {
    let looks = |word: &String| {
        let name = word.split('=').next().unwrap_or_default();
        LOOKING_AT_BRANCHES.contains(&name)
    };
    let lists = args.iter().any(|word| word == "-l" || word == "--list");
    // What follows these is a commit, and with them nothing is made.
    let asks = |word: &String| {
        ["--contains", "--no-contains", "--merged", "--no-merged", "--points-at"]
            .contains(&word.as_str())
    };
    let is_listing = lists || args.iter().any(asks);
    for word in args {
        let is_fine = if word.starts_with('-') { looks(word) } else { is_listing };
        if !is_fine {
            let message = format!(
                "`git branch` only looks here, and {word:?} may change something; \
                 patterns need `--list`"
            );
            return Err(Refused::forbidden(message));
        }
    }
    Ok(())
}
