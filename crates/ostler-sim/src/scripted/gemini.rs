//! Plays Gemini CLI's headless mode, in its three formats. `acp` plays the process
//! that is kept.

mod acp;
mod lines;

use std::path::Path;

use self::acp::Server;
use self::lines::{Lines, Stats};
use super::agent::{Agent, Props};
use super::answer::{Answer, pieces};
use super::flags::{Flag, Takes, flag};
use super::given::Given;
use super::id::Ids;
use super::session::{Session, Sessions};
use super::stage::{Stage, Stream};
use super::{End, Error, clock, os};

const VERSION: &str = "0.0.0 (scripted gemini)";
const DEFAULT_MODEL: &str = "auto";
const USAGE: &str = "Usage: gemini [options] [command]";
const NO_PROMPT: &str = "No input provided via stdin. Input can be provided by piping data into \
    gemini or using the --prompt option.";

const FLAGS: &[Flag] = &[
    flag(&["--version", "-v"], Takes::Nothing),
    flag(&["--help", "-h"], Takes::Nothing),
    flag(&["--prompt", "-p"], Takes::One),
    flag(&["--output-format", "-o"], Takes::One),
    flag(&["--model", "-m"], Takes::One),
    flag(&["--session-id"], Takes::One),
    flag(&["--resume", "-r"], Takes::Optional),
    flag(&["--approval-mode"], Takes::One),
    flag(&["--policy"], Takes::One),
    flag(&["--admin-policy"], Takes::One),
    flag(&["--include-directories"], Takes::One),
    flag(&["--allowed-tools"], Takes::One),
    flag(&["--allowed-mcp-server-names"], Takes::One),
    flag(&["--extensions", "-e"], Takes::One),
    flag(&["--acp", "--experimental-acp"], Takes::Nothing),
];

/// How it ends without a turn: a line for stderr and the exit code.
struct Refusal {
    text: String,
    exit: u8,
}

impl Refusal {
    /// The code for input that makes no sense, a session among it.
    fn input(text: impl Into<String>) -> Self {
        Self { text: text.into(), exit: 42 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Text,
    Json,
    Stream,
}

pub(super) fn play(props: &Props, stage: &mut Stage<'_>) -> Result<End, Error> {
    let given = match Given::read(FLAGS, &stage.words()) {
        Ok(given) => given,
        Err(name) => {
            let text = format!("Not enough arguments following: {}", name.trim_start_matches('-'));
            return refuse(&Refusal { text, exit: 1 }, stage);
        }
    };
    for (name, text) in [("--version", VERSION), ("--help", USAGE)] {
        if given.has(name) {
            stage.write_line(Stream::Stdout, text)?;
            return Ok(End::Exit(0));
        }
    }
    if given.has("--acp") {
        return Server::new(&given, props, stage)?.serve();
    }
    let output = match given.value("--output-format") {
        None | Some("text") => Output::Text,
        Some("json") => Output::Json,
        Some("stream-json") => Output::Stream,
        Some(other) => {
            let text =
                format!("{USAGE}\n\nInvalid values:\n  Argument: output-format, Given: {other:?}");
            return refuse(&Refusal { text, exit: 1 }, stage);
        }
    };
    let sessions = Sessions::of(Agent::Gemini.name(), &props.home);
    let session = match open(&given, &sessions, &props.cwd)? {
        Ok(session) => session,
        Err(refusal) => return refuse(&refusal, stage),
    };
    let prompt = read_prompt(&given, stage)?;
    if prompt.is_empty() {
        return refuse(&Refusal::input(NO_PROMPT), stage);
    }
    turn(props, output, &sessions, session, &prompt, stage)
}

fn refuse(refusal: &Refusal, stage: &mut Stage<'_>) -> Result<End, Error> {
    stage.write_line(Stream::Stderr, &refusal.text)?;
    Ok(End::Exit(refusal.exit))
}

/// Sessions belong to the folder in which they began.
fn open(given: &Given, sessions: &Sessions, cwd: &Path) -> Result<Result<Session, Refusal>, Error> {
    let model = given.value("--model").unwrap_or(DEFAULT_MODEL).to_owned();
    if let Some(id) = given.value("--resume") {
        return Ok(match sessions.load(id)? {
            Some(session) if session.cwd == cwd => Ok(Session { model, ..session }),
            Some(_) | None if !sessions.any_in(cwd)? => Err(Refusal::input(
                "Error resuming session: No previous sessions found for this project.",
            )),
            Some(_) | None => Err(Refusal::input(format!(
                "Error resuming session: Invalid session identifier \"{id}\".\n  Use \
                 --list-sessions to see available sessions, then use --resume {{number}}, --resume \
                 {{uuid}}, or --resume latest."
            ))),
        });
    }
    let Some(id) = given.value("--session-id") else {
        return Ok(Ok(Session::new(Ids::open()?.uuid_v4()?, model, cwd)));
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !id.bytes().all(is_allowed) {
        let text = format!(
            "Invalid session ID \"{id}\": Only alphanumeric characters, dashes, and underscores \
             are allowed.\n{USAGE}"
        );
        return Ok(Err(Refusal { text, exit: 1 }));
    }
    if sessions.load(id)?.is_some_and(|session| session.cwd == cwd) {
        return Ok(Err(Refusal::input(format!(
            "Error starting session: Session ID \"{id}\" already exists. Use --resume to resume \
             it, or provide a different ID."
        ))));
    }
    Ok(Ok(Session::new(id.to_owned(), model, cwd)))
}

/// Standard input comes first, then what was given as an argument.
fn read_prompt(given: &Given, stage: &mut Stage<'_>) -> Result<String, Error> {
    let argument = match given.value("--prompt") {
        Some(prompt) => prompt.to_owned(),
        None => given.words.join(" "),
    };
    let input = String::from_utf8_lossy(&stage.read_to_end()?).into_owned();
    Ok(match (input.is_empty(), argument.is_empty()) {
        (true, _) => argument,
        (false, true) => input,
        (false, false) => format!("{input}\n\n{argument}"),
    })
}

fn turn(
    props: &Props,
    output: Output,
    sessions: &Sessions,
    mut session: Session,
    prompt: &str,
    stage: &mut Stage<'_>,
) -> Result<End, Error> {
    let began = clock::now_ms();
    let answer = session.ask(Agent::Gemini.name(), prompt);
    // A turn that is killed half-way leaves its prompt in the session.
    sessions.save(&session)?;
    let lines = Lines { session: &session };
    if output == Output::Stream {
        stage.write_line(Stream::Stdout, &lines.init().to_string())?;
        stage.write_line(Stream::Stdout, &lines.user(prompt).to_string())?;
    }
    answer.faults.begin_deaf(stage)?;
    answer.faults.middle()?;
    if output == Output::Stream {
        stream(props, &lines, &answer, stage)?;
    }
    let stats = Stats {
        n_calls: answer.n_model_calls(),
        n_tools: u64::from(answer.tool.is_some()),
        duration_ms: clock::now_ms() - began,
    };
    match output {
        Output::Text => stage.write_line(Stream::Stdout, &answer.text)?,
        // The real CLI writes no newline behind the object.
        Output::Json => {
            let object = lines.object(&answer.text, &stats);
            stage.write(Stream::Stdout, format!("{object:#}").as_bytes())?;
        }
        Output::Stream => {
            stage.write_line(Stream::Stdout, &lines.result(&stats).to_string())?;
        }
    }
    Ok(End::Exit(0))
}

fn stream(
    props: &Props,
    lines: &Lines<'_>,
    answer: &Answer,
    stage: &mut Stage<'_>,
) -> Result<(), Error> {
    if let Some(tool) = &answer.tool {
        let id = format!("{0}__{0}_{1}_0", lines::SHELL, clock::now_ms());
        os::wait(props.pace);
        stage.write_line(Stream::Stdout, &lines.tool_use(&id, tool).to_string())?;
        os::wait(props.pace);
        stage.write_line(Stream::Stdout, &lines.tool_result(&id, tool).to_string())?;
    }
    for (n, piece) in pieces(&answer.text).into_iter().enumerate() {
        os::wait(answer.faults.pace(n, props.pace));
        stage.write_line(Stream::Stdout, &lines.assistant(piece).to_string())?;
    }
    Ok(())
}
