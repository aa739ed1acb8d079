//! What is done with the token of an interaction after its first answer.

use std::time::Duration;

use super::{
    answer::{Answer, Refusal, Reply},
    checks,
    form::Form,
    interaction::Interaction,
    message::Message,
    world::World,
};

/// How long a token is valid.
const VALID: Duration = Duration::from_secs(15 * 60);

impl World {
    fn by_token(&self, application: u64, token: &str) -> Result<Interaction, Refusal> {
        let one = self.interactions.values().rev().find(|one| one.token == token);
        let one = one.filter(|_| application == self.application);
        let one = one.ok_or_else(Refusal::unknown_webhook)?;
        if one.expired || one.started.elapsed() > VALID {
            return Err(Refusal::webhook_token());
        }
        // There is nothing to follow before the first answer.
        if one.answer.is_none() {
            return Err(Refusal::unknown_webhook());
        }
        Ok(one.clone())
    }

    /// Finds `@original` or a follow-up.
    fn followed(&self, one: &Interaction, id: &str) -> Result<Message, Refusal> {
        let id = match id {
            "@original" => one.response,
            id => id
                .parse()
                .ok()
                .filter(|id| one.response == Some(*id) || one.follow_ups.contains(id)),
        };
        let message = id.and_then(|id| self.find_message(one.channel, id));
        message.cloned().ok_or_else(Refusal::unknown_message)
    }

    pub(super) fn follow_up(&mut self, application: u64, token: &str, form: &Form) -> Answer {
        let one = self.by_token(application, token)?;
        // The first follow-up of an answer that was put off is that answer.
        if let Ok(original) = self.followed(&one, "@original")
            && original.is_loading()
        {
            let json = self.edit(original, form)?;
            return Reply::ok(json);
        }
        checks::message(&form.json)?;
        let mut message = self.draft(one.channel, form)?;
        message.interaction = Some(one.id);
        let id = message.id;
        let json = self.publish(message);
        self.interactions.get_mut(&one.id).unwrap().follow_ups.push(id);
        Reply::ok(json)
    }

    pub(super) fn get_followed(&self, application: u64, token: &str, id: &str) -> Answer {
        let one = self.by_token(application, token)?;
        let message = self.followed(&one, id)?;
        Reply::ok(self.message_json(&message))
    }

    pub(super) fn edit_followed(
        &mut self,
        application: u64,
        token: &str,
        id: &str,
        form: &Form,
    ) -> Answer {
        let one = self.by_token(application, token)?;
        let message = self.followed(&one, id)?;
        let json = self.edit(message, form)?;
        Reply::ok(json)
    }

    pub(super) fn delete_followed(&mut self, application: u64, token: &str, id: &str) -> Answer {
        let one = self.by_token(application, token)?;
        let message = self.followed(&one, id)?;
        self.remove(message.channel, message.id);
        Reply::nothing()
    }
}
