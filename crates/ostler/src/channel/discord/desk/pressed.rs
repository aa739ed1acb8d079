//! Buttons: answers to what an agent asks, by who may talk there.

use std::sync::Arc;

use super::Desk;
use crate::{
    channel::{
        access::{Admission, Source},
        chat::intake::Given,
        discord::{api::Response, heard::Pressed},
    },
    id::PermissionId,
};

impl Desk {
    /// Deals with a button, or with what was typed for one.
    pub(super) async fn pressed(&self, pressed: Pressed) {
        let Some((request, choice)) = pressed.id.split_once(':') else { return };
        let Ok(request) = request.parse::<PermissionId>() else { return };
        if choice == "text" && pressed.text.is_none() {
            let response = Response::Ask {
                id: pressed.id.clone(),
                title: "Answer".to_owned(),
                label: "Your answer".to_owned(),
            };
            self.respond(&pressed.ticket, response).await;
            return;
        }
        // Said first: the answer may take longer than Discord waits.
        self.respond(&pressed.ticket, Response::Nothing).await;
        if let Err(why) = self.answer(&pressed, request, choice).await
            && let Err(error) = self.api.whisper(&pressed.ticket, &why).await
        {
            tracing::info!(%error, "a refusal could not be told");
        }
    }

    /// Answers a request; the error is for the person.
    async fn answer(
        &self,
        pressed: &Pressed,
        request: PermissionId,
        choice: &str,
    ) -> Result<(), String> {
        let policy = Arc::clone(&self.policy.borrow());
        let rules = policy.discord.access();
        let from = Source {
            guild: pressed.guild.as_deref(),
            channel: &pressed.channel,
            parent: pressed.parent.as_deref(),
            sender: &pressed.person.id,
            roles: &pressed.roles,
            is_mentioned: true,
        };
        // Whoever asked may have been shut out since.
        match self.intake.admission(&from, &rules).await {
            Ok((Admission::Admitted, _)) => {}
            Ok((Admission::Stranger | Admission::NotMeant, _)) => {
                return Err("You may not talk to me here.".to_owned());
            }
            Err(error) => return Err(format!("That did not work: {error}. Try again.")),
        }
        let (text, place) = (pressed.text.as_deref(), pressed.channel.as_str());
        let sender = &pressed.person.id;
        let given = Given { request, choice, text, message: None, place, sender };
        self.intake.answer(given, &rules).await
    }
}
