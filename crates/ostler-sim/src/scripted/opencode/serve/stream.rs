//! The streams of events: who listens, to which directory, and their bodies.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::shared::{Shared, State};

/// How often it is told that nothing happened, as the real server does.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How much a slow listener may be behind before he is cut off.
const BEHIND: usize = 10_000;

/// Somebody who listens.
#[derive(Debug)]
pub(super) struct Listener {
    /// Everything that happens there; everywhere if none is named.
    directory: Option<String>,
    body: mpsc::Sender<Result<String, Cut>>,
}

/// The connection breaks off.
#[derive(Debug)]
pub(super) struct Cut;

/// Begins a stream.
pub(super) fn open(shared: &Arc<Shared>, directory: Option<String>) -> Response {
    let (body, pieces) = mpsc::channel(BEHIND);
    let mut state = shared.lock();
    let listener = Listener { directory, body: body.clone() };
    listener.say("", &event(&mut state, "server.connected", json!({})));
    state.listeners.push(listener);
    let shared = Arc::clone(shared);
    state.turns.spawn(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(HEARTBEAT) => {}
                () = body.closed() => return,
            }
            let beat = event(&mut shared.lock(), "server.heartbeat", json!({}));
            if body.send(Ok(frame(&beat))).await.is_err() {
                return;
            }
        }
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(Pieces(pieces))).into_response()
}

/// Makes an event.
pub(super) fn event(state: &mut State, kind: &str, properties: Value) -> Value {
    json!({ "id": state.id("evt_"), "type": kind, "properties": properties })
}

impl State {
    /// Tells everybody who listens what happened in a directory.
    pub(super) fn tell(&mut self, directory: &str, event: &Value) {
        self.listeners.retain(|listener| listener.say(directory, event));
    }

    /// Cuts everybody off.
    pub(super) fn cut(&mut self) {
        for listener in self.listeners.drain(..) {
            // Whoever is gone needs no cutting off.
            listener.body.try_send(Err(Cut)).ok();
        }
    }
}

impl Listener {
    /// Returns whether it still listens.
    fn say(&self, directory: &str, event: &Value) -> bool {
        let text = match &self.directory {
            None => {
                frame(&json!({ "directory": directory, "project": "global", "payload": event }))
            }
            Some(own) if own == directory || directory.is_empty() => frame(event),
            Some(_) => return !self.body.is_closed(),
        };
        self.body.try_send(Ok(text)).is_ok()
    }
}

fn frame(event: &Value) -> String {
    format!("data: {event}\n\n")
}

struct Pieces(mpsc::Receiver<Result<String, Cut>>);

impl Stream for Pieces {
    type Item = Result<String, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|piece| {
            piece.map(|piece| piece.map_err(|Cut| std::io::ErrorKind::ConnectionAborted.into()))
        })
    }
}
