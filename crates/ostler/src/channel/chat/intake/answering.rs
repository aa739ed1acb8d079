//! Answers to what an agent asks, by who may give them.

use std::time::Duration;

use ostler_core::permission::{Answer, Decision};
use tokio::time;

use super::Intake;
use crate::{
    channel::access::{self, Rules},
    gateway::asking::{Actor, AnswerError},
    id::PermissionId,
    queue::MessageKey,
    store::{
        StoreError, permissions,
        posts::{self, Stood},
    },
};

/// How long it may take until it is noted where a request stands.
const NOTED: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
];

/// An answer that somebody gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) request: PermissionId,
    /// A decision, or `option:` and a number.
    pub(crate) choice: &'a str,
    /// What was written instead.
    pub(crate) text: Option<&'a str>,
    /// The message that says so, if it is one: it is dealt with by that.
    pub(crate) message: Option<&'a str>,
    pub(crate) place: &'a str,
    pub(crate) sender: &'a str,
}

impl Intake {
    /// Answers a request; the error is for the person.
    pub(crate) async fn answer(&self, given: Given<'_>, rules: &Rules<'_>) -> Result<(), String> {
        let Given { request, choice, text, message, place, sender } = given;
        let away = |error: StoreError| format!("That did not work: {error}. Try again.");
        let is_denied = Decision::parse(choice) == Some(Decision::Deny);
        match self.stood(request, place).await.map_err(away)? {
            Stood::Nothing => return Err("That is not asked here.".to_owned()),
            Stood::InPart if !is_denied => {
                return Err("Not all of what is asked has arrived here. Deny it, or wait until \
                            it has."
                    .to_owned());
            }
            Stood::InPart | Stood::Whole => {}
        }
        let answer = match (Decision::parse(choice), choice.strip_prefix("option:"), text) {
            (Some(decision), _, _) => Answer::new(decision),
            (None, Some(index), _) => self
                .option(request, index)
                .await
                .map_err(away)?
                .ok_or_else(|| "There is no such choice.".to_owned())?,
            (None, None, Some(text)) => {
                Answer { decision: Decision::Allow, text: Some(text.to_owned()) }
            }
            (None, None, None) => return Err("There is no such choice.".to_owned()),
        };
        let by = if access::is_owner(rules, sender) {
            Actor::Operator(format!("{}:{sender}", self.channel))
        } else {
            Actor::Sender { channel: self.channel, name: sender.to_owned() }
        };
        let answered = match message {
            None => match self.gateway.answer(request, answer, by).await {
                // A button may be told again.
                Err(AnswerError::Again(_)) => Ok(()),
                answered => answered,
            },
            Some(message) => {
                let key = MessageKey::new(self.channel, place, message);
                self.gateway.answer_by(key, request, answer, by).await
            }
        };
        match answered {
            Ok(()) => Ok(()),
            Err(AnswerError::Store(error)) => Err(away(error)),
            Err(error) => Err(format!("No: {error}.")),
        }
    }

    /// Returns how much of a request stands at a place. Whoever is quick can answer it
    /// before that is noted; what is above it was there before, or did not arrive.
    async fn stood(&self, request: PermissionId, place: &str) -> Result<Stood, StoreError> {
        let mut stood = Stood::Nothing;
        for pause in NOTED {
            time::sleep(pause).await;
            let args = (request, self.channel, place.to_owned());
            let found = self.store.read(args, |conn, (request, channel, place)| {
                Box::pin(posts::stood(conn, *request, channel, place))
            });
            stood = found.await?;
            if stood != Stood::Nothing {
                break;
            }
        }
        Ok(stood)
    }

    /// Returns the answer that a choice of a question stands for.
    async fn option(
        &self,
        request: PermissionId,
        index: &str,
    ) -> Result<Option<Answer>, StoreError> {
        let found = self.store.read(request, |conn, id| Box::pin(permissions::find(conn, *id)));
        let Some(found) = found.await? else { return Ok(None) };
        let body: serde_json::Value = serde_json::from_str(&found.request.body).unwrap_or_default();
        let option =
            index.parse().ok().and_then(|index: usize| body.get("options")?.get(index)?.as_str());
        let text = option.map(str::to_owned);
        Ok(text.map(|text| Answer { decision: Decision::Allow, text: Some(text) }))
    }
}
