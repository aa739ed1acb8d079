//! What the server is told of what it asked, and whether that was heard.

use serde_json::{Value, json};

use super::{alarm::Alarm, client::escaped, resync::NEXT_LOOK, server::Server, turn::Stop};
use crate::{
    agent::{Action, SessionKey, opencode::fault},
    failure::{Failure, FailureKind},
    permission::Ruling,
};

/// How often an answer is said that is not heard.
const MAX_SAID: u32 = 5;

/// An answer of ours.
#[derive(Debug)]
pub(super) struct Said {
    /// Where it goes and what it says.
    answer: (String, Value),
    /// The server has not said that it heard it.
    is_under_way: bool,
    /// How often it was said in vain.
    n_unheard: u32,
}

impl Server {
    /// Tells the server what was decided. A denial without a word would end the
    /// turn; with one the model goes on without.
    pub(super) fn reply_to(
        &mut self,
        key: SessionKey,
        directory: &str,
        id: &str,
        ruling: &Ruling,
        out: &mut Vec<Action>,
    ) {
        let body = match ruling {
            Ruling::Allow { .. } => json!({ "reply": "once" }),
            Ruling::Deny { why } if why.is_empty() => {
                json!({ "reply": "reject", "message": "denied" })
            }
            Ruling::Deny { why } => json!({ "reply": "reject", "message": why }),
        };
        let path = format!("/permission/{}/reply", escaped(id));
        self.say(key, directory, id, (path, body), out);
    }

    /// Answers a request, and remembers how: a list of what is open may be older.
    pub(super) fn say(
        &mut self,
        key: SessionKey,
        directory: &str,
        id: &str,
        answer: (String, Value),
        out: &mut Vec<Action>,
    ) {
        if let Some(live) = self.turn_of(key) {
            let said = Said { answer: answer.clone(), is_under_way: true, n_unheard: 0 };
            live.answers.insert(id.to_owned(), said);
        }
        self.client.answer((key, id), directory, answer, out);
    }

    /// Returns whether a request was answered. If the server still waits, the
    /// answer was not heard and is said again.
    pub(super) fn is_answered(&mut self, key: SessionKey, id: &str, out: &mut Vec<Action>) -> bool {
        let Some(session) = self.sessions.get_mut(&key.0) else { return false };
        let said = session.turn.as_mut().and_then(|live| live.answers.get_mut(id));
        let Some(said) = said else { return false };
        if !std::mem::replace(&mut said.is_under_way, true) {
            self.client.answer((key, id), &session.directory, said.answer.clone(), out);
        }
        true
    }

    /// An answer was heard, or not.
    pub(super) fn answered(
        &mut self,
        key: SessionKey,
        id: &str,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(live) = self.turn_of(key) else { return };
        let Some(said) = live.answers.get_mut(id) else { return };
        said.is_under_way = false;
        // That nobody waits for it any more is no failure. Else what is asked
        // then shows whether it was heard.
        let Some(failure) = reply.err().filter(|failure| failure.kind != FailureKind::SessionLost)
        else {
            return;
        };
        said.n_unheard += 1;
        if said.n_unheard < MAX_SAID {
            let turn = live.key;
            self.arm(Alarm::Look(key, turn), NEXT_LOOK, out);
        } else if live.stop == Stop::No {
            // It would wait for ever.
            said.is_under_way = true;
            let reason = fault::stop_reason(&failure);
            live.failure = Some((failure, reason));
            self.stop(key, out);
        }
    }
}
