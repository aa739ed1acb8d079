//! How a thread is opened that the server has to close first.
//!
//! A thread that is still loaded would be given back as it is, without the
//! settings that are wanted now.

use std::time::Duration;

use serde_json::Value;

use super::server::{Alarm, AppServer, Call};
use crate::{
    agent::{Action, SessionKey},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::RpcError,
};

/// How long the server may take to close a thread. It does not before a turn
/// has ended that runs in it.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);
/// How long until a thread that is being closed is asked for again, should the
/// news have come before the refusal.
const AGAIN: Duration = Duration::from_millis(100);
/// How often it is asked for again.
const MAX_CLOSING: u32 = 50;

impl AppServer {
    /// Takes what the server says to the unloading of a thread that is to be
    /// opened again: it is closed now, or will be.
    pub(super) fn unloaded(
        &mut self,
        key: SessionKey,
        reply: Option<&Value>,
        out: &mut Vec<Action>,
    ) {
        // It may have been closed, and asked for, before this was said.
        let Some(session) = self.sessions.get(&key.0).filter(|session| session.awaits_close) else {
            return;
        };
        let wait = session.n_waits;
        let status = reply.and_then(|reply| reply.get("status"));
        if status.is_some_and(|status| status == "unsubscribed") {
            self.arm(Alarm::Reopen(key, wait), CLOSE_LIMIT, out);
        } else {
            self.reopen(key, out);
        }
    }

    /// Opens a thread that was waited for.
    pub(super) fn reopen(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0).filter(|session| session.awaits_close)
        else {
            return;
        };
        session.awaits_close = false;
        let (method, params) = session.opening(None);
        self.ask_server(Call::Open(key), method, params, out);
    }

    /// Takes an error of opening a thread that the server is about to close, and
    /// arranges for another attempt. Returns whether it was that.
    pub(super) fn is_closing(
        &mut self,
        key: SessionKey,
        error: &RpcError,
        out: &mut Vec<Action>,
    ) -> bool {
        if !error.message.contains("is closing; retry") {
            return false;
        }
        let Some(session) = self.sessions.get_mut(&key.0) else { return true };
        session.n_closing += 1;
        if session.n_closing > MAX_CLOSING {
            let failure = Failure::new(FailureKind::SessionBusy, error.message.clone());
            self.sessions.remove(&key.0);
            out.push(Action::OpenFailed { session: key, failure });
        } else {
            let wait = session.await_close();
            self.arm(Alarm::Reopen(key, wait), AGAIN, out);
        }
        true
    }
}
