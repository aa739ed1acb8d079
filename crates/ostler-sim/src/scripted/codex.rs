//! Plays `codex exec`, with and without `--json`, new and resumed. `server` plays
//! `codex app-server`.

mod event;
mod options;
mod server;

use std::path::Path;

use self::event::{Event, Item, Status, Usage};
use self::options::{Ask, Options, Output, Refusal};
use self::server::Server;
use super::agent::{Agent, Props, StdinKind};
use super::answer::{Answer, Tool, answer};
use super::id::{Ids, is_uuid};
use super::session::{Session, Sessions};
use super::stage::{Stage, Stream};
use super::{End, Error, os};

const VERSION: &str = "0.0.0";
const DEFAULT_MODEL: &str = "scripted";
const MAX_PROMPT_CHARS: usize = 1_048_576;

pub(super) fn play(props: &Props, stage: &mut Stage<'_>) -> Result<End, Error> {
    match options::parse(&stage.words()) {
        Ok(Ask::Version) => {
            stage.write_line(Stream::Stdout, &format!("codex-cli {VERSION} (scripted codex)"))?;
            Ok(End::Exit(0))
        }
        Ok(Ask::Help) => {
            stage.write_line(Stream::Stdout, options::USAGE)?;
            Ok(End::Exit(0))
        }
        Ok(Ask::Server) => Server::new(props, stage)?.serve(),
        Ok(Ask::Turn(options)) => turn(props, &options, stage),
        Err(refusal) => refuse(&refusal, stage),
    }
}

fn refuse(refusal: &Refusal, stage: &mut Stage<'_>) -> Result<End, Error> {
    stage.write_line(Stream::Stderr, &refusal.text)?;
    Ok(End::Exit(refusal.exit))
}

fn turn(props: &Props, options: &Options, stage: &mut Stage<'_>) -> Result<End, Error> {
    let cwd = match &options.cd {
        Some(folder) => props.cwd.join(folder),
        None => props.cwd.clone(),
    };
    if !cwd.is_dir() {
        return refuse(&Refusal::failed("Error: No such file or directory (os error 2)"), stage);
    }
    let prompt = match read_prompt(options, props.stdin, stage)? {
        Ok(prompt) => prompt,
        Err(refusal) => return refuse(&refusal, stage),
    };
    let sessions = Sessions::of(Agent::Codex.name(), &props.home);
    let mut session = match open(options, &sessions, &cwd)? {
        Ok(session) => session,
        Err(refusal) => return refuse(&refusal, stage),
    };
    let mut voice = Voice { options, stage };
    voice.say(&Event::ThreadStarted { thread_id: &session.id })?;
    let n_chars = prompt.chars().count();
    if n_chars > MAX_PROMPT_CHARS {
        return refuse(&Refusal::too_long(MAX_PROMPT_CHARS, n_chars), stage);
    }
    session.prompts.push(prompt.clone());
    if !options.ephemeral {
        // A turn that is killed half-way leaves its prompt in the session.
        sessions.save(&session)?;
    }
    let answer = answer(Agent::Codex.name(), &prompt, session.prompts.len());
    session.n_model_calls += answer.n_model_calls();
    if options.output == Output::Text {
        voice.header(&cwd, &session, &prompt)?;
    }
    answer.faults.begin_deaf(voice.stage)?;
    answer.faults.middle()?;
    voice.answer(&answer, props)?;
    if !options.ephemeral {
        sessions.save(&session)?;
    }
    let usage = Usage::of(session.n_model_calls);
    voice.say(&Event::TurnCompleted { usage })?;
    if options.output == Output::Text {
        voice.note(&format!("tokens used\n{}", usage.total()))?;
        stage.write_line(Stream::Stdout, &answer.text)?;
    }
    if let Some(path) = &options.last_message {
        std::fs::write(path, &answer.text).map_err(Error::file("write", path))?;
    }
    Ok(End::Exit(0))
}

/// A session by the id that was asked for. A name that is no UUID silently
/// begins a new one: that is what the real CLI does.
fn open(
    options: &Options,
    sessions: &Sessions,
    cwd: &Path,
) -> Result<Result<Session, Refusal>, Error> {
    let model = options.model.as_deref().unwrap_or(DEFAULT_MODEL).to_owned();
    match &options.resume {
        Some(id) if is_uuid(id) => Ok(match sessions.load(id)? {
            Some(session) => Ok(Session { model, cwd: cwd.to_path_buf(), ..session }),
            None => Err(Refusal::unknown_thread(id)),
        }),
        Some(_) | None => Ok(Ok(Session::new(Ids::open()?.uuid_v7()?, model, cwd))),
    }
}

fn read_prompt(
    options: &Options,
    stdin: StdinKind,
    stage: &mut Stage<'_>,
) -> Result<Result<String, Refusal>, Error> {
    let (prompt, blank_is_fine) = match options.prompt.as_deref() {
        Some("-") => (read_text(stage)?, false),
        None => {
            stage.write_line(Stream::Stderr, "Reading prompt from stdin...")?;
            (read_text(stage)?, false)
        }
        Some(prompt) if options.resume.is_some() || stdin == StdinKind::Terminal => {
            (Ok(prompt.to_owned()), true)
        }
        Some(prompt) => {
            stage.write_line(Stream::Stderr, "Reading additional input from stdin...")?;
            let more = read_text(stage)?;
            (more.map(|more| with_stdin(prompt, &more)), true)
        }
    };
    Ok(match prompt {
        Ok(prompt) if prompt.trim().is_empty() && !blank_is_fine => {
            Err(Refusal::failed("No prompt provided via stdin."))
        }
        prompt => prompt,
    })
}

fn read_text(stage: &mut Stage<'_>) -> Result<Result<String, Refusal>, Error> {
    let bytes = stage.read_to_end()?;
    Ok(String::from_utf8(bytes)
        .map_err(|error| Refusal::not_utf8(error.utf8_error().valid_up_to())))
}

fn with_stdin(prompt: &str, more: &str) -> String {
    if more.trim().is_empty() {
        return prompt.to_owned();
    }
    let newline = if more.ends_with('\n') { "" } else { "\n" };
    format!("{prompt}\n\n<stdin>\n{more}{newline}</stdin>")
}

/// Tells of the turn: as events on stdout, or in prose on stderr.
struct Voice<'a, 'b> {
    options: &'a Options,
    stage: &'a mut Stage<'b>,
}

impl Voice<'_, '_> {
    fn say(&mut self, event: &Event<'_>) -> Result<(), Error> {
        match self.options.output {
            Output::Json => self.stage.write_line(Stream::Stdout, &event.line()),
            Output::Text => Ok(()),
        }
    }

    fn note(&mut self, text: &str) -> Result<(), Error> {
        match self.options.output {
            Output::Json => Ok(()),
            Output::Text => self.stage.write_line(Stream::Stderr, text),
        }
    }

    fn header(&mut self, cwd: &Path, session: &Session, prompt: &str) -> Result<(), Error> {
        self.note(&format!(
            "OpenAI Codex v{VERSION} (scripted)\n--------\nworkdir: {}\nmodel: {}\n\
             session id: {}\n--------\nuser\n{prompt}",
            cwd.display(),
            session.model,
            session.id,
        ))
    }

    fn answer(&mut self, answer: &Answer, props: &Props) -> Result<(), Error> {
        self.say(&Event::TurnStarted {})?;
        let text_id = match &answer.tool {
            Some(tool) => {
                self.tool(tool, props)?;
                "item_1"
            }
            None => "item_0",
        };
        os::wait(props.pace);
        let item = Item::AgentMessage { id: text_id, text: &answer.text };
        self.say(&Event::ItemCompleted { item })?;
        self.note(&format!("codex\n{}", answer.text))
    }

    fn tool(&mut self, tool: &Tool, props: &Props) -> Result<(), Error> {
        let command = format!("/bin/bash -lc '{}'", tool.command);
        let output = format!("{}\n", tool.output);
        let item = |status, output, exit_code| Item::CommandExecution {
            id: "item_0",
            command: &command,
            aggregated_output: output,
            exit_code,
            status,
        };
        os::wait(props.pace);
        self.say(&Event::ItemStarted { item: item(Status::InProgress, "", None) })?;
        os::wait(props.pace);
        self.say(&Event::ItemCompleted { item: item(Status::Completed, &output, Some(0)) })?;
        self.note(&format!(
            "exec\n{command} in {}\n succeeded in 0ms:\n{output}",
            props.cwd.display()
        ))
    }
}
