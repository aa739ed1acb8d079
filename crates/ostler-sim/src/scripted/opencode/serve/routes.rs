//! The calls that the server answers.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::super::super::Error;
use super::super::super::session::Session;
use super::super::DEFAULT_MODEL;
use super::call::{self, Call};
use super::event;
use super::fault::ServerFaults;
use super::shared::{Kind, Reply, Shared};
use super::stream;
use super::turn::Player;

const MESSAGES: usize = 100;

pub(super) async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some(call) = Call::read(request).await else { return call::broken() };
    if shared.login.is_some() && call.login != shared.login {
        return call::unauthenticated();
    }
    // What goes wrong on disk is the server's own error.
    route(&shared, &call).await.unwrap_or_else(|_| call::broken())
}

async fn route(shared: &Arc<Shared>, call: &Call) -> Result<Response, Error> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let is_read = call.method == Method::GET;
    Ok(match (is_read, path.as_slice()) {
        (true, ["global", "health"]) => call::ok(&json!({ "healthy": true, "version": "0.0.0" })),
        (true, ["global", "event"]) => stream::open(shared, None),
        (true, ["event"]) => {
            let directory = call.directory()?.to_string_lossy().into_owned();
            stream::open(shared, Some(directory))
        }
        (false, ["session"]) => create(shared, call)?,
        (true, ["session", "status"]) => call::ok(&statuses(shared)),
        (true, ["permission"]) => call::ok(&asked(shared, Kind::Permission)),
        (true, ["question"]) => call::ok(&asked(shared, Kind::Question)),
        (false, ["permission", id, "reply"]) => permit(shared, id, call, "reply"),
        (false, ["session", _, "permissions", id]) => permit(shared, id, call, "response"),
        (false, ["question", id, "reply"]) => {
            let answer = call
                .json()
                .and_then(|body| Some(body.pointer("/answers/0/0")?.as_str()?.to_owned()));
            match answer {
                Some(answer) => decide(shared, id, Reply::Yes(answer)),
                None => call::missing("answers"),
            }
        }
        (false, ["question", id, "reject"]) => decide(shared, id, Reply::No { message: None }),
        (false, ["session", id, "abort"]) => {
            Player::abort(shared, id);
            call::ok(&json!(true))
        }
        (_, ["session", id, rest @ ..]) if id.starts_with("ses") => {
            if !shared.find(id)? {
                return Ok(call::not_found("NotFoundError", &format!("Session not found: {id}")));
            }
            of_session(shared, call, id, rest).await
        }
        (_, ["session", ..]) => call::broken(),
        _ => Html("<!doctype html><title>OpenCode</title>").into_response(),
    })
}

/// Answers what concerns a session that exists.
async fn of_session(shared: &Arc<Shared>, call: &Call, id: &str, rest: &[&str]) -> Response {
    match (call.method == Method::GET, rest) {
        (true, []) => {
            let info = shared.lock().open.get(id).map(super::shared::Open::info);
            call::ok(&info.unwrap_or_default())
        }
        (true, ["message"]) => {
            let limit = call.query("limit").and_then(|limit| limit.parse().ok());
            let list =
                shared.lock().open.get(id).map(|it| it.records.list(limit.unwrap_or(MESSAGES)));
            call::ok(&list.unwrap_or_default())
        }
        (false, ["prompt_async" | "message"]) => match prompt(call) {
            Ok(text) => match ServerFaults::of(&text).status {
                Some(status) => call::refusal(status),
                None => take(shared, id, &text, rest == ["message"]).await,
            },
            Err(refusal) => *refusal,
        },
        _ => call::broken(),
    }
}

async fn take(shared: &Arc<Shared>, id: &str, prompt: &str, is_waited_for: bool) -> Response {
    if !is_waited_for {
        Player::prompt(shared, id, prompt, None);
        return StatusCode::NO_CONTENT.into_response();
    }
    let (done, ended) = oneshot::channel();
    Player::prompt(shared, id, prompt, Some(done));
    // However it ended, what there is of it is the answer.
    ended.await.ok();
    let last = shared.lock().open.get(id).map(|open| open.records.last());
    call::ok(&last.unwrap_or_default())
}

fn prompt(call: &Call) -> Result<String, Box<Response>> {
    let body = call.json().ok_or_else(|| Box::new(call::broken()))?;
    let parts = body.get("parts").and_then(Value::as_array);
    let parts = parts.ok_or_else(|| Box::new(call::missing("parts")))?;
    let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

fn create(shared: &Arc<Shared>, call: &Call) -> Result<Response, Error> {
    let Some(body) = call.json() else { return Ok(call::broken()) };
    let title = body.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = shared.lock().id("ses_");
    let session = Session::new(id.clone(), DEFAULT_MODEL.to_owned(), &call.directory()?);
    shared.sessions.save(&session)?;
    shared.insert(session, title);
    let mut state = shared.lock();
    let Some(open) = state.open.get(&id) else { return Ok(call::broken()) };
    let (info, directory) = (open.info(), open.session.cwd.to_string_lossy().into_owned());
    let created = json!({ "sessionID": id, "info": info });
    let created = stream::event(&mut state, "session.created", created);
    state.tell(&directory, &created);
    Ok(call::ok(&info))
}

/// The sessions that work; the others are left out.
fn statuses(shared: &Shared) -> Value {
    let state = shared.lock();
    let busy = state.open.iter().filter(|(_, open)| open.turn.is_some());
    let busy = busy.map(|(id, _)| {
        let status = event::status(id, "busy");
        (id.clone(), status.get("status").cloned().unwrap_or_default())
    });
    Value::Object(busy.collect::<Map<String, Value>>())
}

fn asked(shared: &Shared, kind: Kind) -> Value {
    let state = shared.lock();
    state.asked.values().filter(|it| it.kind == kind).map(|it| it.request.clone()).collect()
}

/// Answers a request for permission. The word for it had another name before.
fn permit(shared: &Shared, id: &str, call: &Call, name: &str) -> Response {
    let body = call.json().unwrap_or_default();
    let message = body.get("message").and_then(Value::as_str).map(str::to_owned);
    match body.get(name).and_then(Value::as_str) {
        Some("once" | "always") => decide(shared, id, Reply::Yes(String::new())),
        Some("reject") => decide(shared, id, Reply::No { message }),
        _ => call::missing(name),
    }
}

fn decide(shared: &Shared, id: &str, reply: Reply) -> Response {
    let Some(asked) = shared.lock().asked.remove(id) else {
        return call::not_found("PermissionNotFoundError", &format!("Not found: {id}"));
    };
    // A turn that is gone needs no answer.
    asked.answer.send(reply).ok();
    call::ok(&json!(true))
}
