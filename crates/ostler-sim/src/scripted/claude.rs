//! Plays Claude Code's print mode: one-shot, or prompt by prompt over
//! `--input-format stream-json`. A prompt given as an argument is taken without
//! looking at standard input, where the real CLI would wait for it.

mod lines;
mod options;
mod serve;

use std::time::{Duration, Instant};

use serde_json::Value;

use self::lines::{Block, Interrupted, Message, Spent, add};
use self::options::{Ask, Input, Open, Options, Output, Refusal};
use self::serve::{Permission, Waiting};
use super::agent::{Agent, Props};
use super::answer::{Answer, answer, pieces};
use super::fault::Faults;
use super::id::Ids;
use super::session::{Session, Sessions};
use super::stage::{Stage, Stream};
use super::{End, Error};

const VERSION: &str = "0.0.0";
const DEFAULT_MODEL: &str = "scripted";
const NO_PROMPT: &str =
    "Error: Input must be provided either through stdin or as a prompt argument when using --print";

pub(super) fn play(props: &Props, stage: &mut Stage<'_>) -> Result<End, Error> {
    match options::parse(&stage.words()) {
        Ok(Ask::Version) => {
            stage.write_line(Stream::Stdout, &format!("{VERSION} (scripted claude)"))?;
            Ok(End::Exit(0))
        }
        Ok(Ask::Help) => {
            stage.write_line(Stream::Stdout, "Usage: claude [options] [prompt]")?;
            Ok(End::Exit(0))
        }
        Ok(Ask::Turn(options)) => start(props, &options, stage),
        Err(refusal) => refuse(&refusal, stage),
    }
}

fn refuse(refusal: &Refusal, stage: &mut Stage<'_>) -> Result<End, Error> {
    stage.write_line(Stream::Stderr, &refusal.0)?;
    Ok(End::Exit(1))
}

fn start(props: &Props, options: &Options, stage: &mut Stage<'_>) -> Result<End, Error> {
    let sessions = Sessions::of(Agent::Claude.name(), &props.home);
    let mut ids = Ids::open()?;
    let session = match open(props, options, &sessions, &mut ids)? {
        Ok(session) => session,
        Err(refusal) => {
            if let (Output::Stream { .. }, Open::Resume { id, .. }) =
                (options.output, &options.open)
            {
                let line = lines::startup_failure(id, &ids.uuid_v4()?, &refusal.0);
                stage.write_line(Stream::Stdout, &line.to_string())?;
            }
            return refuse(&refusal, stage);
        }
    };
    let mut process = Process {
        props,
        options,
        sessions,
        session,
        ids,
        stage,
        shown: Vec::new(),
        n_results: 0,
        asked_by: None,
        waiting: Waiting::default(),
    };
    match &options.input {
        Input::Text(prompt) => process.one_shot(prompt.as_deref()),
        Input::Stream => process.serve(),
    }
}

fn open(
    props: &Props,
    options: &Options,
    sessions: &Sessions,
    ids: &mut Ids,
) -> Result<Result<Session, Refusal>, Error> {
    let mut session = match &options.open {
        Open::New { id } => {
            if let Some(id) = id
                && sessions.load(id)?.is_some()
            {
                return Ok(Err(Refusal(format!("Error: Session ID {id} is already in use."))));
            }
            let id = id.clone().map_or_else(|| ids.uuid_v4(), Ok)?;
            Session::new(id, DEFAULT_MODEL.into(), &props.cwd)
        }
        Open::Resume { id, fork } => {
            let Some(mut session) = sessions.load(id)? else {
                let text = format!("No conversation found with session ID: {id}");
                return Ok(Err(Refusal(text)));
            };
            if let Some(fork) = fork {
                session.id = fork.clone().map_or_else(|| ids.uuid_v4(), Ok)?;
            }
            session
        }
    };
    // The model of a session sticks until another one is asked for.
    if let Some(model) = &options.model {
        session.model.clone_from(model);
    }
    Ok(Ok(session))
}

/// One run of the program: a session and the turns it serves.
struct Process<'a, 'b> {
    props: &'a Props,
    options: &'a Options,
    sessions: Sessions,
    session: Session,
    ids: Ids,
    stage: &'a mut Stage<'b>,
    /// What `--output-format json --verbose` prints as one array at the end.
    shown: Vec<Value>,
    n_results: u64,
    /// The caller's id of the prompt, which its lines repeat.
    asked_by: Option<String>,
    /// What came in while a turn ran.
    waiting: Waiting,
}

/// What kind of line it is, which decides where it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Deltas and states, shown only with partial messages.
    Partial,
    Whole,
    /// A whole line that names the prompt it answers.
    Answer,
    Result,
}

/// Whether a turn goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    On,
    /// Somebody stopped it.
    Cut,
}

impl Process<'_, '_> {
    fn one_shot(&mut self, argument: Option<&str>) -> Result<End, Error> {
        let prompt = match argument {
            Some(prompt) => prompt.to_owned(),
            None => String::from_utf8_lossy(&self.stage.read_to_end()?).into_owned(),
        };
        if prompt.trim().is_empty() {
            return refuse(&Refusal(NO_PROMPT.into()), self.stage);
        }
        self.turn(&prompt)?;
        Ok(End::Exit(0))
    }

    fn turn(&mut self, prompt: &str) -> Result<Flow, Error> {
        let started = Instant::now();
        self.session.prompts.push(prompt.to_owned());
        // A turn that is killed half-way leaves its prompt in the session.
        self.save()?;
        let mode = &self.options.permission_mode;
        let init = lines::init(&self.session, &self.props.cwd, mode, VERSION);
        self.show(Kind::Whole, init)?;
        let answer = answer(Agent::Claude.name(), prompt, self.session.prompts.len());
        let mut spent = Spent { n_calls: 0 };
        let told = self.answer(&answer, &mut spent)?;
        self.session.n_model_calls += spent.n_calls;
        self.save()?;
        match told {
            Ok(text) => {
                let outcome = lines::Outcome::Answered(&text);
                self.result(outcome, spent, started.elapsed())?;
                Ok(Flow::On)
            }
            Err(interrupted) => {
                let outcome = lines::Outcome::Interrupted(interrupted);
                self.result(outcome, spent, started.elapsed())?;
                Ok(Flow::Cut)
            }
        }
    }

    /// Plays the answer and returns its text, or where it was interrupted.
    fn answer(
        &mut self,
        answer: &Answer,
        spent: &mut Spent,
    ) -> Result<Result<String, Interrupted>, Error> {
        answer.faults.begin(self.stage)?;
        if self.beat(answer.faults.delay)? == Flow::Cut {
            self.show(Kind::Whole, lines::interrupted(Interrupted::Streaming))?;
            return Ok(Err(Interrupted::Streaming));
        }
        let mut text = answer.text.clone();
        if let Some(tool) = &answer.tool {
            let id = self.ids.prefixed("toolu_")?;
            if self.message(Block::ToolUse { id: &id, tool }, &answer.faults)? == Flow::Cut {
                return Ok(Err(Interrupted::Streaming));
            }
            spent.n_calls += 1;
            match self.permission(&id, tool)? {
                Permission::Granted => self.show(Kind::Whole, lines::tool_result(&id, tool))?,
                Permission::Denied(why) => {
                    self.show(Kind::Whole, lines::tool_denied(&id, &why))?;
                    text = answer.denied_text();
                }
                Permission::Interrupted => {
                    self.show(Kind::Whole, lines::tool_denied(&id, lines::REJECTED))?;
                    self.show(Kind::Whole, lines::interrupted(Interrupted::Tools))?;
                    return Ok(Err(Interrupted::Tools));
                }
            }
        }
        if self.message(Block::Text(&text), &answer.faults)? == Flow::Cut {
            return Ok(Err(Interrupted::Streaming));
        }
        spent.n_calls += 1;
        Ok(Ok(text))
    }

    /// One answer of the pretended model, which is one block.
    fn message(&mut self, block: Block<'_>, faults: &Faults) -> Result<Flow, Error> {
        let id = self.ids.prefixed("msg_")?;
        let model = self.session.model.clone();
        let message = Message { id: &id, model: &model, block };
        self.show(Kind::Partial, lines::requesting())?;
        self.show(Kind::Partial, message.start())?;
        self.show(Kind::Partial, message.block_start())?;
        let mut told = String::new();
        let mut flow = Flow::On;
        for (n, piece) in pieces(&block.content()).into_iter().enumerate() {
            flow = self.beat(faults.pace(n, self.props.pace))?;
            if flow == Flow::Cut {
                break;
            }
            self.show(Kind::Partial, message.delta(piece))?;
            told.push_str(piece);
            faults.middle()?;
        }
        match flow {
            Flow::On => self.show(Kind::Answer, message.assistant())?,
            Flow::Cut => {
                if matches!(block, Block::Text(_)) && !told.is_empty() {
                    self.show(Kind::Answer, message.aborted(&told))?;
                }
                self.show(Kind::Whole, lines::interrupted(Interrupted::Streaming))?;
            }
        }
        self.show(Kind::Partial, message.block_stop())?;
        self.show(Kind::Partial, message.message_delta())?;
        self.show(Kind::Partial, message.stop())?;
        Ok(flow)
    }

    fn result(
        &mut self,
        outcome: lines::Outcome<'_>,
        spent: Spent,
        took: Duration,
    ) -> Result<(), Error> {
        let total = Spent { n_calls: self.session.n_model_calls };
        let mut line = lines::result(outcome, &self.session.model, spent, total, took);
        add(&mut line, "result_index", self.n_results);
        if matches!(self.options.output, Output::Stream { .. }) {
            let since = spent.by_model(&self.session.model);
            add(&mut line, "model_usage_since_last_result", since);
        }
        self.n_results += 1;
        self.show(Kind::Result, line)?;
        match self.options.output {
            Output::Text => match outcome {
                lines::Outcome::Answered(text) => self.stage.write_line(Stream::Stdout, text),
                lines::Outcome::Interrupted(_) => Ok(()),
            },
            Output::JsonVerbose => {
                let shown = Value::Array(std::mem::take(&mut self.shown));
                self.stage.write_line(Stream::Stdout, &shown.to_string())
            }
            Output::Json | Output::Stream { .. } => Ok(()),
        }
    }

    fn show(&mut self, kind: Kind, mut line: Value) -> Result<(), Error> {
        add(&mut line, "session_id", self.session.id.as_str());
        add(&mut line, "uuid", self.ids.uuid_v4()?);
        if let (Kind::Answer | Kind::Result, Some(uuid)) = (kind, &self.asked_by) {
            add(&mut line, "user_message_uuid", uuid.as_str());
        }
        match (self.options.output, kind) {
            (Output::Stream { partial: true }, _)
            | (Output::Stream { partial: false }, Kind::Whole | Kind::Answer | Kind::Result)
            | (Output::Json, Kind::Result) => {
                self.stage.write_line(Stream::Stdout, &line.to_string())
            }
            (Output::JsonVerbose, Kind::Whole | Kind::Answer | Kind::Result) => {
                self.shown.push(line);
                Ok(())
            }
            (Output::Stream { .. } | Output::JsonVerbose, Kind::Partial)
            | (Output::Json, Kind::Partial | Kind::Whole | Kind::Answer)
            | (Output::Text, _) => Ok(()),
        }
    }

    fn save(&self) -> Result<(), Error> {
        if self.options.persists { self.sessions.save(&self.session) } else { Ok(()) }
    }
}
