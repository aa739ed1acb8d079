//! Plays Pi's one-shot modes, `text` and `json`.

mod lines;

use std::path::Path;

use serde_json::Value;

use self::lines::{Assistant, Block};
use super::agent::{Agent, Props};
use super::answer::{Answer, pieces};
use super::flags::{Flag, Takes, flag};
use super::given::Given;
use super::id::{Ids, is_plain};
use super::session::{Session, Sessions};
use super::stage::{Stage, Stream};
use super::{End, Error, os};

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
        Some(other) => {
            let text = format!("Error: the scripted agent does not play `--mode {other}`.");
            return refuse(&Refusal::failed(text), stage);
        }
    };
    let sessions = Sessions::of(Agent::Pi.name(), &props.home);
    let Opened { session, warning } = match open(&given, &sessions, &props.cwd)? {
        Ok(opened) => opened,
        Err(refusal) => return refuse(&refusal, stage),
    };
    if let Some(warning) = warning {
        stage.write_line(Stream::Stderr, &warning)?;
    }
    // Standard input is trimmed and put before the first argument as it is.
    let input = String::from_utf8_lossy(&stage.read_to_end()?).trim().to_owned();
    let prompt = format!("{input}{}", given.words.join(" "));
    let mut voice = Voice { output, props, provider: provider(&given), ids: Ids::open()?, stage };
    voice.say(&lines::session(&session))?;
    // Nothing to do is no error.
    if prompt.is_empty() {
        return Ok(End::Exit(0));
    }
    voice.turn(&given, &sessions, session, &prompt)
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

/// Tells of the turn, as events or only with the answer at its end.
struct Voice<'a, 'b> {
    output: Output,
    props: &'a Props,
    provider: String,
    ids: Ids,
    stage: &'a mut Stage<'b>,
}

impl Voice<'_, '_> {
    fn turn(
        &mut self,
        given: &Given,
        sessions: &Sessions,
        mut session: Session,
        prompt: &str,
    ) -> Result<End, Error> {
        let is_new = session.prompts.is_empty();
        let answer = session.ask(Agent::Pi.name(), prompt);
        // A turn that is killed half-way leaves its prompt in the session.
        if !given.has("--no-session") {
            sessions.save(&session)?;
        }
        self.say(&lines::of("agent_start"))?;
        self.say(&lines::of("turn_start"))?;
        let mut messages = Vec::new();
        if is_new {
            self.whole(lines::system(&session), &mut messages)?;
        }
        self.whole(lines::user(prompt), &mut messages)?;
        self.answer(&session, &answer, &mut messages)?;
        self.say(&lines::agent_end(&messages))?;
        self.say(&lines::of("agent_settled"))?;
        if self.output == Output::Text {
            self.stage.write_line(Stream::Stdout, &answer.text)?;
        }
        Ok(End::Exit(0))
    }

    fn answer(
        &mut self,
        session: &Session,
        answer: &Answer,
        messages: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let provider = self.provider.clone();
        let (model, provider) = (session.model.as_str(), provider.as_str());
        if let Some(tool) = &answer.tool {
            let id = self.ids.prefixed("call_")?;
            let called = Assistant { model, provider, block: Block::Tool { id: &id, tool } };
            self.message(&called, messages)?;
            for line in lines::tool_execution(&id, tool) {
                os::wait(self.props.pace);
                self.say(&line)?;
            }
            let result = lines::tool_result(&id, tool);
            self.whole(result.clone(), messages)?;
            self.say(&lines::turn_end(&called.whole(), &[result]))?;
            self.say(&lines::of("turn_start"))?;
        }
        let said = Assistant { model, provider, block: Block::Text(&answer.text) };
        self.message(&said, messages)?;
        self.say(&lines::turn_end(&said.whole(), &[]))
    }

    fn message(&mut self, message: &Assistant<'_>, messages: &mut Vec<Value>) -> Result<(), Error> {
        self.say(&lines::message("message_start", &message.begun()))?;
        self.say(&message.start())?;
        for piece in pieces(&message.content()) {
            os::wait(self.props.pace);
            self.say(&message.delta(piece))?;
        }
        self.say(&message.end())?;
        let whole = message.whole();
        self.say(&lines::message("message_end", &whole))?;
        messages.push(whole);
        Ok(())
    }

    /// A message that is not streamed has its start and its end all the same.
    fn whole(&mut self, message: Value, messages: &mut Vec<Value>) -> Result<(), Error> {
        self.say(&lines::message("message_start", &message))?;
        self.say(&lines::message("message_end", &message))?;
        messages.push(message);
        Ok(())
    }

    fn say(&mut self, line: &Value) -> Result<(), Error> {
        match self.output {
            Output::Json => self.stage.write_line(Stream::Stdout, &line.to_string()),
            Output::Text => Ok(()),
        }
    }
}
