//! Buttons: answers to what an agent asks, by who may give them.

use std::time::Duration;

use ostler_core::permission::{Answer, Decision};
use tokio::time;

use super::Desk;
use crate::{
    channel::{
        DISCORD, access,
        chat::Slot,
        discord::{
            api::Response,
            heard::{Person, Pressed},
        },
    },
    gateway::asking::{Actor, AnswerError},
    id::PermissionId,
    store::{StoreError, permissions, posts},
};

/// How long it may take until it is noted where a request stands.
const NOTED: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
];

impl Desk {
    /// Deals with a button, or with what was typed for one.
    pub(super) async fn pressed(&self, pressed: Pressed) {
        let Pressed { ticket, channel, person, id, text, .. } = pressed;
        let Some((request, choice)) = id.split_once(':') else { return };
        let Ok(request) = request.parse::<PermissionId>() else { return };
        if choice == "text" && text.is_none() {
            let response = Response::Ask {
                id: id.clone(),
                title: "Answer".to_owned(),
                label: "Your answer".to_owned(),
            };
            self.respond(&ticket, response).await;
            return;
        }
        // Said first: the answer may take longer than Discord waits.
        self.respond(&ticket, Response::Nothing).await;
        if let Err(why) = self.answer(request, choice, text, &channel, &person).await
            && let Err(error) = self.api.follow_up(&ticket, &why, true).await
        {
            tracing::info!(%error, "a refusal could not be told");
        }
    }

    /// Answers a request; the error is for the person.
    async fn answer(
        &self,
        request: PermissionId,
        choice: &str,
        text: Option<String>,
        channel: &str,
        person: &Person,
    ) -> Result<(), String> {
        let away = |error: StoreError| format!("That did not work: {error}. Try again.");
        if !self.is_asked(request, channel).await.map_err(away)? {
            return Err("That is not asked here.".to_owned());
        }
        let answer = match (Decision::parse(choice), choice.strip_prefix("option:"), text) {
            (Some(decision), _, _) => Answer::new(decision),
            (None, Some(index), _) => self
                .option(request, index)
                .await
                .map_err(away)?
                .ok_or_else(|| "There is no such choice.".to_owned())?,
            (None, None, Some(text)) => Answer { decision: Decision::Allow, text: Some(text) },
            (None, None, None) => return Err("There is no such choice.".to_owned()),
        };
        let is_owner = access::is_owner(&self.policy.borrow().discord, &person.id);
        let by = if is_owner {
            Actor::Operator(format!("{DISCORD}:{}", person.id))
        } else {
            Actor::Sender(person.id.clone())
        };
        match self.gateway.answer(request, answer, by).await {
            Ok(()) => Ok(()),
            Err(AnswerError::Store(error)) => Err(away(error)),
            Err(error) => Err(format!("No: {error}.")),
        }
    }

    /// Whether a request stands in a channel. Whoever is quick can press its button
    /// before that is noted.
    async fn is_asked(&self, request: PermissionId, channel: &str) -> Result<bool, StoreError> {
        let slot = Slot::Asked(request.to_string()).to_string();
        for pause in NOTED {
            time::sleep(pause).await;
            let args = (slot.clone(), channel.to_owned());
            let is_here = self.store.read(args, |conn, (slot, place)| {
                Box::pin(posts::is_at(conn, slot, DISCORD, place))
            });
            if is_here.await? {
                return Ok(true);
            }
        }
        Ok(false)
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
