//! Messages: each is stored for the agent or done at once, where it was written or in
//! a thread of its own.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{Dealt, Desk, lanes::Spot};
use crate::{
    channel::{
        access::Source,
        chat::intake::{Said, Screened},
        discord::{
            api::Trouble,
            heard::{Heard, Place},
            snowflake,
        },
    },
    gateway::inbound::{Details, Group, Media},
    id::JobId,
};

/// The waits before it is asked where a message was written. What is said at the same
/// place after it waits as well.
const ASTRAY: [Duration; 9] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(3),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(15),
    Duration::from_secs(15),
];
/// How long one look at a channel may take.
const LOOK: Duration = Duration::from_secs(5);

impl Desk {
    /// Deals with a message, for as long as that takes.
    pub(super) async fn hear(&self, heard: Heard, known: Option<Place>) -> Dealt {
        let Some((heard, learnt)) = self.placed(heard, known).await else { return Dealt::Not };
        match self.take(&heard).await {
            Some(()) => Dealt::Done { learnt },
            None => Dealt::Not,
        }
    }

    /// Finds out where a message was written, if that is not known: who may talk can
    /// depend on it. Nothing if it is to stop.
    async fn placed(
        &self,
        mut heard: Heard,
        known: Option<Place>,
    ) -> Option<(Heard, Option<(String, Place)>)> {
        if !heard.is_astray {
            return Some((heard, None));
        }
        if let Some(place) = known {
            return Some((heard.at(place), None));
        }
        let stop = &self.intake.stop;
        for pause in ASTRAY {
            stop.run_until_cancelled(time::sleep(pause)).await?;
            let looked = time::timeout(LOOK, self.api.channel(&heard.channel));
            match stop.run_until_cancelled(looked).await? {
                Ok(Ok(place)) => {
                    let learnt = (heard.channel.clone(), place.clone());
                    return Some((heard.at(place), Some(learnt)));
                }
                Ok(Err(trouble)) if !trouble.may_pass() => {
                    said_astray(&heard, trouble);
                    heard.is_astray = false;
                    return Some((heard, None));
                }
                Ok(Err(trouble)) => said_astray(&heard, trouble),
                Err(_) => said_astray(&heard, Trouble::Late { was_sent: true }),
            }
        }
        let (channel, message) = (&heard.channel, &heard.message);
        tracing::error!(channel, message, "it stays unknown where a message was written");
        Some((heard, None))
    }

    /// Stores a message, or does what it says; nothing if it is to stop.
    async fn take(&self, heard: &Heard) -> Option<()> {
        let said = heard.said();
        let policy = Arc::clone(&self.policy.borrow());
        self.intake.pace.change(policy.discord.messages_per_minute);
        let rules = policy.discord.access();
        // A thread that begins with a message has its id.
        let places = [heard.channel.as_str(), heard.message.as_str()];
        match self.insist(|| self.intake.screen(&said, &rules, &places)).await? {
            Screened::ForAgent => {}
            Screened::Dealt => return Some(()),
        }
        let place = self.place(heard).await?;
        self.insist(|| self.intake.accept(&said, &place)).await.map(drop)
    }

    /// Returns where a message is answered: in a thread that begins with it, if that
    /// is wanted. Such a thread has the id of its message. Nothing if it is to stop.
    async fn place(&self, heard: &Heard) -> Option<String> {
        let threads = self.policy.borrow().discord.threads;
        if !threads || heard.guild.is_none() || heard.parent.is_some() {
            return Some(heard.channel.clone());
        }
        let name: String = heard.text.chars().take(80).collect();
        let name = if name.trim().is_empty() { heard.author.name.clone() } else { name };
        let begun = self.api.begin_thread(&heard.channel, &heard.message, &name);
        match self.intake.stop.run_until_cancelled(begun).await? {
            Ok(thread) => Some(thread),
            Err(error) => {
                tracing::warn!(%error, "no thread could be begun; the answer comes in the channel");
                Some(heard.channel.clone())
            }
        }
    }
}

fn said_astray(heard: &Heard, trouble: Trouble) {
    let (channel, why) = (&heard.channel, trouble.to_string());
    tracing::warn!(channel, why, "a channel of Discord could not be looked at");
}

impl Heard {
    /// Returns where it has its turn.
    pub(super) fn spot(&self) -> Spot {
        Spot { channel: self.channel.clone(), message: self.message.clone() }
    }

    fn at(self, place: Place) -> Self {
        Self { parent: place.parent, channel_name: place.name, is_astray: false, ..self }
    }

    fn said(&self) -> Said<'_> {
        Said {
            from: Source {
                guild: self.guild.as_deref(),
                channel: &self.channel,
                parent: self.parent.as_deref(),
                sender: &self.author.id,
                roles: &self.roles,
                is_mentioned: self.is_mentioned || self.answers_bot,
            },
            message: &self.message,
            name: &self.author.name,
            text: &self.text,
            is_called: true,
            at: snowflake::time_of(&self.message),
            details: self.details(),
            note: JobId::new(),
        }
    }

    /// Returns the group that it was said in, if it was one.
    fn group(&self) -> Option<Group> {
        self.guild.as_ref().map(|_| Group {
            subject: self.channel_name.clone().unwrap_or_default(),
            ..Group::default()
        })
    }

    /// Returns what else is known of it.
    fn details(&self) -> Details {
        let media = self.attachments.iter().map(|attached| Media {
            path: None,
            url: Some(attached.url.clone()),
            media_type: attached.media_type.clone(),
            ..Media::default()
        });
        Details {
            sender_name: Some(self.author.name.clone()),
            group: self.group(),
            media: media.collect(),
            ..Details::default()
        }
    }
}
