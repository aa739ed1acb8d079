//! Gemini kept running: `gemini --acp`, one process with many sessions.
//!
//! Facts only; the protocol is spoken elsewhere. What the process is started
//! with is in `launch`, what it prints beside the protocol in `stderr`.

mod launch;
mod stderr;

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{fault, prompt};
use crate::{
    agent::{Signal, StopStep, WarmSpec, words::one_line},
    event::Usage,
    failure::{Failure, FailureKind},
    memo,
    protocol::{
        acp::{self, AcpFacts, Call, Habits},
        jsonrpc::RpcError,
    },
    request::{Open, Options},
};

/// How Gemini is kept running.
pub(super) static WARM: WarmSpec = WarmSpec {
    sessions_per_process: 32,
    supports_steering: false,
    is_bound_to_directory: false,
    adopts: |_| true,
    // The end of its input ends it as soon as no prompt runs.
    stop: &[
        StopStep::CloseStdin { wait: Duration::from_secs(2) },
        StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(2) },
    ],
    launch: launch::launch,
    dialect: |_| acp::dialect(&FACTS),
    attach: None,
};

/// What is true of Gemini and not of every agent that speaks the protocol.
static FACTS: AcpFacts = AcpFacts {
    load_id,
    replay: Some(Duration::from_secs(2)),
    // A mode other than the default one needs a trusted directory.
    has_settings: false,
    thoughts_are_whole: true,
    is_notice: |text| text.starts_with("[MODE_UPDATE] "),
    tool,
    title: |call| call.title.clone().unwrap_or_default(),
    input,
    prompt: prompt::for_chat,
    looks: |_| false,
    ignored: ignored_system_prompt,
    spent,
    stopped,
    failure,
    is_lost: |_| false,
    habits: |_| &Habits::NONE,
    stderr: || Box::new(stderr::Reader::default()),
};

/// Makes the id by which a session is loaded: the session's with a blank before it.
///
/// When the CLI loads a session it first begins a new file, named by the minute
/// and the start of the id that it was given. In the minute in which the session
/// began that is the session's own file, which is lost by it. The blank is
/// dropped when the session is looked for, but not when the file is named.
fn load_id(id: &str) -> String {
    format!(" {id}")
}

/// Ids begin with the name of the tool, which is told nowhere else.
fn tool(call: &Call) -> String {
    let named = call.id.split_once("__").map(|(tool, _)| tool);
    named.or(call.kind.as_deref()).unwrap_or_default().to_owned()
}

/// Arguments are not told so far. The title of a command is the command. What is
/// told of its directory is the process's and not the session's, unless the
/// model has named another one.
fn input(call: &Call) -> Option<Value> {
    call.raw_input.clone().or_else(|| shown(call))
}

fn shown(call: &Call) -> Option<Value> {
    let title = call.title.as_ref()?;
    let mut fields = Map::new();
    if call.kind.as_deref() == Some("execute") {
        fields.insert("command".to_owned(), json!(title));
        let place = call.texts().find_map(|text| text.strip_prefix("[in ")?.split_once(']'));
        fields.extend(place.map(|(place, _)| ("directory".to_owned(), json!(place))));
        return Some(Value::Object(fields));
    }
    fields.insert("title".to_owned(), json!(title));
    let (changes, content): (Vec<&Value>, Vec<&Value>) =
        call.content.iter().partition(|item| Call::is_change(item));
    for (name, is_empty, value) in [
        ("locations", call.locations.is_empty(), json!(call.locations)),
        ("changes", changes.is_empty(), json!(changes)),
        // A title may be a shortened one.
        ("content", content.is_empty(), json!(content)),
    ] {
        fields.extend((!is_empty).then(|| (name.to_owned(), value)));
    }
    Some(Value::Object(fields))
}

/// Returns a warning about a system prompt that comes too late.
fn ignored_system_prompt(open: &Open, options: &Options) -> Option<&'static str> {
    let (text, memo) = (options.system_prompt.as_ref()?, open.memo()?);
    let is_other = memo.system_sent && memo.system_hash.as_ref() != Some(&memo::hash(text));
    is_other.then_some(super::launch::LATE_SYSTEM_PROMPT)
}

/// Reads what a turn used. Thoughts and the cache are not in the figures, and
/// zeros stand for what is not known.
fn spent(result: &Value) -> (Usage, Option<String>) {
    let quota = result.get("_meta").and_then(|meta| meta.get("quota"));
    let count = |counts: &Value, name: &str| counts.get("token_count")?.get(name)?.as_u64();
    let figures = quota
        .and_then(|quota| Some((count(quota, "input_tokens")?, count(quota, "output_tokens")?)));
    let usage = match figures {
        Some((input, output)) if input > 0 || output > 0 => Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            total_tokens: Some(input.saturating_add(output)),
            ..Usage::default()
        },
        _ => Usage::default(),
    };
    let models = quota.and_then(|quota| quota.get("model_usage")?.as_array());
    let busiest = models.into_iter().flatten().max_by_key(|model| count(model, "input_tokens"));
    let model = busiest.and_then(|model| Some(model.get("model")?.as_str()?.to_owned()));
    (usage, model)
}

fn stopped(reason: &str) -> Option<Failure> {
    let (kind, text) = match reason {
        "max_tokens" => {
            (FailureKind::ContextTooLong, "the conversation does not fit the model any more")
        }
        "max_turn_requests" => (
            FailureKind::LimitReached,
            "Gemini reached its limit of model calls, or stopped a model that repeated itself",
        ),
        _ => return None,
    };
    Some(Failure::new(kind, text))
}

/// The code is the HTTP status where there was one; what was wrong with our own
/// request stands beside the words.
fn failure(error: &RpcError) -> Failure {
    let data = error.data.as_ref();
    let details = data.and_then(|data| data.as_str().or_else(|| data.get("details")?.as_str()));
    let message = details.map_or_else(|| error.message.clone(), one_line);
    let otherwise = match error.code {
        100.. => FailureKind::Unavailable,
        -32000 => FailureKind::Auth,
        _ => FailureKind::InvalidRequest,
    };
    fault::of_reply(&json!({ "message": message, "code": error.code }), otherwise)
}
