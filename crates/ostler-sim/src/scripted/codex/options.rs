//! Codex's arguments, refused in the words of the real CLI.

use std::path::PathBuf;

use super::super::flags::{self, Argument, Flag, FlagError, Takes, flag};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Version,
    Help,
    Server,
    Turn(Options),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) output: Output,
    pub(super) resume: Option<String>,
    /// `-` and nothing both stand for standard input.
    pub(super) prompt: Option<String>,
    pub(super) model: Option<String>,
    pub(super) cd: Option<PathBuf>,
    pub(super) last_message: Option<PathBuf>,
    pub(super) ephemeral: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Output {
    #[default]
    Text,
    Json,
}

/// Lines for stderr and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) text: String,
    pub(super) exit: u8,
}

pub(super) const USAGE: &str =
    "Usage: codex exec [OPTIONS] [PROMPT]\n       codex exec [OPTIONS] <COMMAND> [ARGS]";

impl Refusal {
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), exit: 1 }
    }

    pub(super) fn unknown_thread(id: &str) -> Self {
        Self::failed(format!(
            "Error: thread/resume: thread/resume failed: no rollout found for thread id {id} \
             (code -32600)"
        ))
    }

    pub(super) fn not_utf8(offset: usize) -> Self {
        Self::failed(format!(
            "Failed to read prompt from stdin: input is not valid UTF-8 (invalid byte at offset \
             {offset}). Convert it to UTF-8 and retry (e.g., `iconv -f <ENC> -t UTF-8 prompt.txt`)."
        ))
    }

    pub(super) fn too_long(max: usize, actual: usize) -> Self {
        Self::failed(format!(
            "Error: turn/start: turn/start failed: Input exceeds the maximum length of {max} \
             characters. (code -32602), data: {{\"input_error_code\":\"input_too_large\",\
             \"max_chars\":{max},\"actual_chars\":{actual}}}"
        ))
    }

    fn unexpected(argument: &str, usage: &str) -> Self {
        let text = format!(
            "error: unexpected argument '{argument}' found\n\n  tip: to pass '{argument}' as a \
             value, use '-- {argument}'\n\n{usage}\n\nFor more information, try '--help'."
        );
        Self { text, exit: 2 }
    }
}

const FLAGS: &[Flag] = &[
    flag(&["--version", "-V"], Takes::Nothing),
    flag(&["--help", "-h"], Takes::Nothing),
    flag(&["--json", "--experimental-json"], Takes::Nothing),
    flag(&["--skip-git-repo-check"], Takes::Nothing),
    flag(&["--dangerously-bypass-approvals-and-sandbox", "--yolo"], Takes::Nothing),
    flag(&["--dangerously-bypass-hook-trust"], Takes::Nothing),
    flag(&["--approve-for-me"], Takes::Nothing),
    flag(&["--ephemeral"], Takes::Nothing),
    flag(&["--ignore-user-config"], Takes::Nothing),
    flag(&["--ignore-rules"], Takes::Nothing),
    flag(&["--strict-config"], Takes::Nothing),
    flag(&["--oss"], Takes::Nothing),
    flag(&["--worktree"], Takes::Nothing),
    flag(&["--config", "-c"], Takes::One),
    flag(&["--enable"], Takes::One),
    flag(&["--disable"], Takes::One),
    flag(&["--image", "-i"], Takes::Many),
    flag(&["--model", "-m"], Takes::One),
    flag(&["--local-provider"], Takes::One),
    flag(&["--profile", "-p"], Takes::One),
    flag(&["--sandbox", "-s"], Takes::One),
    flag(&["--ask-for-approval", "-a"], Takes::One),
    flag(&["--cd", "-C"], Takes::One),
    flag(&["--add-dir"], Takes::One),
    flag(&["--thread-source"], Takes::One),
    flag(&["--output-schema"], Takes::One),
    flag(&["--output-last-message", "-o"], Takes::One),
    flag(&["--color"], Takes::One),
];

/// Flags that Codex takes before `resume` but not after it.
const NOT_AFTER_RESUME: [&str; 5] = ["--cd", "--sandbox", "--add-dir", "--color", "--profile"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    BeforeExec,
    Exec,
    /// `resume` was said; the next word is the session.
    Resume,
}

impl Place {
    fn usage(self) -> &'static str {
        match self {
            Self::BeforeExec => "Usage: codex [OPTIONS] [PROMPT]",
            Self::Exec => USAGE,
            Self::Resume => "Usage: codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]",
        }
    }

    fn takes(self, flag: &str) -> bool {
        match self {
            Self::BeforeExec => true,
            Self::Exec => flag != "--ask-for-approval",
            Self::Resume => flag != "--ask-for-approval" && !NOT_AFTER_RESUME.contains(&flag),
        }
    }
}

pub(super) fn parse(argv: &[String]) -> Result<Ask, Refusal> {
    let arguments = flags::parse(FLAGS, argv).map_err(|error| match error {
        FlagError::Unknown(name) => Refusal::unexpected(&name, USAGE),
        FlagError::MissingValue(name) => {
            let text =
                format!("error: a value is required for '{name} <VALUE>' but none was supplied");
            Refusal { text, exit: 2 }
        }
    })?;
    let mut place = Place::BeforeExec;
    let mut options = Options::default();
    for argument in arguments {
        match argument {
            Argument::Flag { name: "--version", .. } => return Ok(Ask::Version),
            Argument::Flag { name: "--help", .. } => return Ok(Ask::Help),
            Argument::Flag { name, value } => {
                if !place.takes(name) {
                    return Err(Refusal::unexpected(name, place.usage()));
                }
                options.set(name, value);
            }
            Argument::Word(word) if place == Place::BeforeExec => match word.as_str() {
                "exec" | "e" => place = Place::Exec,
                // Its flags say nothing about what is played.
                "app-server" => return Ok(Ask::Server),
                other => {
                    let text = format!(
                        "Error: the scripted agent plays `exec` and `app-server`, not `{other}`."
                    );
                    return Err(Refusal::failed(text));
                }
            },
            Argument::Word(word) if place == Place::Exec && options.prompt.is_none() => {
                match word.as_str() {
                    "resume" => place = Place::Resume,
                    "fork" | "review" => {
                        let text = format!("Error: the scripted agent does not play `{word}`.");
                        return Err(Refusal::failed(text));
                    }
                    _ => options.prompt = Some(word),
                }
            }
            Argument::Word(word) | Argument::Literal(word) => {
                if place == Place::Resume && options.resume.is_none() {
                    options.resume = Some(word);
                } else if options.prompt.is_none() {
                    options.prompt = Some(word);
                } else {
                    return Err(Refusal::unexpected(&word, place.usage()));
                }
            }
        }
    }
    match (place, &options.resume) {
        (Place::BeforeExec, _) => Err(Refusal::failed("Error: stdin is not a terminal")),
        (Place::Resume, None) => {
            Err(Refusal::failed("Error: the scripted agent resumes only by a session id."))
        }
        (Place::Exec, _) | (Place::Resume, Some(_)) => Ok(Ask::Turn(options)),
    }
}

impl Options {
    /// Flags without an effect on what is played are accepted and forgotten.
    fn set(&mut self, name: &str, value: Option<String>) {
        match name {
            "--json" => self.output = Output::Json,
            "--ephemeral" => self.ephemeral = true,
            "--model" => self.model = value,
            "--cd" => self.cd = value.map(PathBuf::from),
            "--output-last-message" => self.last_message = value.map(PathBuf::from),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee";

    fn parse_words(words: &[&str]) -> Result<Ask, Refusal> {
        parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn turn(words: &[&str]) -> Options {
        match parse_words(words).unwrap() {
            Ask::Turn(options) => options,
            Ask::Version | Ask::Help | Ask::Server => panic!("no turn"),
        }
    }

    #[test]
    fn the_usual_calls_are_understood() {
        let fresh = turn(&[
            "exec",
            "--json",
            "--skip-git-repo-check",
            "-c",
            "a=\"-b\"",
            "--cd",
            "/tmp",
            "-m",
            "m",
            "-",
        ]);
        let expected = Options {
            output: Output::Json,
            prompt: Some("-".into()),
            model: Some("m".into()),
            cd: Some("/tmp".into()),
            ..Options::default()
        };
        assert_eq!(fresh, expected);
        let resumed = turn(&["exec", "--json", "--cd", "/tmp", "resume", ID, "-"]);
        assert_eq!(resumed.resume.as_deref(), Some(ID));
        assert_eq!(resumed.prompt.as_deref(), Some("-"));
        assert_eq!(turn(&["exec", "resume", ID]).prompt, None);
    }

    #[test]
    fn after_two_dashes_a_command_is_a_prompt() {
        assert_eq!(turn(&["exec", "--", "resume"]).prompt.as_deref(), Some("resume"));
        assert_eq!(turn(&["exec", "--", "--help"]).prompt.as_deref(), Some("--help"));
        assert_eq!(parse_words(&["exec", "--help"]), Ok(Ask::Help));
    }

    #[test]
    fn flags_have_their_places() {
        for words in [
            vec!["exec", "--full-auto", "hi"],
            vec!["exec", "--ask-for-approval", "never", "hi"],
            vec!["exec", "resume", ID, "--cd", "/tmp", "hi"],
            vec!["exec", "resume", "--sandbox", "read-only", ID, "hi"],
            vec!["exec", "hello", "world"],
        ] {
            let refusal = parse_words(&words).unwrap_err();
            assert_eq!(refusal.exit, 2, "{words:?}");
            assert!(refusal.text.starts_with("error: unexpected argument"), "{refusal:?}");
        }
        turn(&["--ask-for-approval", "never", "exec", "hi"]);
        turn(&["exec", "resume", ID, "--json", "-m", "m", "hi"]);
    }

    #[test]
    fn what_is_neither_exec_nor_the_server_is_not_played() {
        assert_eq!(parse_words(&["app-server", "-c", "a=1"]), Ok(Ask::Server));
        for words in [vec!["mcp-server"], vec!["exec", "fork", ID], vec![], vec!["exec", "resume"]]
        {
            assert_eq!(parse_words(&words).unwrap_err().exit, 1, "{words:?}");
        }
    }
}
