//! What is the same in all chats when somebody says something: whether he is let
//! in, whether it was dealt with before, and whether it is a word for the gateway
//! or a message for the agent. Where it was said and how it came is up to the chat.

mod answering;
mod directing;
mod stranger;
mod telling;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::{
    answering::Given,
    telling::{Twice, insist},
};
use super::Chat;
use crate::{
    channel::{
        access::{self, Admission, Rules, Source, Standing},
        directive::{self, Directive},
        pace::{Pace, Verdict},
    },
    gateway::{
        Gateway,
        directing::NOTHING_RUNS,
        inbound::{Details, Inbound, Origin, Refusal},
    },
    id::JobId,
    queue::{EnqueueError, MessageKey},
    store::{Store, StoreError, conversations::Address, jobs, pairings},
    wishes::Wishes,
};

/// What is told later than this after it was said is not counted.
const LATE: SignedDuration = SignedDuration::from_mins(1);

/// Whoever takes what is said in a chat. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Intake {
    pub(crate) channel: &'static str,
    /// The channel that its people are known by.
    pub(crate) people: &'static str,
    pub(crate) chat: Arc<dyn Chat>,
    pub(crate) gateway: Gateway,
    pub(crate) store: Store,
    pub(crate) pace: Arc<Pace>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

/// Something that was said.
#[derive(Clone, Debug)]
pub(crate) struct Said<'a> {
    pub(crate) from: Source<'a>,
    /// What the chat calls it.
    pub(crate) message: &'a str,
    /// What the sender calls himself.
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// Whether it was said to the bot for certain. Whoever may have meant somebody else
    /// is not told that there was nothing to do.
    pub(crate) is_called: bool,
    /// When it was said, if the chat says so.
    pub(crate) at: Option<Timestamp>,
    pub(crate) details: Details,
    /// Under which id it is noted that it was dealt with, if it becomes no job. It is made
    /// once: by it somebody who does not know whether his note was taken finds it.
    pub(crate) note: JobId,
}

impl Said<'_> {
    /// Whether it was said a while ago, and is told only now: nobody was there to hear
    /// it. It does not count for how often its sender writes.
    pub(crate) fn is_late(&self, now: Timestamp) -> bool {
        self.at.is_some_and(|at| now.duration_since(at) > LATE)
    }
}

/// What is left to do with something that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screened {
    /// Nothing.
    Dealt,
    /// It is for the agent.
    ForAgent,
}

/// What became of a message for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The store knows it by its name.
    Stored,
    /// It will not be answered, and its sender is told so.
    Refused,
}

/// What becomes of a message that was offered for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// The store knows it by its name.
    Stored,
    /// It will not be answered, and this is what its sender is to be told.
    Refused(String),
}

/// Why something was not taken. It is to be offered again.
#[derive(Debug)]
pub(crate) enum NotTaken {
    Store(StoreError),
    Stopping,
}

impl From<StoreError> for NotTaken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Intake {
    /// Looks at something that was said, and deals with it if it is not for the
    /// agent. A message that became a job at one of these places was dealt with.
    pub(crate) async fn screen(
        &self,
        said: &Said<'_>,
        rules: &Rules<'_>,
        places: &[&str],
    ) -> Result<Screened, StoreError> {
        let (admission, standing) = self.admission(&said.from, rules).await?;
        match admission {
            Admission::NotMeant => return Ok(Screened::Dealt),
            Admission::Stranger => {
                self.stranger(said, rules, standing).await?;
                return Ok(Screened::Dealt);
            }
            Admission::Admitted => {}
        }
        // What is told again costs its sender nothing.
        let noted = self.noted_as(said.message, places).await?;
        if noted.is_some_and(|noted| noted != said.note) {
            return Ok(Screened::Dealt);
        }
        let directive = directive::read(said.text);
        if directive.as_ref().is_none_or(is_counted)
            && !said.is_late(Timestamp::now())
            && self.is_unread(said, self.pace.allow_named(said.from.sender, said.message))
        {
            return Ok(Screened::Dealt);
        }
        if let Some(directive) = directive {
            let answer = self.direct_once(said, rules, &directive).await?;
            if let Some(answer) = answer.filter(|it| said.is_called || it != NOTHING_RUNS) {
                self.tell(said.from.channel, said.message, answer);
            }
            return Ok(Screened::Dealt);
        }
        if said.text.trim().is_empty() && said.details.media.is_empty() {
            self.tell(said.from.channel, said.message, "What can I do for you?".to_owned());
            return Ok(Screened::Dealt);
        }
        Ok(Screened::ForAgent)
    }

    /// Whether a message is not read, for it was written too fast. The log says which, and
    /// its sender is told once, for what he writes next as well.
    pub(crate) fn is_unread(&self, said: &Said<'_>, verdict: Verdict) -> bool {
        let Verdict::Slow { wait, is_first } = verdict else { return false };
        let (channel, place, sender) = (self.channel, said.from.channel, said.from.sender);
        let id = said.message;
        tracing::info!(channel, place, sender, id, "a message that came too fast is not read");
        if is_first {
            self.tell(place, id, too_fast(wait));
        }
        true
    }

    /// Returns whether somebody may talk to the bot, and what is known of him.
    pub(crate) async fn admission(
        &self,
        from: &Source<'_>,
        rules: &Rules<'_>,
    ) -> Result<(Admission, Standing), StoreError> {
        let first = access::admit(rules, from, Standing::Unknown);
        // Whoever is not meant is not looked up.
        if first == Admission::NotMeant {
            return Ok((first, Standing::Unknown));
        }
        let person = self.known_as(from.sender);
        let standing =
            self.store.read(person, |conn, person| Box::pin(pairings::standing(conn, person)));
        let standing = standing.await?;
        Ok((access::admit(rules, from, standing), standing))
    }

    /// Whether a message was dealt with before, at one of these places.
    pub(crate) async fn is_known(
        &self,
        message: &str,
        places: &[&str],
    ) -> Result<bool, StoreError> {
        Ok(self.noted_as(message, places).await?.is_some())
    }

    /// Returns under which id a message was noted, at the first of these places where it
    /// was.
    async fn noted_as(&self, message: &str, places: &[&str]) -> Result<Option<JobId>, StoreError> {
        for place in places {
            let key = MessageKey::new(self.channel, place, message);
            let noted = self.store.read(key, |conn, key| Box::pin(jobs::noted_as(conn, key)));
            if let Some(noted) = noted.await? {
                return Ok(Some(noted));
            }
        }
        Ok(None)
    }

    /// Stores a message for the agent, which answers at a place. Whoever is refused is
    /// told why.
    pub(crate) async fn accept(&self, said: &Said<'_>, place: &str) -> Result<Taken, NotTaken> {
        match self.offer(said, place).await? {
            Offered::Stored => Ok(Taken::Stored),
            Offered::Refused(why) => {
                self.tell(said.from.channel, said.message, why);
                Ok(Taken::Refused)
            }
        }
    }

    /// Stores a message for the agent, which answers at a place, if it is taken.
    pub(crate) async fn offer(&self, said: &Said<'_>, place: &str) -> Result<Offered, NotTaken> {
        let address = match Address::new(self.channel, place) {
            Ok(address) => address,
            Err(error) => return Ok(Offered::Refused(format!("⚠️ {error}"))),
        };
        let inbound = Inbound {
            address,
            sender: said.from.sender.to_owned(),
            message: Some(said.message.to_owned()),
            text: said.text.to_owned(),
            wishes: Wishes::default(),
            origin: Origin::Person,
            details: said.details.clone(),
            belongs: None,
            words: None,
        };
        match self.gateway.accept(inbound).await {
            Ok(accepted) => {
                if !accepted.is_again && self.chat.has_room() {
                    let (chat, place) = (Arc::clone(&self.chat), place.to_owned());
                    let message = said.message.to_owned();
                    // A sign of life; if it does not get through, the answer will.
                    self.spawn(async move { drop(chat.typing(&place, Some(&message)).await) });
                }
                Ok(Offered::Stored)
            }
            Err(Refusal::Enqueue(EnqueueError::Store(error))) => Err(NotTaken::Store(error)),
            Err(Refusal::Stopping) => Err(NotTaken::Stopping),
            Err(refusal) => Ok(Offered::Refused(format!("⚠️ {refusal}"))),
        }
    }

    /// Does something beside what happens next.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }

    /// Returns by whom the store knows somebody.
    fn known_as(&self, sender: &str) -> pairings::Person {
        pairings::Person { channel: self.people.to_owned(), sender: sender.to_owned() }
    }
}

/// Whether a word for the gateway counts for how often its sender writes. Who wants an
/// end of what runs is not to wait for it.
pub(crate) fn is_counted(directive: &Directive) -> bool {
    *directive != Directive::Stop
}

/// Returns what somebody is told who writes too often.
pub(crate) fn too_fast(wait: Duration) -> String {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    format!(
        "That is too fast for me: I do not read it, nor what you write in the next {seconds} s. \
         Say it again then."
    )
}

#[cfg(test)]
mod tests;
