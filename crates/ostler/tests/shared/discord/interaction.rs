//! Interactions: a command, a press or a modal that a person began, and how the
//! bot answered it first. What follows the first answer is in `webhook`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    answer::{Answer, Refusal, Reply},
    checks,
    form::Form,
    message::Message,
    place,
    world::World,
};

/// An interaction as the double keeps it.
#[derive(Clone, Debug)]
pub(super) struct Interaction {
    pub(super) id: u64,
    pub(super) token: String,
    /// The type: 2 is a command, 3 a component, 5 a modal.
    pub(super) kind: u64,
    pub(super) channel: u64,
    pub(super) user: u64,
    /// The message whose component was used.
    pub(super) source: Option<u64>,
    pub(super) started: Instant,
    /// The type of the first answer, and how long it took.
    pub(super) answer: Option<(u64, Duration)>,
    pub(super) modal: Option<Value>,
    /// The message that the first answer made or changed.
    pub(super) response: Option<u64>,
    pub(super) follow_ups: Vec<u64>,
    pub(super) failed: bool,
    /// Whether the token is to be treated as one of more than 15 minutes.
    pub(super) expired: bool,
    pub(super) refused: Vec<u64>,
    /// What the bot was told.
    pub(super) event: Value,
}

/// What came of an interaction.
#[derive(Clone, Debug)]
pub(crate) struct InteractionState {
    pub(crate) answered: bool,
    /// The type of the first answer: 4 message, 5 later, 6 update later, 7 update, 9 modal.
    pub(crate) kind: Option<u64>,
    /// The content of the first answer as it stands, once there is one.
    pub(crate) content: Option<String>,
    pub(crate) ephemeral: bool,
    /// How long the first answer took.
    pub(crate) took: Option<Duration>,
    /// The message of the first answer as it stands.
    pub(crate) response: Option<Message>,
    pub(crate) follow_ups: Vec<Message>,
    /// The modal that was shown.
    pub(crate) modal: Option<Value>,
    /// Whether the person saw that it failed, because no answer came in time.
    pub(crate) failed: bool,
    /// The error codes of first answers that were refused.
    pub(crate) refused: Vec<u64>,
}

impl World {
    /// Returns what came of an interaction.
    pub(crate) fn interaction(&self, id: u64) -> InteractionState {
        let one = self.interactions.get(&id).unwrap_or_else(|| panic!("no interaction {id}"));
        let message = |id: &u64| self.find_message(one.channel, *id).cloned();
        let response = one.response.as_ref().and_then(message);
        let shown = response.as_ref().filter(|message| !message.is_loading());
        InteractionState {
            answered: one.answer.is_some(),
            kind: one.answer.map(|(kind, _)| kind),
            content: shown.map(|message| message.content.clone()),
            ephemeral: response.as_ref().is_some_and(Message::is_ephemeral),
            took: one.answer.map(|(_, took)| took),
            follow_ups: one.follow_ups.iter().filter_map(message).collect(),
            modal: one.modal.clone(),
            failed: one.failed,
            refused: one.refused.clone(),
            response,
        }
    }

    /// Begins an interaction and tells the bot of it.
    pub(super) fn interact(
        &mut self,
        kind: u64,
        channel: u64,
        user: u64,
        source: Option<u64>,
        data: &Value,
    ) -> u64 {
        let id = self.next_id();
        self.join(channel, user);
        let token = format!("aW50ZXJhY3Rpb246{id:x}{:x}", id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let guild = self.guild_of(channel);
        let mut event = json!({
            "id": id.to_string(),
            "application_id": self.application.to_string(),
            "type": kind,
            "data": data,
            "channel_id": channel.to_string(),
            "channel": self.channel_json(channel),
            "token": token,
            "version": 1,
            "app_permissions": place::permissions(),
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": self.owners(channel),
            "context": u64::from(guild.is_none()),
            "attachment_size_limit": 10_485_760,
        });
        if let Some(guild) = guild {
            let mut member = self.full_member_json(guild, user).unwrap();
            member["permissions"] = place::permissions();
            event["member"] = member;
            event["guild_id"] = guild.to_string().into();
            event["guild_locale"] = "en-US".into();
            event["guild"] = json!({ "id": guild.to_string(), "locale": "en-US", "features": [] });
        } else {
            event["user"] = self.user_json(user);
        }
        if let Some(message) = source.and_then(|source| self.find_message(channel, source)) {
            event["message"] = self.message_json(message);
        }
        let one = Interaction {
            id,
            token,
            kind,
            channel,
            user,
            source,
            started: Instant::now(),
            answer: None,
            modal: None,
            response: None,
            follow_ups: Vec::new(),
            failed: false,
            expired: false,
            refused: Vec::new(),
            event: event.clone(),
        };
        self.interactions.insert(id, one);
        self.dispatch("INTERACTION_CREATE", 0, &event);
        id
    }

    /// Returns by whose leave the application is in a channel.
    pub(super) fn owners(&self, channel: u64) -> Value {
        let guild = self.guild_of(channel).map_or_else(|| "0".to_owned(), |id| id.to_string());
        json!({ "0": guild })
    }

    /// Fails an interaction that was not answered in time.
    pub(super) fn give_up(&mut self, id: u64) {
        if let Some(one) = self.interactions.get_mut(&id) {
            one.failed |= one.answer.is_none();
        }
    }

    /// Answers an interaction for the first time.
    pub(super) fn answer(&mut self, id: u64, token: &str, form: &Form, tell: bool) -> Answer {
        let result = self.try_answer(id, token, form, tell);
        if let Err(refusal) = &result
            && let Some(one) = self.interactions.get_mut(&id)
        {
            one.refused.extend(refusal.body["code"].as_u64());
        }
        result
    }

    fn try_answer(&mut self, id: u64, token: &str, form: &Form, tell: bool) -> Answer {
        let one = self.interactions.get_mut(&id).filter(|one| one.token == token);
        let one = one.ok_or_else(Refusal::unknown_interaction)?;
        if one.answer.is_some() {
            return Err(Refusal::already_acknowledged());
        }
        let took = one.started.elapsed();
        if one.failed || took > self.patience {
            one.failed = true;
            return Err(Refusal::unknown_interaction());
        }
        let one = one.clone();
        let kind = form.json["type"].as_u64().unwrap_or(0);
        let fits = match kind {
            4 | 5 => true,
            6 | 7 => one.source.is_some(),
            9 => one.kind != 5,
            _ => false,
        };
        if !fits {
            let message = "Value must be one of the types that this interaction allows.";
            return Err(Refusal::form("type", "BASE_TYPE_CHOICES", message));
        }
        let form = Form { json: form.json["data"].clone(), files: form.files.clone() };
        let response = self.first(&one, kind, &form)?;
        let one = self.interactions.get_mut(&id).unwrap();
        one.answer = Some((kind, took));
        one.response = response;
        one.modal = (kind == 9).then(|| form.json.clone());
        if !tell {
            return Reply::nothing();
        }
        let one = one.clone();
        Reply::ok(self.callback_json(&one, kind))
    }

    /// Does what a first answer says; returns the message that is the original from now on.
    fn first(&mut self, one: &Interaction, kind: u64, form: &Form) -> Result<Option<u64>, Refusal> {
        match kind {
            4 => {
                let mut message = self.draft(one.channel, form)?;
                message.interaction = Some(one.id);
                let id = message.id;
                self.publish(message);
                Ok(Some(id))
            }
            5 => {
                let id = self.next_id();
                let mut message = Message::new(id, one.channel, self.bot, "");
                message.flags = form.json["flags"].as_u64().unwrap_or(0) & (1 << 6);
                message.set_loading();
                message.interaction = Some(one.id);
                self.publish(message);
                Ok(Some(id))
            }
            7 => {
                let source = one.source.and_then(|id| self.find_message(one.channel, id));
                let source = source.cloned().ok_or_else(Refusal::unknown_message)?;
                self.edit(source, form)?;
                Ok(one.source)
            }
            9 => checks::modal(&form.json).map(|()| None),
            _ => Ok(one.source),
        }
    }

    fn callback_json(&self, one: &Interaction, kind: u64) -> Value {
        let mut json = json!({
            "interaction": { "id": one.id.to_string(), "type": one.kind },
        });
        let message = one.response.and_then(|id| self.find_message(one.channel, id));
        if let Some(message) = message {
            json["interaction"]["response_message_id"] = message.id.to_string().into();
            json["interaction"]["response_message_loading"] = message.is_loading().into();
            json["interaction"]["response_message_ephemeral"] = message.is_ephemeral().into();
            json["resource"] = json!({ "type": kind });
            if matches!(kind, 4 | 7) {
                json["resource"]["message"] = self.message_json(message);
            }
        }
        json
    }
}
