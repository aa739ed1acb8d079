//! Plays `opencode run`, with `--format json` or without, and `opencode serve`.

mod serve;

use std::path::PathBuf;

use serde_json::{Value, json};

use super::agent::{Agent, Props, StdinKind};
use super::answer::{Answer, Tool};
use super::flags::{Flag, Takes, flag};
use super::given::Given;
use super::id::Ids;
use super::session::{Session, Sessions};
use super::stage::{Stage, Stream};
use super::{End, Error, clock, os};

const VERSION: &str = "0.0.0 (scripted opencode)";
const DEFAULT_MODEL: &str = "scripted/scripted";
/// Of the scripted agent only: under which names a server tells what happens.
const SPEECH: &str = "--scripted-events";
const USAGE: &str = "opencode run [message..]";

const FLAGS: &[Flag] = &[
    flag(&["--version", "-v"], Takes::Nothing),
    flag(&["--help", "-h"], Takes::Nothing),
    flag(&["--format"], Takes::One),
    flag(&["--model", "-m"], Takes::One),
    flag(&["--variant"], Takes::One),
    flag(&["--session", "-s"], Takes::One),
    flag(&["--continue", "-c"], Takes::Nothing),
    flag(&["--fork"], Takes::Nothing),
    flag(&["--agent"], Takes::One),
    flag(&["--title"], Takes::One),
    flag(&["--dir"], Takes::One),
    flag(&["--file", "-f"], Takes::Many),
    flag(&["--command"], Takes::One),
    flag(&["--log-level"], Takes::One),
    flag(&["--port"], Takes::One),
    flag(&["--hostname"], Takes::One),
    flag(&[SPEECH], Takes::One),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Text,
    Json,
}

pub(super) use serve::is_word;

pub(super) fn play(props: &Props, stage: &mut Stage<'_>) -> Result<End, Error> {
    let Ok(given) = Given::read(FLAGS, &stage.words()) else {
        return refuse(USAGE, stage);
    };
    for (name, text) in [("--version", VERSION), ("--help", USAGE)] {
        if given.has(name) {
            stage.write_line(Stream::Stdout, text)?;
            return Ok(End::Exit(0));
        }
    }
    let words = match given.words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some(("run", words)) => words,
        Some(("serve", [])) => return serve::serve(&given, props, stage),
        Some(_) | None => {
            let text = "The scripted agent plays `opencode run` and `opencode serve` only.";
            return refuse(text, stage);
        }
    };
    let output = match given.value("--format") {
        None | Some("default") => Output::Text,
        Some("json") => Output::Json,
        Some(_) => return refuse(USAGE, stage),
    };
    let prompt = read_prompt(words, props.stdin, stage)?;
    if prompt.trim().is_empty() {
        return refuse(&error("You must provide a message or a command"), stage);
    }
    let sessions = Sessions::of(Agent::OpenCode.name(), &props.home);
    let mut ids = Ids::open()?;
    let Some(mut session) = open(&given, props, &sessions, &mut ids)? else {
        return refuse(&error("Session not found"), stage);
    };
    let answer = session.ask(Agent::OpenCode.name(), &prompt);
    // A turn that is killed half-way leaves its prompt in the session.
    sessions.save(&session)?;
    answer.faults.begin_deaf(stage)?;
    answer.faults.middle()?;
    match output {
        Output::Text => stage.write_line(Stream::Stdout, &answer.text)?,
        Output::Json => Voice { session: &session, ids, stage }.answer(&answer, props)?,
    }
    Ok(End::Exit(0))
}

fn refuse(text: &str, stage: &mut Stage<'_>) -> Result<End, Error> {
    stage.write_line(Stream::Stderr, text)?;
    Ok(End::Exit(1))
}

/// Errors have colours even where nobody can see them.
fn error(text: &str) -> String {
    format!("\u{1b}[91m\u{1b}[1mError: \u{1b}[0m{text}")
}

/// Words that hold a space are sent in quotes; standard input follows as it is.
fn read_prompt(words: &[String], stdin: StdinKind, stage: &mut Stage<'_>) -> Result<String, Error> {
    let quoted = words.iter().map(|word| {
        if word.contains(' ') { format!("\"{}\"", word.replace('"', "\\\"")) } else { word.clone() }
    });
    let argument = quoted.collect::<Vec<_>>().join(" ");
    let input = match stdin {
        StdinKind::Terminal => String::new(),
        StdinKind::Other => String::from_utf8_lossy(&stage.read_to_end()?).into_owned(),
    };
    Ok(match (argument.is_empty(), input.is_empty()) {
        (true, _) => input,
        (false, true) => argument,
        (false, false) => format!("{argument}\n{input}"),
    })
}

fn open(
    given: &Given,
    props: &Props,
    sessions: &Sessions,
    ids: &mut Ids,
) -> Result<Option<Session>, Error> {
    let cwd = given.value("--dir").map_or_else(|| props.cwd.clone(), PathBuf::from);
    let model = given.value("--model").unwrap_or(DEFAULT_MODEL).to_owned();
    let Some(id) = given.value("--session") else {
        return Ok(Some(Session::new(ids.prefixed("ses_")?, model, &cwd)));
    };
    let Some(mut session) = sessions.load(id)? else {
        return Ok(None);
    };
    session.model = model;
    if given.has("--fork") {
        session.id = ids.prefixed("ses_")?;
    }
    Ok(Some(session))
}

/// Tells of a turn, step by step; every line names the session.
struct Voice<'a, 'b> {
    session: &'a Session,
    ids: Ids,
    stage: &'a mut Stage<'b>,
}

impl Voice<'_, '_> {
    fn answer(&mut self, answer: &Answer, props: &Props) -> Result<(), Error> {
        if let Some(tool) = &answer.tool {
            let message = self.ids.prefixed("msg_")?;
            self.step_start(&message)?;
            os::wait(props.pace);
            self.tool(&message, tool)?;
            self.step_finish(&message, "tool-calls")?;
        }
        let message = self.ids.prefixed("msg_")?;
        self.step_start(&message)?;
        os::wait(props.pace);
        let now = clock::now_ms();
        let part = json!({
            "type": "text", "text": answer.text, "time": { "start": now, "end": now },
        });
        self.say("text", &message, part)?;
        self.step_finish(&message, "stop")
    }

    fn step_start(&mut self, message: &str) -> Result<(), Error> {
        self.say("step_start", message, json!({ "type": "step-start" }))
    }

    fn tool(&mut self, message: &str, tool: &Tool) -> Result<(), Error> {
        let now = clock::now_ms();
        let output = format!("{}\n", tool.output);
        let part = json!({
            "type": "tool", "tool": "bash", "callID": self.ids.prefixed("call_")?,
            "state": {
                "status": "completed",
                "input": { "command": tool.command, "description": tool.description },
                "output": output,
                "metadata": { "output": output, "exit": 0, "truncated": false },
                "title": tool.command,
                "time": { "start": now, "end": now },
            },
        });
        self.say("tool_use", message, part)
    }

    /// The numbers are made up, but the same for every pretended model call.
    fn step_finish(&mut self, message: &str, reason: &str) -> Result<(), Error> {
        let part = json!({
            "type": "step-finish", "reason": reason, "cost": 0.00129,
            "tokens": {
                "total": 1128, "input": 200, "output": 20, "reasoning": 8,
                "cache": { "write": 0, "read": 900 },
            },
        });
        self.say("step_finish", message, part)
    }

    fn say(&mut self, kind: &str, message: &str, mut part: Value) -> Result<(), Error> {
        if let Value::Object(fields) = &mut part {
            fields.insert("id".into(), self.ids.prefixed("prt_")?.into());
            fields.insert("messageID".into(), message.into());
            fields.insert("sessionID".into(), self.session.id.as_str().into());
        }
        let line = json!({
            "type": kind, "timestamp": clock::now_ms(), "sessionID": self.session.id,
            "part": part,
        });
        self.stage.write_line(Stream::Stdout, &line.to_string())
    }
}
