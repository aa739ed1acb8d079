//! A person at the terminal who is asked for permissions while a turn is
//! watched, wherever that turn runs.

use std::future::Future;

use ostler_core::{
    permission::{Answer, Decision},
    turn::Turn,
};

use super::{
    asking,
    render::Renderer,
    requests::Requests,
    shown::{Shown, What},
    typed::Typed,
};

/// Where answers go.
pub(crate) trait Answers {
    /// Hands over the answer to a request of a turn. A request that is no
    /// longer open was decided meanwhile, and an event says so.
    fn answer(
        &mut self,
        turn: &str,
        request: &str,
        answer: Answer,
    ) -> impl Future<Output = ()> + Send;
}

impl Answers for Turn {
    async fn answer(&mut self, _turn: &str, request: &str, answer: Answer) {
        Self::answer(self, request, answer).await.ok();
    }
}

/// Somebody who can be asked, and what they are being asked.
pub(crate) struct Asker {
    typed: Typed,
    requests: Requests<String>,
}

impl Asker {
    /// Listens to the terminal; `None` if there is none after all.
    pub(crate) fn open() -> Option<Self> {
        Some(Self { typed: Typed::open().ok()?, requests: Requests::default() })
    }

    /// Waits for a reply while there is a question. Cancel-safe.
    pub(crate) async fn reply(asker: Option<&mut Self>) -> Option<String> {
        match asker {
            Some(asker) if asker.requests.first().is_some() => asker.typed.next().await,
            Some(_) | None => std::future::pending().await,
        }
    }

    /// Takes note of what the turn asks for, and asks.
    pub(crate) fn event(&mut self, shown: &Shown<'_>, renderer: &mut Renderer<'_>) {
        let turn = shown.turn.to_owned();
        match &shown.what {
            What::Permission { permission, .. } => {
                self.requests.opened((**permission).clone(), turn);
            }
            What::Resolved { request, .. } => self.requests.resolved(request, &turn),
            What::Complete(_) => self.requests.ended(&turn),
            What::Started { .. }
            | What::Output { .. }
            | What::ToolUse { .. }
            | What::ToolFailed { .. }
            | What::Status { .. }
            | What::Other => return,
        }
        if let Some(permission) = self.requests.next_to_ask() {
            self.typed.forget();
            renderer.question(permission);
        }
    }

    /// Takes a reply; without one (Ctrl-D) the answer is no.
    pub(crate) async fn replied(
        &mut self,
        reply: Option<String>,
        to: &mut impl Answers,
        renderer: &mut Renderer<'_>,
    ) {
        let Some((permission, turn)) = self.requests.first() else { return };
        let answer = match &reply {
            None => Ok(Answer::new(Decision::Deny)),
            Some(reply) => asking::answer(permission, reply),
        };
        if reply.is_some() {
            renderer.ui().replied();
        }
        match answer {
            Ok(answer) => to.answer(turn, &permission.request, answer).await,
            Err(hint) => renderer.question_again(permission, hint),
        }
    }
}
