//! What is said between a kept process and Ostler when the process is an HTTP
//! server. Transcripts have it as if it were lines.

use super::{super::wire::Came, Line, Worker};
use crate::agent::{
    Input,
    http::{CallKey, Heard, HttpCall, HttpReply},
};

impl Worker {
    pub(super) fn call(&mut self, call: CallKey, request: HttpCall) {
        let body = request.body.as_ref().map(|body| format!(" {body}")).unwrap_or_default();
        let line = format!("{} {}{body}", request.method.as_str(), request.url);
        self.write_down(Line::Stdin, line.as_bytes());
        self.wire.call(call, request);
    }

    pub(super) fn came(&mut self, came: Came) {
        match came {
            Came::Event(data) => {
                self.write_down(Line::Stdout, &data);
                self.step(Input::Heard(Heard::Event(&data)));
            }
            Came::Reply { call, reply } => {
                let reply = match &reply {
                    Ok((status, body)) => Ok(HttpReply { status: *status, body }),
                    Err(why) => Err(why.as_str()),
                };
                self.write_down(Line::Stdout, reply.map_or_else(str::as_bytes, |reply| reply.body));
                self.step(Input::Heard(Heard::Reply { call, reply }));
            }
            Came::Lost { why } => {
                self.write_down(Line::Stderr, why.as_bytes());
                self.step(Input::Heard(Heard::Lost { why: &why }));
            }
        }
    }
}
