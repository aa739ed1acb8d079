//! A command line of the operator's own: `["claude", "{{Body}}"]`.
//!
//! The agent's flags are added only where the template lacks them, and only
//! when its first word really is that agent; the body keeps its place. Pure.
//!
//! What somebody wrote fills a word, and never becomes one of its own: nor an
//! option, for a word begins with a dash only where the operator wrote it; nor
//! the program.

use std::{ffi::OsString, path::Path};

use crate::{
    agent::{CommandLine, LaunchError, Stdin},
    request::{Open, Options, SessionArgPosition, Template},
};

/// The longest prompt that may be an argument; the kernel takes 128 KiB.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

/// The longest word that the kernel takes; it counts the NUL at the end.
const LONGEST_WORD: usize = 128 * 1024 - 1;

/// The variables that are what the agent is asked: all of it, or the message alone.
const BODIES: [&str; 2] = ["Body", "BodyStripped"];

/// What a template needs to know about an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TemplateFacts {
    /// The program's name, to be recognised in the template's first word.
    pub(crate) program: &'static str,
    /// The word that must follow the program, if any.
    pub(crate) subcommand: Option<&'static str>,
    /// Other spellings of flags: one of them in the template counts for the other.
    pub(crate) spellings: &'static [&'static [&'static str]],
    /// The flag that may come again and again with another key, if there is one.
    pub(crate) setting: Option<&'static str>,
    /// The default session arguments for a new session.
    pub(crate) session_new: &'static [&'static str],
    /// The default session arguments for one that goes on.
    pub(crate) session_resume: &'static [&'static str],
    /// What stands in the body's place when the prompt goes to standard input.
    pub(crate) body_on_stdin: &'static [&'static str],
    /// Whether the CLI would take this prompt for something else as an argument.
    pub(crate) misreads: fn(&str) -> bool,
    /// Makes a prompt text and nothing else, where the CLI would find commands in it.
    pub(crate) plain: fn(&str) -> String,
}

/// Cuts a command line into flags with their values.
pub(crate) fn groups(args: &[OsString]) -> Vec<Vec<OsString>> {
    let mut groups: Vec<Vec<OsString>> = Vec::new();
    for word in args {
        match groups.last_mut() {
            Some(group) if !word.as_encoded_bytes().starts_with(b"-") => group.push(word.clone()),
            _ => groups.push(vec![word.clone()]),
        }
    }
    groups
}

/// Fills a template in.
///
/// `flags` are the agent's own, a flag with its values each; `input` is the
/// prompt as the agent reads it on standard input.
pub(crate) fn fill(
    facts: &TemplateFacts,
    template: &Template,
    open: &Open,
    prompt: &str,
    input: &[u8],
    flags: &[Vec<OsString>],
) -> Result<CommandLine, LaunchError> {
    let session_id = open.memo().map(|memo| memo.id.as_str());
    let lookup = |name: &str| match (name, session_id) {
        ("Body", _) => Some(prompt),
        ("SessionId", Some(id)) => Some(id),
        _ => template.variables.get(name).map(String::as_str),
    };
    let unusable = |why: &str| LaunchError::BadTemplate { why: why.to_owned() };
    let (program, own) = template
        .command
        .split_first()
        .filter(|(program, _)| !program.trim().is_empty())
        .ok_or_else(|| unusable("it names no program"))?;
    if has_variable(program) {
        return Err(unusable("its program must not depend on the message"));
    }
    let is_agent = is_agent(facts.program, program);
    let mut session = Some(session_words(facts, template, open, is_agent));
    let mut args: Vec<OsString> = Vec::new();
    let mut rest = own;
    if is_agent {
        if let Some(subcommand) = facts.subcommand {
            let at = own.iter().position(|word| word == subcommand);
            let (before, behind) = own.split_at(at.unwrap_or(0));
            args.extend(before.iter().map(|word| argument(word, &lookup).into()));
            args.push(subcommand.into());
            rest = if at.is_some() { behind.get(1..).unwrap_or_default() } else { behind };
        }
        let missing = flags.iter().filter(|group| !has_flag(facts, own, group));
        args.extend(missing.flatten().cloned());
    }
    let position = template.session.position;
    let mut stdin = Stdin::Null;
    let mut has_body = false;
    for template in rest {
        let is_body = BODIES.iter().any(|name| mentions(template, name));
        if is_body && position == SessionArgPosition::BeforeBody {
            let words = session.take().unwrap_or_default();
            args.extend(words.iter().map(|word| argument(word, &lookup).into()));
        }
        has_body |= is_body;
        if !is_agent || !is_body {
            args.push(argument(template, &lookup).into());
            continue;
        }
        match put(facts, &expand(template, &lookup), prompt, input) {
            Put::Argument(word) => args.push(word.into()),
            Put::Stdin(bytes) => {
                args.extend(facts.body_on_stdin.iter().map(OsString::from));
                stdin = Stdin::Bytes(bytes);
            }
        }
    }
    let session = session.unwrap_or_default();
    args.extend(session.iter().map(|word| argument(word, &lookup).into()));
    if !has_body {
        if is_agent {
            args.extend(facts.body_on_stdin.iter().map(OsString::from));
        }
        stdin = Stdin::Bytes(input.to_vec());
    }
    if let Some(word) = args.iter().find(|word| word.len() > LONGEST_WORD) {
        // Else the program could not be started, now and whenever that is tried again.
        let length = word.len();
        return Err(unusable(&format!(
            "filled in, one of its words has {length} bytes, and the system takes {LONGEST_WORD}; \
             without {{{{Body}}}} in it a message of any length goes to standard input"
        )));
    }
    Ok(CommandLine {
        // The agent's own name means the program that was found for it.
        program: (program != facts.program).then(|| program.clone().into()),
        args,
        stdin,
        ..CommandLine::default()
    })
}

/// Where the word of an agent's command line goes that has the prompt in it.
enum Put {
    Argument(String),
    Stdin(Vec<u8>),
}

/// Puts such a word where the agent reads it as text and nothing else. The whole
/// prompt is plain text already.
fn put(facts: &TemplateFacts, word: &str, prompt: &str, input: &[u8]) -> Put {
    match ((facts.misreads)(word), word == prompt) {
        (false, true) => Put::Argument(word.to_owned()),
        (false, false) => Put::Argument((facts.plain)(word)),
        (true, true) => Put::Stdin(input.to_vec()),
        (true, false) => Put::Stdin((facts.plain)(word).into_bytes()),
    }
}

/// Returns whether the first word of a template is the agent's program.
pub(crate) fn is_agent(program: &str, first_word: &str) -> bool {
    Path::new(first_word).file_name().is_some_and(|name| name == program)
}

/// Returns the id that a template gives to a new session on its command line.
pub(crate) fn new_session_id(program: &str, options: &Options) -> Option<String> {
    let template = options.template.as_ref()?;
    let is_given = match &template.session.new {
        Some(words) => words.iter().any(|word| mentions(word, "SessionId")),
        None => template.command.first().is_some_and(|word| is_agent(program, word)),
    };
    template.variables.get("SessionId").filter(|_| is_given).cloned()
}

/// Returns the session arguments: the operator's, else the agent's where it runs.
fn session_words(
    facts: &TemplateFacts,
    template: &Template,
    open: &Open,
    is_agent: bool,
) -> Vec<String> {
    let (given, default) = match open {
        Open::New => (&template.session.new, facts.session_new),
        Open::Resume(_) => (&template.session.resume, facts.session_resume),
    };
    match given {
        Some(words) => words.clone(),
        None if is_agent => default.iter().map(|word| (*word).to_owned()).collect(),
        None => Vec::new(),
    }
}

/// Returns whether the template has a flag, in any of its spellings. A setting
/// (`-c key=value`) is there when its key is.
fn has_flag(facts: &TemplateFacts, words: &[String], group: &[OsString]) -> bool {
    let Some(flag) = group.first().and_then(|flag| flag.to_str()) else { return false };
    if facts.setting == Some(flag) {
        let value = group.get(1).and_then(|value| value.to_str()).unwrap_or_default();
        let key = value.split_once('=').map_or(value, |(key, _)| key);
        return words.iter().any(|word| word.split_once('=').is_some_and(|(name, _)| name == key));
    }
    let same = facts.spellings.iter().find(|same| same.contains(&flag));
    let is_it = |word: &str| match same {
        Some(same) => same.contains(&word),
        None => word == flag,
    };
    words
        .iter()
        .any(|word| is_it(word) || word.split_once('=').is_some_and(|(name, _)| is_it(name)))
}

/// Returns whether a text has a variable in it.
fn mentions(text: &str, variable: &str) -> bool {
    let found = std::cell::Cell::new(false);
    expand(text, &|name: &str| -> Option<&str> {
        found.set(found.get() || name == variable);
        None
    });
    found.get()
}

/// Returns whether a text has any variable in it.
#[must_use]
pub fn has_variable(text: &str) -> bool {
    let found = std::cell::Cell::new(false);
    expand(text, &|_: &str| -> Option<&str> {
        found.set(true);
        None
    });
    found.get()
}

/// Fills one word of a command line in. It stays one word; what would make an
/// option of it gets a blank before it, and no word can hold NUL.
fn argument<'a>(template: &str, lookup: &impl Fn(&str) -> Option<&'a str>) -> String {
    let word = expand(template, lookup).replace('\0', "\u{fffd}");
    if word.starts_with('-') && !template.starts_with('-') { format!(" {word}") } else { word }
}

/// Replaces `{{Name}}`; an unknown name is empty, anything else stays as it is.
pub fn expand<'a>(text: &str, lookup: &impl Fn(&str) -> Option<&'a str>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else {
            break;
        };
        result.push_str(before);
        let name = name.trim();
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            result.push_str(lookup(name).unwrap_or_default());
            rest = behind;
        } else {
            result.push_str("{{");
            rest = after;
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests;
