//! What a hook does: runs a program, or calls a URL. Both are told the same, and
//! both can answer with a note.

use ostler_core::{agent::Stdin, environment::Variables, failure::chain};
use reqwest::header;
use serde_json::Value;
use thiserror::Error;
use tokio::time;

use super::happening::Happening;
use crate::{
    clients::{Clients, read_start},
    command::{Command, End, Excess},
    config::{Hook, HookEvent},
};

/// How much of an answer counts, in bytes.
pub(super) const LONGEST_ANSWER: usize = 64 * 1024;

/// Why a hook failed, in words for the log and for the one whose turn it was.
/// What the program or the server said is not among them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{why}")]
pub(crate) struct HookError {
    why: String,
    /// What the program said, for the log alone.
    pub(super) complaint: Option<String>,
}

fn failed(why: impl Into<String>) -> HookError {
    HookError { why: why.into(), complaint: None }
}

/// Runs a program. Its note is what it prints.
pub(super) async fn run(
    words: &[String],
    environment: &Variables,
    hook: &Hook,
    happening: &Happening,
) -> Result<Option<String>, HookError> {
    let mut env = environment.clone();
    env.insert("OSTLER_HOOK".into(), hook.name.clone().into());
    env.insert("OSTLER_EVENT".into(), happening.event.word().into());
    let mut message = happening.message(hook).to_string();
    message.push('\n');
    let command = Command {
        words,
        env: &env,
        stdin: Stdin::Bytes(message.into_bytes()),
        keep: LONGEST_ANSWER,
        excess: Excess::Dropped,
        limit: hook.timeout,
    };
    let printed = command.run().await.map_err(|error| failed(error.to_string()))?;
    let why = match printed.end {
        End::Code(0) | End::Cut => {
            if let Some(said) = printed.complaint {
                tracing::debug!(hook = hook.name, said, "a hook complained");
            }
            if printed.is_more {
                tracing::debug!(hook = hook.name, "a hook printed more than 64 KiB; they count");
            }
            return Ok(note(&printed.stdout));
        }
        End::Code(code) => format!("it ended with exit code {code}"),
        End::Signal(signal) => format!("it was ended by signal {signal}"),
    };
    Err(HookError { why, complaint: printed.complaint })
}

/// Calls a URL. Its note is in the answer.
pub(super) async fn post(
    clients: &Clients,
    url: &str,
    hook: &Hook,
    happening: &Happening,
) -> Result<Option<String>, HookError> {
    let late = |_| failed(format!("it took longer than {:?}", hook.timeout));
    let call = call(clients, url, hook, happening);
    time::timeout(hook.timeout, call).await.map_err(late)?
}

async fn call(
    clients: &Clients,
    url: &str,
    hook: &Hook,
    happening: &Happening,
) -> Result<Option<String>, HookError> {
    // The address may be a secret.
    let unheard = |error: reqwest::Error| failed(chain(&error.without_url()));
    let call = clients.client(url).map_err(unheard)?.post(url);
    let call = call.header("Idempotency-Key", happening.key(hook)).json(&happening.message(hook));
    let response = call.send().await.map_err(unheard)?;
    let status = response.status();
    if status.is_redirection() {
        return Err(failed(format!("it answered {status}; redirects are not followed")));
    }
    if !status.is_success() {
        return Err(failed(format!("it answered {status}")));
    }
    // Nobody reads what else it says.
    if happening.event != HookEvent::BeforeTurn {
        return Ok(None);
    }
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = match kind.as_str() {
        "text/plain" => true,
        "application/json" => false,
        _ => return Ok(None),
    };
    let mut said = Vec::new();
    let is_more = read_start(response, LONGEST_ANSWER, &mut said).await.map_err(unheard)?;
    match (is_text, is_more) {
        (true, _) => Ok(note(&said)),
        (false, true) => Err(failed("its answer is longer than 64 KiB")),
        (false, false) => noted(&said),
    }
}

/// Reads the note in an answer that is JSON.
fn noted(body: &[u8]) -> Result<Option<String>, HookError> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let answer: Value =
        serde_json::from_slice(body).map_err(|_| failed("its answer is not valid JSON"))?;
    match answer.get("note") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(note(text.as_bytes())),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(failed("the `note` in its answer is not a text"))
        }
    }
}

/// Makes a note of what was said, if that was anything.
fn note(said: &[u8]) -> Option<String> {
    // No program can be given such a character.
    let text = String::from_utf8_lossy(said).replace('\0', "");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
