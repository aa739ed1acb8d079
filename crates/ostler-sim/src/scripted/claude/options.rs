//! Claude's arguments, refused in the words of the real CLI.

use super::super::flags::{self, Flag, FlagError, Takes, flag};
use super::super::given::Given;
use super::super::id::is_uuid;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Version,
    Help,
    Turn(Options),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) open: Open,
    pub(super) model: Option<String>,
    pub(super) permission_mode: String,
    /// Whether somebody on standard input is asked before a tool runs.
    pub(super) asks: bool,
    pub(super) persists: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// The prompt, or `None` for the whole of standard input.
    Text(Option<String>),
    Stream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Text,
    Json,
    JsonVerbose,
    Stream { partial: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Open {
    New {
        id: Option<String>,
    },
    /// A fork continues under another id, which may be chosen.
    Resume {
        id: String,
        fork: Option<Option<String>>,
    },
}

/// A line for stderr; the exit code is always 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

const FLAGS: &[Flag] = &[
    flag(&["--version", "-v"], Takes::Nothing),
    flag(&["--help", "-h"], Takes::Nothing),
    flag(&["--print", "-p"], Takes::Nothing),
    flag(&["--verbose"], Takes::Nothing),
    flag(&["--include-partial-messages"], Takes::Nothing),
    flag(&["--include-hook-events"], Takes::Nothing),
    flag(&["--replay-user-messages"], Takes::Nothing),
    flag(&["--forward-subagent-text"], Takes::Nothing),
    flag(&["--dangerously-skip-permissions"], Takes::Nothing),
    flag(&["--allow-dangerously-skip-permissions"], Takes::Nothing),
    flag(&["--strict-mcp-config"], Takes::Nothing),
    flag(&["--bare"], Takes::Nothing),
    flag(&["--restricted"], Takes::Nothing),
    flag(&["--safe-mode"], Takes::Nothing),
    flag(&["--disable-slash-commands"], Takes::Nothing),
    flag(&["--exclude-dynamic-system-prompt-sections"], Takes::Nothing),
    flag(&["--no-session-persistence"], Takes::Nothing),
    flag(&["--no-chrome"], Takes::Nothing),
    flag(&["--fork-session"], Takes::Nothing),
    flag(&["--continue", "-c"], Takes::Nothing),
    flag(&["--output-format"], Takes::One),
    flag(&["--input-format"], Takes::One),
    flag(&["--model"], Takes::One),
    flag(&["--fallback-model"], Takes::One),
    flag(&["--effort"], Takes::One),
    flag(&["--thinking"], Takes::One),
    flag(&["--thinking-display"], Takes::One),
    flag(&["--max-thinking-tokens"], Takes::One),
    flag(&["--max-turns"], Takes::One),
    flag(&["--max-budget-usd"], Takes::One),
    flag(&["--permission-mode"], Takes::One),
    flag(&["--permission-prompt-tool"], Takes::One),
    flag(&["--permission-prompts"], Takes::One),
    flag(&["--system-prompt"], Takes::One),
    flag(&["--system-prompt-file"], Takes::One),
    flag(&["--append-system-prompt"], Takes::One),
    flag(&["--append-system-prompt-file"], Takes::One),
    flag(&["--system-prompt-snapshot"], Takes::One),
    flag(&["--session-id"], Takes::One),
    flag(&["--name", "-n"], Takes::One),
    flag(&["--json-schema"], Takes::One),
    flag(&["--settings"], Takes::One),
    flag(&["--setting-sources"], Takes::One),
    flag(&["--agent"], Takes::One),
    flag(&["--agents"], Takes::One),
    flag(&["--plugin-dir"], Takes::One),
    flag(&["--debug-file"], Takes::One),
    flag(&["--resume", "-r"], Takes::Optional),
    flag(&["--debug", "-d"], Takes::Optional),
    flag(&["--tools"], Takes::Many),
    flag(&["--allowedTools", "--allowed-tools"], Takes::Many),
    flag(&["--disallowedTools", "--disallowed-tools"], Takes::Many),
    flag(&["--add-dir"], Takes::Many),
    flag(&["--mcp-config"], Takes::Many),
    flag(&["--betas"], Takes::Many),
    flag(&["--file"], Takes::Many),
];

pub(super) fn parse(argv: &[String]) -> Result<Ask, Refusal> {
    let arguments = flags::parse(FLAGS, argv).map_err(|error| match error {
        FlagError::Unknown(name) => Refusal(format!("error: unknown option '{name}'")),
        FlagError::MissingValue(name) => {
            Refusal(format!("error: option '{name} <value>' argument missing"))
        }
    })?;
    let given = Given::of(arguments);
    if given.has("--version") {
        return Ok(Ask::Version);
    }
    if given.has("--help") {
        return Ok(Ask::Help);
    }
    let output = output(&given)?;
    let input = match given.value("--input-format") {
        None | Some("text") => Input::Text(given.words.first().cloned()),
        Some("stream-json") if matches!(output, Output::Stream { .. }) => Input::Stream,
        Some("stream-json") => {
            let text = "Error: --input-format=stream-json requires output-format=stream-json.";
            return refuse(text);
        }
        Some(other) => return refuse(format!("error: input format '{other}' is invalid.")),
    };
    let permission_mode = if given.has("--dangerously-skip-permissions") {
        "bypassPermissions"
    } else {
        given.value("--permission-mode").unwrap_or("default")
    };
    Ok(Ask::Turn(Options {
        input,
        output,
        open: open(&given)?,
        model: given.value("--model").map(str::to_owned),
        asks: given.value("--permission-prompt-tool") == Some("stdio")
            && permission_mode != "bypassPermissions",
        permission_mode: permission_mode.to_owned(),
        persists: !given.has("--no-session-persistence"),
    }))
}

fn output(given: &Given) -> Result<Output, Refusal> {
    let partial = given.has("--include-partial-messages");
    let verbose = given.has("--verbose");
    match given.value("--output-format").unwrap_or("text") {
        "stream-json" if verbose => Ok(Output::Stream { partial }),
        "stream-json" => {
            refuse("Error: When using --print, --output-format=stream-json requires --verbose")
        }
        _ if partial => refuse(
            "Error: --include-partial-messages requires --print and --output-format=stream-json.",
        ),
        "json" if verbose => Ok(Output::JsonVerbose),
        "json" => Ok(Output::Json),
        "text" => Ok(Output::Text),
        other => refuse(format!("error: output format '{other}' is invalid.")),
    }
}

fn open(given: &Given) -> Result<Open, Refusal> {
    if given.has("--continue") {
        return refuse("Error: the scripted agent does not play --continue.");
    }
    let chosen = given.value("--session-id").map(str::to_owned);
    if chosen.as_deref().is_some_and(|id| !is_uuid(id)) {
        return refuse("Error: Invalid session ID. Must be a valid UUID.");
    }
    if !given.has("--resume") {
        return Ok(Open::New { id: chosen });
    }
    let id = given.value("--resume").unwrap_or_default().to_owned();
    if !is_uuid(&id) {
        return refuse(format!(
            "Error: --resume requires a valid session ID or session title when used with --print. \
             Usage: claude -p --resume <session-id|title>. Provided value \"{id}\" is not a UUID \
             and does not match any session title."
        ));
    }
    match (given.has("--fork-session"), chosen) {
        (false, None) => Ok(Open::Resume { id, fork: None }),
        (true, chosen) => Ok(Open::Resume { id, fork: Some(chosen) }),
        (false, Some(_)) => refuse(
            "Error: --session-id can only be used with --continue or --resume if --fork-session \
             is also specified.",
        ),
    }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "11111111-2222-4333-8444-555555555555";

    fn parse_words(words: &[&str]) -> Result<Ask, Refusal> {
        parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn turn(words: &[&str]) -> Options {
        match parse_words(words).unwrap() {
            Ask::Turn(options) => options,
            Ask::Version | Ask::Help => panic!("no turn"),
        }
    }

    #[test]
    fn the_usual_one_shot_call_is_understood() {
        let options = turn(&[
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--input-format=stream-json",
            "--dangerously-skip-permissions",
            "--model",
            "m",
            "--resume",
            ID,
        ]);
        let expected = Options {
            input: Input::Stream,
            output: Output::Stream { partial: true },
            open: Open::Resume { id: ID.into(), fork: None },
            model: Some("m".into()),
            permission_mode: "bypassPermissions".into(),
            asks: false,
            persists: true,
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn the_prompt_is_the_word_that_no_flag_takes() {
        let text = |word: &str| Input::Text(Some(word.to_owned()));
        assert_eq!(turn(&["-p", "hello"]).input, text("hello"));
        assert_eq!(turn(&["-p", "--model", "m", "hello"]).input, text("hello"));
        assert_eq!(turn(&["-p", "--", "--help"]).input, text("--help"));
        assert_eq!(turn(&["-p", "--allowedTools", "Bash", "hello"]).input, Input::Text(None));
    }

    #[test]
    fn refusals_are_those_of_the_real_cli() {
        for (words, part) in [
            (vec!["-p", "--no-such-flag"], "error: unknown option '--no-such-flag'"),
            (vec!["-p", "--output-format", "stream-json"], "requires --verbose"),
            (vec!["-p", "--include-partial-messages"], "requires --print and"),
            (vec!["-p", "--session-id", "abc"], "Must be a valid UUID"),
            (vec!["-p", "--resume", "nonsense"], "\"nonsense\" is not a UUID"),
            (vec!["-p", "--resume", ID, "--session-id", ID], "if --fork-session"),
        ] {
            let Refusal(text) = parse_words(&words).unwrap_err();
            assert!(text.contains(part), "{words:?}: {text}");
        }
    }

    #[test]
    fn a_prompt_that_is_an_option_asks_for_help() {
        assert_eq!(parse_words(&["-p", "--help"]), Ok(Ask::Help));
        assert_eq!(parse_words(&["--version"]), Ok(Ask::Version));
    }
}
