//! Messages: each is stored for the agent or done at once, where it was written or in
//! a thread of its own.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{Dealt, Desk, lanes::Spot};
use crate::{
    channel::{
        access::{self, Admission, Rules, Source, Standing},
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

/// The waits before Discord is asked about a message. What is said at the same
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
/// How long one answer to that may take.
const LOOK: Duration = Duration::from_secs(5);

impl Desk {
    /// Deals with a message, for as long as that takes.
    pub(super) async fn hear(&self, heard: Heard, known: Option<Place>) -> Dealt {
        let Some((heard, learnt)) = self.known(heard, known).await else { return Dealt::Not };
        match self.take(&heard).await {
            Some(()) => Dealt::Done { learnt },
            None => Dealt::Not,
        }
    }

    /// Finds out what has to be known of a message before anybody can say whether its
    /// author may talk: where it was written, and which roles he has. Nothing if it is to
    /// stop.
    async fn known(
        &self,
        mut heard: Heard,
        place: Option<Place>,
    ) -> Option<(Heard, Option<(String, Place)>)> {
        if heard.guild.is_none() || self.is_for_others(&heard, place.as_ref()) {
            return Some((heard, None));
        }
        let mut learnt = None;
        if heard.is_astray {
            heard.is_astray = false;
            let place = match place {
                Some(place) => Some(place),
                None => {
                    let looked = self.look(&heard, || self.api.channel(&heard.channel)).await?;
                    learnt = looked.clone().map(|place| (heard.channel.clone(), place));
                    looked
                }
            };
            if let Some(Place { name, parent }) = place {
                (heard.channel_name, heard.parent) = (name, parent);
            }
        }
        if let (true, Some(guild)) = (heard.is_unranked, heard.guild.clone()) {
            let looked = self.look(&heard, || self.api.roles_of(&guild, &heard.author.id)).await?;
            heard.is_unranked = looked.is_none();
            heard.roles = looked.unwrap_or_default();
        }
        Some((heard, learnt))
    }

    /// Whether a message is certainly not for the bot, by what is configured now.
    pub(super) fn is_for_others(&self, heard: &Heard, known: Option<&Place>) -> bool {
        let policy = Arc::clone(&self.policy.borrow());
        heard.is_for_others(&policy.discord.access(), known)
    }

    /// Asks Discord about a message, more than once if that may help; the inner one is
    /// nothing if Discord does not say it. Nothing if it is to stop.
    async fn look<T, F>(&self, heard: &Heard, ask: impl Fn() -> F) -> Option<Option<T>>
    where
        F: Future<Output = Result<T, Trouble>>,
    {
        let Heard { channel, message: id, .. } = heard;
        let stop = &self.intake.stop;
        for pause in ASTRAY {
            stop.run_until_cancelled(time::sleep(pause)).await?;
            let looked = stop.run_until_cancelled(time::timeout(LOOK, Box::pin(ask()))).await?;
            let trouble = match looked {
                Ok(Ok(told)) => return Some(Some(told)),
                Ok(Err(trouble)) => trouble,
                Err(_) => Trouble::Late { was_sent: true },
            };
            let why = trouble.to_string();
            tracing::warn!(channel, id, why, "Discord does not say whose a message is");
            if !trouble.may_pass() {
                return Some(None);
            }
        }
        tracing::error!(channel, id, "it stays unknown whose a message is, or where it was");
        Some(None)
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

impl Heard {
    /// Returns where it has its turn.
    pub(super) fn spot(&self) -> Spot {
        Spot { channel: self.channel.clone(), message: self.message.clone() }
    }

    pub(super) fn source(&self) -> Source<'_> {
        Source {
            guild: self.guild.as_deref(),
            channel: &self.channel,
            parent: self.parent.as_deref(),
            sender: &self.author.id,
            roles: &self.roles,
            is_mentioned: self.is_mentioned || self.answers_bot,
        }
    }

    /// Whether it is certainly not for the bot, whoever wrote it. What is known of its place
    /// may be more than what Discord told with it.
    fn is_for_others(&self, rules: &Rules<'_>, known: Option<&Place>) -> bool {
        let is_anywhere = self.is_astray && known.is_none();
        if is_anywhere && !rules.answer_all_in.is_empty() {
            // It may be in a thread of a channel in which everything is for the bot.
            return false;
        }
        let parent = known.and_then(|place| place.parent.as_deref());
        let from = Source { parent: self.parent.as_deref().or(parent), ..self.source() };
        access::admit(rules, &from, Standing::Unknown) == Admission::NotMeant
    }

    fn said(&self) -> Said<'_> {
        Said {
            from: self.source(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{channel::discord::heard::Person, config::Discord};

    /// Something that people say to each other in a channel.
    fn among_people() -> Heard {
        Heard {
            message: "100".to_owned(),
            channel: "50".to_owned(),
            guild: Some("10".to_owned()),
            parent: None,
            is_astray: false,
            channel_name: None,
            author: Person { id: "7".to_owned(), name: "ada".to_owned(), is_bot: false },
            roles: Vec::new(),
            is_unranked: false,
            text: "hello".to_owned(),
            is_mentioned: false,
            attachments: Vec::new(),
            answers_bot: false,
        }
    }

    #[test]
    fn only_what_is_certainly_not_for_the_bot_is_for_others() {
        let nowhere = Discord::default();
        let there = Discord { answer_all_in: vec!["50".to_owned()], ..Discord::default() };
        let elsewhere = Discord { answer_all_in: vec!["51".to_owned()], ..Discord::default() };
        let thread = Place { name: None, parent: Some("50".to_owned()) };
        let said = among_people;
        let astray = || Heard { channel: "60".to_owned(), is_astray: true, ..said() };
        let in_thread = || Heard { parent: thread.parent.clone(), is_astray: false, ..astray() };
        for (config, heard, known, is_expected) in [
            (&nowhere, said(), None, true),
            (&nowhere, astray(), None, true),
            (&nowhere, Heard { guild: None, ..said() }, None, false),
            (&nowhere, Heard { is_mentioned: true, ..said() }, None, false),
            (&nowhere, Heard { answers_bot: true, ..astray() }, None, false),
            (&there, said(), None, false),
            (&there, in_thread(), None, false),
            (&there, astray(), Some(&thread), false),
            (&elsewhere, said(), None, true),
            (&elsewhere, in_thread(), None, true),
            (&elsewhere, astray(), Some(&thread), true),
            // It may be a thread of that channel.
            (&elsewhere, astray(), None, false),
        ] {
            let is_for_others = heard.is_for_others(&config.access(), known);
            assert_eq!(is_for_others, is_expected, "{heard:?} {known:?} {config:?}");
        }
    }
}
