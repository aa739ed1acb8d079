//! The scripted agent: a program that takes the place of an agent's CLI.
//!
//! It plays a script (steps that print, wait, fail and misbehave), a capture
//! (what a real CLI once printed, with its exit), or an agent (one of
//! the five, with sessions that persist, for demonstrations without the real
//! CLIs). The
//! last two are scripts of one step, so they can also stand at the end of a
//! longer script.
//!
//! Everything is single-threaded, and blocking but for the server that is
//! played: the program starts in about a millisecond, which makes it the
//! baseline of the benchmarks, and it may fork without surprises. [`main`] must
//! therefore be called before any other thread exists.
//!
//! It knows nothing of Ostler's own types: a mistake there must not be
//! repeated here unseen.

mod agent;
mod answer;
mod capture;
mod claude;
mod clock;
mod codex;
mod command;
mod fault;
mod flags;
mod gemini;
mod given;
mod id;
mod inbox;
mod noise;
mod opencode;
mod os;
mod pi;
mod play;
mod report;
mod script;
mod session;
mod signal;
mod stage;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use command::{Command, Environment};
use stage::Stage;

/// Plays what the arguments ask for and returns how the program ends.
///
/// `args` are the arguments after the program's name (and after the subcommand,
/// where there is one). A script that ends by a signal does not return.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match run(args.into_iter().collect(), &environment()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // When standard error is gone as well there is nobody left to tell;
            // the exit code still says it.
            drop(writeln!(io::stderr(), "scripted agent: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

/// The text of an executable file that plays `steps`, a JSON list.
///
/// `interpreter` is what the kernel runs: the absolute path of the program,
/// with one space and `scripted` behind it where that is a subcommand. No
/// shell is involved, so such a file starts as fast as the program itself, and
/// the agent's own arguments reach the script's `report` step unchanged.
pub fn executable(interpreter: &str, steps: &serde_json::Value) -> String {
    format!("#!{interpreter}\n{steps}\n")
}

/// How a script ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exit(u8),
    Signal(signal::Signal),
}

/// Why the scripted agent could not play. What a script *wants* to go wrong is
/// an [`End`], not an error.
#[derive(Debug)]
enum Error {
    /// The arguments or the script make no sense.
    Usage(String),
    /// The operating system said no while playing.
    Io { what: String, source: io::Error },
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    fn file(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("could not {verb} {}", path.display()))
    }

    /// 2 for usage as everywhere; 74 is the conventional code for I/O errors
    /// and none that a CLI under test uses.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Io { .. } => 74,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => formatter.write_str(text),
            Self::Io { what, source } => write!(formatter, "{what}: {source}"),
        }
    }
}

fn run(args: Vec<OsString>, environment: &Environment) -> Result<u8, Error> {
    let stdout = stage::unbuffered(io::stdout()).map_err(Error::io("could not open stdout"))?;
    let stderr = stage::unbuffered(io::stderr()).map_err(Error::io("could not open stderr"))?;
    let mut stage = Stage {
        stdin: inbox::Inbox::new(os::Stdin::default()),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
        argv: Vec::new(),
    };
    let end = match command::parse(args, environment)? {
        Command::Help => {
            stage.write(stage::Stream::Stdout, command::HELP.as_bytes())?;
            End::Exit(0)
        }
        Command::Play { script, argv } => {
            stage.argv = argv;
            play::script(&script, environment, &mut stage)?
        }
    };
    match end {
        End::Exit(code) => Ok(code),
        End::Signal(signal) => {
            Err(Error::Io { what: format!("could not die by {signal}"), source: os::die(signal) })
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the scripted agent is a program of its own, with its own settings"
)]
fn environment() -> Environment {
    Environment {
        script: std::env::var_os("OSTLER_SCRIPT").map(PathBuf::from),
        scripted_home: std::env::var_os("OSTLER_SCRIPTED_HOME").map(PathBuf::from),
        home: std::env::var_os("HOME").map(PathBuf::from),
        pace_ms: std::env::var_os("OSTLER_SCRIPTED_PACE_MS"),
    }
}
