//! The scripted agent's own arguments: which script to play, and what is left
//! for the CLI that it plays. Pure; reading files is the script's business.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::Error;
use super::agent::Agent;
use super::script::{Script, Step};

pub(super) const HELP: &str = "\
Plays an agent's CLI for tests and demonstrations.

Usage: scripted FILE [ARGS…]                 plays a script (a JSON list of steps)
       scripted --script FILE [--] [ARGS…]   the same
       scripted --capture DIR/CASE [--chunk BYTES] [--delay-ms MS] [--] [ARGS…]
                                             plays CASE.stdout, CASE.stderr and CASE.exit
       scripted --as AGENT [--home DIR] [--pace-ms MS] [--] [ARGS…]
                                             plays claude, codex, gemini, opencode or pi,
                                             with sessions kept in DIR
       OSTLER_SCRIPT=FILE scripted [ARGS…]   plays a script

ARGS are the arguments of the CLI that is played. A script may begin with a #!
line, so that it can be run as a program. OSTLER_SCRIPTED_HOME and
OSTLER_SCRIPTED_PACE_MS stand for --home and --pace-ms.

Words in the prompt of a played agent: sim:tool, sim:history, sim:echo=WORD, and faults:
sim:delay=MS, sim:slow=MS, sim:garbage, sim:crash, sim:hang, sim:ignore-term,
sim:close-stdin. Claude, Codex, OpenCode and Pi are also played as they are kept
running for many prompts. OpenCode's server has faults of its own: sim:http=STATUS,
sim:error, sim:cut, sim:double-idle, sim:never-idle, sim:no-session, sim:question;
`serve --scripted-events flat` tells of turns under flat names.
";

/// The variables that the scripted agent listens to.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) script: Option<PathBuf>,
    pub(super) scripted_home: Option<PathBuf>,
    pub(super) home: Option<PathBuf>,
    pub(super) pace_ms: Option<OsString>,
}

#[derive(Debug)]
pub(super) enum Command {
    Help,
    Play { script: Script, argv: Vec<OsString> },
}

/// Options come first; the first word that is none of them, or `--`, begins the
/// arguments of the played CLI, which may look like anything.
pub(super) fn parse(args: Vec<OsString>, environment: &Environment) -> Result<Command, Error> {
    let mut own = Own::default();
    let mut args = args.into_iter().peekable();
    while let Some(option) = args.next_if(|word| word.to_str().is_some_and(is_own_option)) {
        if option == "--" {
            break;
        }
        let value = args
            .next()
            .ok_or_else(|| Error::Usage(format!("{} needs a value", option.display())))?;
        own.set(&option, value)?;
    }
    if let Some(script) = own.one_step()? {
        return Ok(Command::Play { script, argv: args.collect() });
    }
    if let Some(path) = own.script.or_else(|| environment.script.clone()) {
        return Ok(Command::Play { script: Script::read(&path)?, argv: args.collect() });
    }
    match args.next() {
        Some(word) if word == "--help" || word == "-h" => Ok(Command::Help),
        Some(word) if !word.as_encoded_bytes().starts_with(b"-") => {
            Ok(Command::Play { script: Script::read(&PathBuf::from(word))?, argv: args.collect() })
        }
        Some(_) | None => Err(Error::Usage(format!("nothing to play\n\n{HELP}"))),
    }
}

const OPTIONS: [&str; 8] =
    ["--script", "--capture", "--chunk", "--delay-ms", "--as", "--home", "--pace-ms", "--"];

fn is_own_option(word: &str) -> bool {
    OPTIONS.contains(&word)
}

#[derive(Default)]
struct Own {
    script: Option<PathBuf>,
    capture: Option<PathBuf>,
    chunk: Option<NonZeroUsize>,
    delay_ms: u64,
    agent: Option<Agent>,
    home: Option<PathBuf>,
    pace_ms: Option<u64>,
}

impl Own {
    fn set(&mut self, option: &OsStr, value: OsString) -> Result<(), Error> {
        match option.to_str() {
            Some("--script") => self.script = Some(value.into()),
            Some("--capture") => self.capture = Some(value.into()),
            Some("--chunk") => self.chunk = Some(number(option, &value)?),
            Some("--delay-ms") => self.delay_ms = number(option, &value)?,
            Some("--as") => self.agent = Some(Agent::from_name(&value.to_string_lossy())?),
            Some("--home") => self.home = Some(value.into()),
            Some("--pace-ms") => self.pace_ms = Some(number(option, &value)?),
            _ => {
                return Err(Error::Usage(format!("{} is not an option", option.display())));
            }
        }
        Ok(())
    }

    fn one_step(&self) -> Result<Option<Script>, Error> {
        let step = match (&self.script, &self.capture, self.agent) {
            (Some(_), None, None) | (None, None, None) => return Ok(None),
            (None, Some(case), None) => Step::Capture {
                case: case.clone(),
                chunk_bytes: self.chunk,
                line_delay_ms: self.delay_ms,
            },
            (None, None, Some(name)) => {
                Step::Agent { name, home: self.home.clone(), pace_ms: self.pace_ms }
            }
            _ => {
                let text = "only one of --script, --capture and --as can be played";
                return Err(Error::Usage(text.into()));
            }
        };
        Ok(Some(Script { folder: PathBuf::new(), steps: vec![step] }))
    }
}

pub(super) fn number<T: std::str::FromStr>(name: &OsStr, value: &OsStr) -> Result<T, Error> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        Error::Usage(format!("{} `{}` is not a usable number", name.display(), value.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Command, Error> {
        parse(words.iter().map(OsString::from).collect(), &Environment::default())
    }

    fn played(words: &[&str]) -> (Vec<Step>, Vec<OsString>) {
        match parse_words(words).unwrap() {
            Command::Play { script, argv } => (script.steps, argv),
            Command::Help => panic!("help instead of a script"),
        }
    }

    #[test]
    fn the_arguments_of_the_played_cli_begin_where_the_own_options_end() {
        let (steps, argv) = played(&["--as", "claude", "-p", "--as", "x"]);
        assert_eq!(steps, [Step::Agent { name: Agent::Claude, home: None, pace_ms: None }]);
        assert_eq!(argv, ["-p", "--as", "x"]);
    }

    #[test]
    fn after_two_dashes_nothing_is_an_own_option() {
        let (_, argv) = played(&["--as", "codex", "--", "--pace-ms", "3"]);
        assert_eq!(argv, ["--pace-ms", "3"]);
    }

    #[test]
    fn a_capture_takes_its_chunk_and_its_delay() {
        let (steps, _) = played(&["--capture", "claude/text", "--chunk", "7", "--delay-ms", "2"]);
        let expected = Step::Capture {
            case: "claude/text".into(),
            chunk_bytes: NonZeroUsize::new(7),
            line_delay_ms: 2,
        };
        assert_eq!(steps, [expected]);
    }

    #[test]
    fn wrong_arguments_are_refused_by_name() {
        for (words, part) in [
            (vec!["--chunk", "0", "--capture", "x"], "--chunk `0`"),
            (vec!["--as", "clyde"], "`clyde`"),
            (vec!["--script"], "--script needs a value"),
            (vec!["--as", "codex", "--capture", "x"], "only one of"),
            (vec!["--verbose"], "nothing to play"),
            (vec![], "nothing to play"),
            (vec!["/no/such/script.json"], "/no/such/script.json"),
        ] {
            let message = parse_words(&words).unwrap_err().to_string();
            assert!(message.contains(part), "{words:?}: {message}");
        }
    }

    #[test]
    fn the_script_of_the_environment_leaves_every_argument_to_the_cli() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.json");
        std::fs::write(&path, r#"[{"do":"exit","code":0}]"#).unwrap();
        let environment = Environment { script: Some(path), ..Environment::default() };
        let words = vec![OsString::from("-p"), OsString::from("hello")];
        match parse(words, &environment).unwrap() {
            Command::Play { argv, .. } => assert_eq!(argv, ["-p", "hello"]),
            Command::Help => panic!("help instead of a script"),
        }
    }
}
