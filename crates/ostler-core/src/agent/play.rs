//! Plays recorded output through a dialect and writes down what came of it.

use std::{fmt::Write as _, fs, path::Path};

use jiff::Timestamp;
use serde_json::Value;

use super::{Action, AgentSpec, Exit, Input, ONLY_TURN, testing::launch_of};
use crate::{
    event::{EventBody, Status, Stream, Usage},
    permission::Permission,
    request::{Open, Options},
};

/// One recorded run of a real CLI.
pub(crate) struct Recording {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) exit: Exit,
}

impl Recording {
    /// Reads `<case>.stdout`, `.stderr` and `.exit`, given the path of the first.
    pub(crate) fn read(stdout: &Path) -> Self {
        let stderr = fs::read(stdout.with_extension("stderr")).unwrap_or_default();
        let exit = fs::read_to_string(stdout.with_extension("exit")).unwrap();
        let text = String::from_utf8_lossy(&stderr).into_owned();
        Self { stdout: fs::read(stdout).unwrap(), exit: parse_exit(&exit, text), stderr }
    }
}

/// The forms in which exits were recorded: a bare number, maybe after a line
/// about the signal sent; an object; `signal 9`; and `timeout` or
/// `timeout(15s)-killed`, after which the process was killed.
fn parse_exit(text: &str, stderr: String) -> Exit {
    let last = text.lines().last().unwrap_or("0");
    let by_signal = last.strip_prefix("signal ").and_then(|number| number.parse().ok());
    let timed_out = last.eq_ignore_ascii_case("timeout") || last.ends_with("-killed");
    if let Some(signal) = by_signal.or(timed_out.then_some(libc::SIGKILL)) {
        return Exit { code: None, signal: Some(signal), stderr };
    }
    let value: Value = serde_json::from_str(last).unwrap_or(Value::Null);
    let number = |value: &Value| value.as_i64().and_then(|n| i32::try_from(n).ok());
    match &value {
        Value::Object(fields) => {
            let signal = fields.get("signal").and_then(Value::as_str).map(|name| match name {
                "SIGKILL" => libc::SIGKILL,
                "SIGINT" => libc::SIGINT,
                "SIGTERM" => libc::SIGTERM,
                other => panic!("signal {other}"),
            });
            Exit { code: fields.get("exit_code").and_then(number), signal, stderr }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            match number(&value) {
                Some(code) if code < 0 => Exit { code: None, signal: Some(-code), stderr },
                code => Exit { code, signal: None, stderr },
            }
        }
    }
}

/// Plays standard error, then standard output, then the exit.
pub(crate) fn play(spec: &AgentSpec, recording: &Recording) -> Vec<Action> {
    let options = Options::new("/workspace");
    let open = Open::New;
    play_with(spec, recording, &options, &open)
}

/// Plays a recording of a run that had these options and this session.
pub(crate) fn play_with(
    spec: &AgentSpec,
    recording: &Recording,
    options: &Options,
    open: &Open,
) -> Vec<Action> {
    let mut dialect = (spec.dialect)(&launch_of(spec, options, open, "hi"));
    let mut out = Vec::new();
    for (from, bytes) in [(Stream::Stderr, &recording.stderr), (Stream::Stdout, &recording.stdout)]
    {
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        for bytes in lines {
            dialect.step(Timestamp::UNIX_EPOCH, Input::Line { from, bytes, cut: false }, &mut out);
        }
    }
    dialect.step(Timestamp::UNIX_EPOCH, Input::Exited(&recording.exit), &mut out);
    out
}

/// Counts the ends, of which there must be one.
pub(crate) fn n_ends(actions: &[Action]) -> usize {
    actions
        .iter()
        .filter(|action| matches!(action, Action::EndTurn { turn, .. } if *turn == ONLY_TURN))
        .count()
}

/// Writes actions down, one short line each, for snapshots.
pub(crate) fn transcript(actions: &[Action]) -> String {
    let mut text = String::new();
    for action in actions {
        let line = match action {
            Action::Stop => "stop".to_owned(),
            Action::Write(bytes) => {
                format!("write {}", shorten(String::from_utf8_lossy(bytes).trim_end()))
            }
            Action::Call { request, .. } => {
                let body = request.body.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("call {} {} {}", request.method.as_str(), request.url, shorten(&body))
            }
            Action::Listen(source) => format!("listen {}", source.url),
            Action::Ready => "ready".to_owned(),
            Action::OpenFailed { session, failure } => {
                let message = shorten(&failure.message);
                format!("open failed {} {} {message:?}", session.0, failure.kind.code())
            }
            Action::Unasked { session, turn } => format!("unasked {} {turn:?}", session.0),
            Action::Ask { permission, .. } => {
                let Permission { request, kind, tool, title, options, .. } = &**permission;
                format!("ask {request} {kind:?} {tool} {:?} {options:?}", shorten(title))
            }
            Action::Withdraw { request, .. } => format!("withdraw {request}"),
            Action::Arm { timer, after } => format!("arm {timer:?} {after:?}"),
            Action::Opened { id, .. } => format!("opened {id}"),
            Action::Working { .. } => continue,
            Action::Emit { parent, event, .. } => {
                let parent = parent.as_ref().map(|id| format!("[{id}] ")).unwrap_or_default();
                format!("{parent}{}", event_line(event))
            }
            Action::EndTurn { end, .. } => format!(
                "end text={:?} failure={:?} model={:?} stop={:?} {} totals={:?} meta={:?}{}",
                end.text.as_deref().map(shorten),
                end.failure.as_ref().map(|f| (f.kind.code(), shorten(&f.message), f.retry_after)),
                end.model,
                end.stop_reason.as_ref().map(|reason| reason.as_str().to_owned()),
                usage_line(&end.usage),
                end.totals,
                end.meta.keys().collect::<Vec<_>>(),
                end.file.as_ref().map(|file| format!(" file={file:?}")).unwrap_or_default(),
            ),
        };
        writeln!(text, "{line}").unwrap();
    }
    text
}

fn event_line(event: &EventBody) -> String {
    match event {
        EventBody::Output { text, block } => format!("output {block} {:?}", shorten(text)),
        EventBody::Thinking { text, block } => format!("thinking {block} {:?}", shorten(text)),
        EventBody::ToolUse { id, tool, input, title } => {
            let input = input.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("tool_use {id} {tool} {} title={:?}", shorten(&input), shorten(title))
        }
        EventBody::ToolResult(r) => format!(
            "tool_result {} {} {:?} is_error={} exit={:?} truncated={}",
            r.id,
            r.tool,
            shorten(&r.output),
            r.is_error,
            r.exit_code,
            r.truncated
        ),
        EventBody::Usage(usage) => usage_line(usage),
        EventBody::Error(failure) => format!("error {}", failure.kind.code()),
        EventBody::Unknown { stream, text } => format!("unknown {stream:?} {:?}", shorten(text)),
        EventBody::Status(Status::Retry { attempt, max, delay_ms, text }) => {
            format!("retry {attempt:?}/{max:?} after {delay_ms:?} {:?}", shorten(text))
        }
        EventBody::Status(Status::Retracted { block }) => format!("retracted {block}"),
        EventBody::Status(status) => {
            let (code, text) = status.code_and_text();
            format!("{code} {:?}", shorten(text))
        }
        EventBody::Started(_) | EventBody::Permission(_) | EventBody::Complete(_) => {
            "not for a dialect to say".to_owned()
        }
    }
}

fn usage_line(usage: &Usage) -> String {
    let Usage { input_tokens, output_tokens, cached_tokens, total_tokens, cost_usd } = usage;
    format!(
        "usage in={input_tokens:?} out={output_tokens:?} cached={cached_tokens:?} \
         total={total_tokens:?} cost={cost_usd:?}"
    )
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(160) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}
