//! The way to an HTTP server in a build that has none.

use crate::agent::http::{CallKey, EventSource, HttpCall};

/// What would come in.
#[derive(Debug)]
#[expect(dead_code, reason = "nothing does")]
pub(crate) enum Came {
    Reply { call: CallKey, reply: Result<(u16, Vec<u8>), String> },
    Event(Vec<u8>),
    Lost { why: String },
}

/// No way to any server.
pub(crate) struct Wire;

impl Wire {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn call(&mut self, _call: CallKey, _request: HttpCall) {}

    pub(crate) fn listen(&mut self, _source: EventSource) {}

    pub(crate) async fn next(&mut self) -> Came {
        std::future::pending().await
    }
}
