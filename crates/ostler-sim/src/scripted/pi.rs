//! Plays Pi: its one-shot modes, `text` and `json`, and `rpc`, in which it is
//! kept for many prompts.

mod lines;
mod rpc;
mod voice;

use std::path::Path;

use self::voice::Voice;
use super::agent::{Agent, Props};
use super::flags::{Flag, Takes, flag};
use super::given::Given;
use super::id::{Ids, is_plain};
use super::session::{Session, Sessions};
use super::stage::{Stage, Stream};
use super::{End, Error};

const VERSION: &str = "0.0.0 (scripted pi)";
const DEFAULT_MODEL: &str = "scripted";
const USAGE: &str = "Usage: pi [options] [@files...] [messages...]";

const FLAGS: &[Flag] = &[
    flag(&["--version", "-v"], Takes::Nothing),
    flag(&["--help", "-h"], Takes::Nothing),
    flag(&["--print", "-p"], Takes::Nothing),
    flag(&["--continue", "-c"], Takes::Nothing),
    flag(&["--no-session"], Takes::Nothing),
    flag(&["--mode"], Takes::One),
    flag(&["--provider"], Takes::One),
    flag(&["--model"], Takes::One),
    flag(&["--models"], Takes::One),
    flag(&["--api-key"], Takes::One),
    flag(&["--thinking"], Takes::One),
    flag(&["--session"], Takes::One),
    flag(&["--session-id"], Takes::One),
    flag(&["--session-dir"], Takes::One),
    flag(&["--fork"], Takes::One),
    flag(&["--name", "-n"], Takes::One),
    flag(&["--tools", "-t"], Takes::One),
    flag(&["--exclude-tools", "-xt"], Takes::One),
    flag(&["--system-prompt"], Takes::One),
    flag(&["--append-system-prompt"], Takes::One),
    flag(&["--extension", "-e"], Takes::One),
    flag(&["--skill"], Takes::One),
    flag(&["--prompt-template"], Takes::One),
    flag(&["--theme"], Takes::One),
];

/// How it ends without a turn: a text for stderr and the exit code.
struct Refusal {
    text: String,
    exit: u8,
}

impl Refusal {
    fn failed(text: impl Into<String>) -> Self {
        Self { text: format!("{}\n", text.into()), exit: 1 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Text,
    Json,
    Rpc,
}

/// A session, and what the CLI remarks when it opens it.
struct Opened {
    session: Session,
    warning: Option<String>,
}

pub(super) fn play(props: &Props, stage: &mut Stage<'_>) -> Result<End, Error> {
    let given = match Given::read(FLAGS, &stage.words()) {
        Ok(given) => given,
        Err(name) => {
            return refuse(&Refusal::failed(format!("Error: {name} needs a value")), stage);
        }
    };
    // Help is on stderr, so that nothing takes it for an answer.
    for (name, text, stream) in
        [("--version", VERSION, Stream::Stdout), ("--help", USAGE, Stream::Stderr)]
    {
        if given.has(name) {
            stage.write_line(stream, text)?;
            return Ok(End::Exit(0));
        }
    }
    let output = match given.value("--mode") {
        None | Some("text") => Output::Text,
        Some("json") => Output::Json,
        Some("rpc") => Output::Rpc,
        Some(other) => {
            let text = format!("Error: the scripted agent does not play `--mode {other}`.");
            return refuse(&Refusal::failed(text), stage);
        }
    };
    let sessions = Sessions::of(Agent::Pi.name(), &props.home);
    let Opened { mut session, warning } = match open(&given, &sessions, &props.cwd)? {
        Ok(opened) => opened,
        Err(refusal) => return refuse(&refusal, stage),
    };
    if let Some(warning) = warning {
        stage.write_line(Stream::Stderr, &warning)?;
    }
    let mut voice = Voice {
        output,
        props,
        provider: provider(&given),
        ids: Ids::open()?,
        stage,
        sessions: (!given.has("--no-session")).then_some(sessions),
        waiting: rpc::Waiting::default(),
    };
    if output == Output::Rpc {
        return voice.serve(session);
    }
    // Standard input is trimmed and put before the first argument as it is.
    let input = String::from_utf8_lossy(&voice.stage.read_to_end()?).trim().to_owned();
    let prompt = format!("{input}{}", given.words.join(" "));
    voice.say(&lines::session(&session))?;
    // Nothing to do is no error.
    if prompt.is_empty() {
        return Ok(End::Exit(0));
    }
    let text = voice.turn(&mut session, &prompt)?;
    if output == Output::Text {
        voice.stage.write_line(Stream::Stdout, &text)?;
    }
    Ok(End::Exit(0))
}

fn refuse(refusal: &Refusal, stage: &mut Stage<'_>) -> Result<End, Error> {
    stage.write(Stream::Stderr, refusal.text.as_bytes())?;
    Ok(End::Exit(refusal.exit))
}

/// A session belongs to its folder. `--session` wants one that exists;
/// `--session-id` makes the one that it does not find.
fn open(given: &Given, sessions: &Sessions, cwd: &Path) -> Result<Result<Opened, Refusal>, Error> {
    let model = given.value("--model").unwrap_or(DEFAULT_MODEL);
    let model = model.rsplit('/').next().unwrap_or(model).to_owned();
    if let Some(id) = given.value("--session") {
        return Ok(match sessions.load(id)? {
            Some(session) if session.cwd == cwd => {
                Ok(Opened { session: Session { model, ..session }, warning: None })
            }
            // It asks, and nobody answers: that is a no, and no error.
            Some(session) => Err(Refusal {
                text: format!(
                    "Session found in different project: {}\nFork this session into current \
                     directory? [y/N] ",
                    session.cwd.display()
                ),
                exit: 0,
            }),
            None => Err(Refusal::failed(format!("No session found matching '{id}'"))),
        });
    }
    let Some(id) = given.value("--session-id") else {
        let session = Session::new(Ids::open()?.uuid_v7()?, model, cwd);
        return Ok(Ok(Opened { session, warning: None }));
    };
    if !is_plain(id) {
        return Ok(Err(Refusal::failed(
            "Error: Session id must be non-empty, contain only alphanumeric characters, '-', '_', \
             and '.', and start and end with an alphanumeric character",
        )));
    }
    Ok(Ok(match sessions.load(id)?.filter(|session| session.cwd == cwd) {
        Some(session) => Opened { session: Session { model, ..session }, warning: None },
        None => Opened {
            session: Session::new(id.to_owned(), model, cwd),
            warning: Some(format!(
                "Warning: No project session found with id '{id}'; creating a new session with \
                 that id."
            )),
        },
    }))
}

fn provider(given: &Given) -> String {
    let of_model = given.value("--model").and_then(|model| model.split_once('/'));
    let named = given.value("--provider").or(of_model.map(|(provider, _)| provider));
    named.unwrap_or("scripted").to_owned()
}
