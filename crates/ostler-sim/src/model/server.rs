//! The HTTP side: reads a request, lets the pure parts decide, sends the reply.

mod side;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::choice::{self, Seen};
use super::conversation::{Conversation, Incoming};
use super::log::{KEPT_HEADERS, Log, Recorded};
use super::pace::{self, CutOff, Piece, Step};
use super::reply::{Answer, Pace, Refusal, Reply};
use super::wire::{self, Exchange, Refused, Wire};

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) log: Log,
    pub(crate) fallback: String,
    pub(crate) started: Instant,
    pub(crate) n_requests: AtomicU64,
    pub(crate) seen: Mutex<Seen>,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// Returns the routes. Everything that is no route of ours is a call of a model
/// or unknown, and recorded either way.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().route("/sim/requests", get(requests)).fallback(api).with_state(shared)
}

/// Lists the recorded requests; `?since=<number>` leaves out older ones.
async fn requests(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    let after = uri.query().and_then(|query| query.strip_prefix("since=")?.parse().ok());
    let requests: Vec<Value> = shared
        .log
        .since(after.unwrap_or(0))
        .iter()
        .filter_map(|request| serde_json::to_value(request.as_ref()).ok())
        .collect();
    json_response(StatusCode::OK, &json!({ "requests": requests }))
}

async fn api(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let number = shared.n_requests.fetch_add(1, Ordering::Relaxed) + 1;
    let at_ms = u64::try_from(shared.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (parts, body) = request.into_parts();
    let headers = kept(&parts.headers);
    let key = key(&parts.headers).or_else(|| query_key(&parts.uri));
    let body = to_bytes(body, MAX_BODY_BYTES).await;
    let n_bytes = body.as_ref().map_or(0, Bytes::len);
    let parsed = parse(body.ok());
    let outcome = answer(&shared, parts.uri.path(), &headers, key.as_deref(), number, &parsed);
    shared.log.add(
        n_bytes,
        Recorded {
            number,
            at_ms,
            method: parts.method.to_string(),
            path: parts.uri.to_string(),
            headers,
            key,
            body: match parsed {
                Parsed::Json(value) => value,
                Parsed::Text(text) => Value::String(text),
                Parsed::TooLarge => Value::Null,
            },
            prompt: outcome.prompt,
            word: outcome.word,
            status: outcome.response.status().as_u16(),
        },
    );
    outcome.response
}

/// What came of a request.
struct Outcome {
    response: Response,
    prompt: Option<String>,
    word: Option<String>,
}

impl From<Response> for Outcome {
    fn from(response: Response) -> Self {
        Self { response, prompt: None, word: None }
    }
}

fn answer(
    shared: &Arc<Shared>,
    path: &str,
    headers: &BTreeMap<String, String>,
    key: Option<&str>,
    number: u64,
    parsed: &Parsed,
) -> Outcome {
    let wrong_key = match key {
        None => Some(Refusal::NoKey),
        Some(key) if key.contains(WRONG) => Some(Refusal::WrongKey),
        Some(_) => None,
    };
    let Some(wire) = wire::at(path) else {
        return side::answer(path, wrong_key, unnamed(number)).into();
    };
    let body = match parsed {
        Parsed::Json(body) => body,
        Parsed::Text(_) => return refused(wire, Refusal::BadRequest, unnamed(number)).into(),
        Parsed::TooLarge => return refused(wire, Refusal::TooLarge, unnamed(number)).into(),
    };
    let conversation = (wire.read)(Incoming { path, headers, body });
    let prompt = match conversation.aside {
        Some(_) => None,
        None => conversation.newest_prompt().map(str::to_owned),
    };
    let exchange =
        Exchange { number, model: &conversation.model, include_usage: conversation.include_usage };
    if let Some(refusal) = wrong_key {
        return Outcome { response: refused(wire, refusal, exchange), prompt, word: None };
    }
    let choice = {
        let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        choice::choose(&conversation, &shared.fallback, &mut seen)
    };
    let response = match choice.reply {
        Reply::Answer(answer) => deliver(shared, wire, &answer, &conversation, exchange),
        Reply::Refuse(refusal) => match (wire.refuse_in_stream)(refusal, exchange) {
            Some(event) if conversation.stream => {
                stream_response(shared, wire, exchange, EVENTS, vec![Step::Send(event)])
            }
            Some(_) | None => refused(wire, refusal, exchange),
        },
    };
    Outcome { response, prompt, word: choice.word }
}

fn deliver(
    shared: &Arc<Shared>,
    wire: &Wire,
    answer: &Answer,
    conversation: &Conversation,
    exchange: Exchange<'_>,
) -> Response {
    if conversation.stream {
        let pieces = (wire.stream)(answer, exchange);
        let steps = pace::plan(pieces, &answer.pace, (wire.stream_error)(exchange));
        return stream_response(shared, wire, exchange, EVENTS, steps);
    }
    // A body that is not streamed has no place for an error in the middle.
    if answer.pace == Pace::ErrorAtHalf {
        return refused(wire, Refusal::ServerError, exchange);
    }
    let text = (wire.plain)(answer, exchange).to_string();
    let pieces = pace::chunks(&text).into_iter().map(|chunk| Piece::Delta(chunk.to_owned()));
    let steps = pace::plan(pieces.collect(), &answer.pace, String::new());
    stream_response(shared, wire, exchange, JSON, steps)
}

fn stream_response(
    shared: &Arc<Shared>,
    wire: &Wire,
    exchange: Exchange<'_>,
    content_type: &'static str,
    steps: Vec<Step>,
) -> Response {
    let (tx, rx) = mpsc::channel(16);
    shared.tasks.spawn(pace::play(steps, tx, shared.stop.clone()));
    let headers = [
        (header::CONTENT_TYPE.as_str(), content_type.to_owned()),
        (header::CACHE_CONTROL.as_str(), "no-cache".to_owned()),
        (wire.request_id_header, request_id(exchange)),
    ];
    (headers, Body::from_stream(Pieces(rx))).into_response()
}

fn refused(wire: &Wire, refusal: Refusal, exchange: Exchange<'_>) -> Response {
    let Refused { status: code, body } = (wire.refuse)(refusal, exchange);
    let mut response = json_response(status(code), &body);
    let mut insert = |name: &'static str, value: String| {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    };
    insert(wire.request_id_header, request_id(exchange));
    if let Refusal::RateLimited { retry_after_s: Some(seconds) } = refusal {
        insert("retry-after", seconds.to_string());
    }
    response
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], body.to_string()).into_response()
}

fn request_id(exchange: Exchange<'_>) -> String {
    format!("req_sim{:06}", exchange.number)
}

/// The exchange of a request that could not be read far enough to name a model.
fn unnamed(number: u64) -> Exchange<'static> {
    Exchange { number, model: "unknown", include_usage: false }
}

enum Parsed {
    Json(Value),
    Text(String),
    TooLarge,
}

fn parse(body: Option<Bytes>) -> Parsed {
    match body {
        None => Parsed::TooLarge,
        Some(bytes) if bytes.is_empty() => Parsed::Json(Value::Null),
        Some(bytes) => serde_json::from_slice(&bytes).map_or_else(
            |_| Parsed::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Parsed::Json,
        ),
    }
}

fn kept(headers: &HeaderMap) -> BTreeMap<String, String> {
    KEPT_HEADERS
        .iter()
        .filter_map(|name| {
            let value = headers.get(*name)?.as_bytes();
            Some(((*name).to_owned(), String::from_utf8_lossy(value).into_owned()))
        })
        .collect()
}

fn key(headers: &HeaderMap) -> Option<String> {
    KEY_HEADERS
        .iter()
        .filter_map(|name| headers.get(*name)?.to_str().ok())
        .map(|value| value.strip_prefix("Bearer ").unwrap_or(value).to_owned())
        .find(|key| !key.is_empty())
}

/// Google takes its key in the address too.
fn query_key(uri: &Uri) -> Option<String> {
    let pairs = uri.query()?.split('&');
    pairs
        .filter_map(|pair| pair.strip_prefix("key="))
        .find(|key| !key.is_empty())
        .map(str::to_owned)
}

/// The body of a response, fed by a task that keeps the time.
struct Pieces(Receiver<Result<String, CutOff>>);

impl Stream for Pieces {
    type Item = Result<String, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|piece| {
            piece.map(|piece| piece.map_err(|CutOff| std::io::ErrorKind::ConnectionAborted.into()))
        })
    }
}

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const KEY_HEADERS: &[&str] = &["x-api-key", "x-goog-api-key", "authorization"];
const WRONG: &str = "wrong";
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
