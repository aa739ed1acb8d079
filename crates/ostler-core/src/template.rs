//! A command line of the operator's own: `["claude", "{{Body}}"]`.
//!
//! The agent's flags are added only where the template lacks them, and only
//! when its first word really is that agent; the body keeps its place. Pure.

use std::{ffi::OsString, path::Path};

use crate::{
    agent::{CommandLine, LaunchError, Stdin},
    request::{Open, Options, SessionArgPosition, Template},
};

/// The longest prompt that may be an argument; the kernel takes 128 KiB.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

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
    let (program, own) = template
        .command
        .split_first()
        .map(|(program, own)| (expand(program, &lookup), own))
        .filter(|(program, _)| !program.trim().is_empty())
        .ok_or_else(|| LaunchError::BadTemplate { why: "it names no program".to_owned() })?;
    let is_agent = is_agent(facts.program, &program);
    let mut session = Some(session_words(facts, template, open, is_agent));
    let mut args: Vec<OsString> = Vec::new();
    let mut rest = own;
    if is_agent {
        if let Some(subcommand) = facts.subcommand {
            let at = own.iter().position(|word| word == subcommand);
            let (before, behind) = own.split_at(at.unwrap_or(0));
            args.extend(before.iter().map(|word| expand(word, &lookup).into()));
            args.push(subcommand.into());
            rest = if at.is_some() { behind.get(1..).unwrap_or_default() } else { behind };
        }
        let missing = flags.iter().filter(|group| !has_flag(facts, own, group));
        args.extend(missing.flatten().cloned());
    }
    let mut stdin = Stdin::Null;
    let mut has_body = false;
    for word in rest {
        let is_body = mentions(word, "Body");
        if is_body && template.session.position == SessionArgPosition::BeforeBody {
            let words = session.take().unwrap_or_default();
            args.extend(words.iter().map(|word| expand(word, &lookup).into()));
        }
        has_body |= is_body;
        let word = expand(word, &lookup);
        if is_agent && is_body && (facts.misreads)(&word) {
            args.extend(facts.body_on_stdin.iter().map(OsString::from));
            stdin = Stdin::Bytes(if word == prompt { input.to_vec() } else { word.into_bytes() });
        } else {
            args.push(word.into());
        }
    }
    args.extend(session.unwrap_or_default().iter().map(|word| expand(word, &lookup).into()));
    if !has_body {
        if is_agent {
            args.extend(facts.body_on_stdin.iter().map(OsString::from));
        }
        stdin = Stdin::Bytes(input.to_vec());
    }
    Ok(CommandLine {
        // The agent's own name means the program that was found for it.
        program: (program != facts.program).then(|| program.into()),
        args,
        stdin,
        ..CommandLine::default()
    })
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
mod tests {
    use super::*;
    use crate::{memo::Memo, request::SessionArgs};

    const FACTS: TemplateFacts = TemplateFacts {
        program: "agent",
        subcommand: None,
        spellings: &[&["-p", "--print"]],
        setting: Some("-c"),
        session_new: &["--session-id", "{{SessionId}}"],
        session_resume: &["--resume", "{{SessionId}}"],
        body_on_stdin: &[],
        misreads: |prompt| prompt.starts_with('-'),
    };

    fn template(words: &[&str]) -> Template {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        let mut template = Template { command, ..Template::default() };
        template.variables.insert("SessionId".into(), "new-1".into());
        template
    }

    fn resume() -> Open {
        Open::Resume(Box::new(Memo::of_id("agent", "old-1")))
    }

    fn flags() -> Vec<Vec<OsString>> {
        groups(&["-p", "--model", "m"].map(OsString::from))
    }

    fn words(template: &Template, open: &Open, prompt: &str) -> String {
        let line = fill(&FACTS, template, open, prompt, prompt.as_bytes(), &flags()).unwrap();
        let args: Vec<_> = line.args.iter().map(|word| word.to_string_lossy()).collect();
        let stdin = match &line.stdin {
            Stdin::Null | Stdin::Open => String::new(),
            Stdin::Bytes(bytes) => format!(" < {}", String::from_utf8_lossy(bytes)),
        };
        format!("{}{stdin}", args.join(" "))
    }

    #[test]
    fn missing_flags_are_added_and_the_body_keeps_its_place() {
        let line = words(&template(&["agent", "{{Body}}", "--last"]), &Open::New, "hi");
        assert_eq!(line, "-p --model m --session-id new-1 hi --last");
    }

    #[test]
    fn flags_that_are_there_in_any_spelling_are_not_added() {
        let line =
            words(&template(&["agent", "--print", "--model=x", "{{Body}}"]), &resume(), "hi");
        assert_eq!(line, "--print --model=x --resume old-1 hi");
    }

    #[test]
    fn another_program_gets_nothing_but_its_own_words() {
        let line = words(&template(&["/bin/echo", "{{Body}} {{Nope}}!"]), &resume(), "hi");
        assert_eq!(line, "hi !");
    }

    #[test]
    fn session_arguments_can_be_replaced_and_put_at_the_end() {
        let mut template = template(&["agent", "{{Body}}"]);
        template.session = SessionArgs {
            new: Some(vec![]),
            resume: Some(vec!["--thread={{SessionId}}".into()]),
            position: SessionArgPosition::End,
        };
        assert_eq!(words(&template, &Open::New, "hi"), "-p --model m hi");
        assert_eq!(words(&template, &resume(), "hi"), "-p --model m hi --thread=old-1");
    }

    #[test]
    fn a_prompt_that_would_be_misread_or_has_no_place_goes_to_standard_input() {
        let with_body = template(&["agent", "{{Body}}"]);
        assert_eq!(words(&with_body, &resume(), "--help"), "-p --model m --resume old-1 < --help");
        let without = template(&["agent", "--fast"]);
        assert_eq!(words(&without, &resume(), "hi"), "-p --model m --fast --resume old-1 < hi");
    }

    #[test]
    fn a_body_in_a_longer_word_or_with_spaces_in_its_braces_is_no_option_either() {
        for word in ["{{ Body }}", "{{Body}}!"] {
            let line = words(&template(&["agent", word]), &resume(), "--help");
            let tail = if word.ends_with('!') { "!" } else { "" };
            assert_eq!(line, format!("-p --model m --resume old-1 < --help{tail}"), "{word}");
        }
        let line = words(&template(&["agent", "Do: {{Body}}"]), &resume(), "--help");
        assert_eq!(line, "-p --model m --resume old-1 Do: --help");
    }

    #[test]
    fn settings_are_told_apart_by_their_key() {
        let flags = groups(&["-c", "a=1", "-c", "b=2"].map(OsString::from));
        let template = template(&["agent", "-c", "b=7", "{{Body}}"]);
        let line = fill(&FACTS, &template, &resume(), "hi", b"hi", &flags).unwrap();
        let args: Vec<_> = line.args.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(args.join(" "), "-c a=1 -c b=7 --resume old-1 hi");
    }

    #[test]
    fn a_subcommand_keeps_its_place_and_comes_once() {
        let facts = TemplateFacts { subcommand: Some("exec"), ..FACTS };
        let line = |words: &[&str]| {
            let line = fill(&facts, &template(words), &resume(), "hi", b"hi", &flags()).unwrap();
            let args: Vec<_> = line.args.iter().map(|word| word.to_string_lossy()).collect();
            args.join(" ")
        };
        assert_eq!(line(&["agent", "{{Body}}"]), "exec -p --model m --resume old-1 hi");
        assert_eq!(
            line(&["agent", "--search", "exec", "{{Body}}"]),
            "--search exec -p --model m --resume old-1 hi"
        );
    }

    #[test]
    fn a_template_without_a_program_is_refused() {
        for words in [&[][..], &[""], &["{{Nope}}"]] {
            assert!(fill(&FACTS, &template(words), &Open::New, "hi", b"hi", &[]).is_err());
        }
    }

    #[test]
    fn unknown_names_are_empty_and_other_braces_stay() {
        let lookup = |name: &str| (name == "Body").then_some("b {{Body}}");
        assert_eq!(expand("x {{ Body }} {{Who}}.", &lookup), "x b {{Body}} .");
        assert_eq!(expand("{{ not a name }} {{", &lookup), "{{ not a name }} {{");
        assert_eq!(expand("{{{{Body}}", &lookup), "{{b {{Body}}");
    }
}
