//! What becomes of what people write: stored for the agent, done at once, taken as
//! the answer to what an agent asks, or kept as what was said in a group. However it
//! came, and however often.

mod answer;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use tokio::sync::{Mutex, MutexGuard, watch};

pub(super) use self::answer::request_of;
use super::{
    bound::Bound,
    heard::Heard,
    kind::Kind,
    window::{WAITS, WINDOW},
};
use crate::{
    channel::{
        access::{Admission, Rules, Source},
        chat::intake::{Intake, NotTaken, Said, Screened, Taken},
        directive,
    },
    clock::Millis,
    gateway::{
        inbound::{Details, Group, Line},
        policy::Policy,
    },
    id::JobId,
    store::{
        StoreError, contacts, outbox,
        overheard::{self, Overheard},
    },
};

/// The longest text that is kept of what was not said to the agent.
const OVERHEARD: usize = 2000;

/// How many places are dealt with at once.
const AT_ONCE: usize = 64;

/// Lets what is written at a place be dealt with one by one: what comes twice at once
/// is known the second time. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Turnstile(Arc<[Mutex<()>]>);

impl Default for Turnstile {
    fn default() -> Self {
        Self((0..AT_ONCE).map(|_| Mutex::default()).collect())
    }
}

impl Turnstile {
    async fn pass(&self, place: &str) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        place.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % AT_ONCE as u64).unwrap_or_default();
        Some(self.0.get(at)?.lock().await)
    }
}

/// Whoever deals with it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    /// One for each sort of conversations that is configured.
    pub(crate) intakes: Vec<(Kind, Intake)>,
    /// The numbers that are this gateway's.
    pub(crate) own: Vec<String>,
    pub(crate) bound: Bound,
    pub(crate) policy: watch::Receiver<Arc<Policy>>,
    pub(crate) turnstile: Turnstile,
}

impl Desk {
    pub(crate) fn intake(&self, kind: Kind) -> Option<&Intake> {
        self.intakes.iter().find(|(of, _)| *of == kind).map(|(_, intake)| intake)
    }

    /// Deals with a message, once. The error says that it has to be told again.
    pub(crate) async fn heard(&self, heard: &Heard) -> Result<(), NotTaken> {
        let Some(intake) = self.intake(heard.kind) else {
            tracing::warn!(
                channel = heard.kind.channel(),
                "a message came that cannot be answered"
            );
            return Ok(());
        };
        let _passed = self.turnstile.pass(&heard.place).await;
        if intake.is_known(&heard.message, &[&heard.place]).await? {
            return Ok(());
        }
        // Who has no number in a group is a program's, or nobody that could be listed.
        let is_nobody = heard.is_own || !crate::channel::is_number(&heard.from);
        if is_nobody || self.own.contains(&heard.from) {
            // What is found later does not say by what it was written.
            intake.note_once(&heard.place, &heard.message).await?;
            return Ok(());
        }
        self.note_contact(intake, heard).await?;
        if self.bound.has(heard).await {
            // It was said in a group, and is heard of there.
            let channel = heard.kind.channel();
            tracing::info!(channel, id = heard.message, "a message to a number is a group's");
            intake.note_once(&heard.place, &heard.message).await?;
            return Ok(());
        }
        if self.deal(intake, heard).await? == Dealt::Unstored {
            intake.note_once(&heard.place, &heard.message).await?;
        }
        Ok(())
    }

    /// Waits until what is written to a number can be told from what is said in a group;
    /// not for long. Returns whether it can.
    pub(crate) async fn knows_groups(&self) -> bool {
        let groups = self.policy.borrow().twilio.groups.clone();
        self.bound.is_ready(&groups).await
    }

    async fn deal(&self, intake: &Intake, heard: &Heard) -> Result<Dealt, NotTaken> {
        let policy = Arc::clone(&self.policy.borrow());
        let twilio = &policy.twilio;
        intake.pace.change(twilio.messages_per_minute);
        let rules = twilio.access();
        let is_group = heard.kind == Kind::Group;
        let is_called =
            !is_group || heard.is_called_by(&twilio.group_words, &twilio.group_patterns);
        let mut said = heard.said(is_called);
        if is_group {
            said.text = heard.without_call(&twilio.group_words);
        }
        let is_directive = directive::read(said.text).is_some();
        // In a group somebody is whom he is known as elsewhere.
        let intake = &Intake { people: heard.by.channel(), ..intake.clone() };
        if !is_directive && let Some(meant) = self.answer_of(intake, heard, is_called).await? {
            // He may be asked without being called, but not without being let in.
            let from = Source { is_mentioned: true, ..said.from };
            let (admission, _) = intake.admission(&from, &rules).await?;
            if admission == Admission::Admitted {
                // He is told if it is not taken, and must not have that without end.
                if intake.is_unread(&said, intake.pace.allow(&heard.from)) {
                    return Ok(Dealt::Unstored);
                }
                self.answer(intake, heard, meant, &rules).await?;
                return Ok(Dealt::Stored);
            }
        }
        if is_group && !is_called && !is_directive {
            self.overhear(intake, heard, &rules, &twilio.groups).await?;
            return Ok(Dealt::Unstored);
        }
        // Whoever says nothing but such a word means the agent.
        said.from.is_mentioned |= is_directive;
        let place = heard.place.as_str();
        match intake.screen(&said, &rules, &[place]).await? {
            Screened::Dealt => return Ok(Dealt::Unstored),
            Screened::ForAgent => {}
        }
        let before = if is_group { overheard_at(intake, place).await? } else { Vec::new() };
        if let Some(group) = &mut said.details.group {
            let line = |it: &Overheard| Line { name: it.name.clone(), text: it.text.clone() };
            let kept = usize::try_from(twilio.group_context).unwrap_or(usize::MAX);
            group.before = before.iter().rev().take(kept).rev().map(line).collect();
        }
        if intake.accept(&said, place).await? == Taken::Refused {
            return Ok(Dealt::Unstored);
        }
        if !before.is_empty() {
            let told = intake.store.write_repeatable(before, |conn, before| {
                Box::pin(overheard::told(conn, Kind::Group.channel(), before))
            });
            told.await?;
        }
        Ok(Dealt::Stored)
    }

    /// Notes that somebody wrote, and lets what waited for that leave.
    async fn note_contact(&self, intake: &Intake, heard: &Heard) -> Result<(), StoreError> {
        if heard.kind != Kind::WhatsApp {
            return Ok(());
        }
        let now = Millis::now();
        let at = heard.at.map_or(now, |at| Millis(at.as_millisecond()));
        // By what he wrote before that he cannot be answered any more.
        if at.after(WINDOW) <= now {
            return Ok(());
        }
        let args = (intake.channel, heard.place.clone(), at);
        let noted = intake.store.write_repeatable(args, |conn, (channel, place, at)| {
            Box::pin(async move {
                contacts::heard(conn, channel, place, *at).await?;
                outbox::release(conn, channel, place, WAITS).await
            })
        });
        noted.await.map(drop)
    }

    /// Keeps what was said among others, if the agent takes part there.
    async fn overhear(
        &self,
        intake: &Intake,
        heard: &Heard,
        rules: &Rules<'_>,
        groups: &[String],
    ) -> Result<(), StoreError> {
        let keep = self.policy.borrow().twilio.group_context;
        let is_listed = groups.contains(&heard.place);
        let is_there = is_listed || {
            let said = heard.said(true);
            intake.admission(&said.from, rules).await?.0 == Admission::Admitted
        };
        if !is_there || keep == 0 || heard.text.trim().is_empty() {
            return Ok(());
        }
        let said = Overheard {
            message: heard.message.clone(),
            name: heard.called().to_owned(),
            text: heard.text.chars().take(OVERHEARD).collect(),
            heard_at: Millis::now(),
        };
        let args = (intake.channel, heard.place.clone(), said, keep);
        let noted = intake.store.write_repeatable(args, |conn, (channel, place, said, keep)| {
            Box::pin(overheard::note(conn, channel, place, said, *keep))
        });
        noted.await
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dealt {
    /// The store knows it by its name.
    Stored,
    /// Nothing is left to do, and the store may not know that.
    Unstored,
}

async fn overheard_at(intake: &Intake, place: &str) -> Result<Vec<Overheard>, StoreError> {
    let args = (intake.channel, place.to_owned());
    intake
        .store
        .read(args, |conn, (channel, place)| Box::pin(overheard::at(conn, channel, place)))
        .await
}

impl Heard {
    fn said(&self, is_mentioned: bool) -> Said<'_> {
        let is_group = self.kind == Kind::Group;
        Said {
            from: Source {
                guild: is_group.then_some(self.place.as_str()),
                channel: &self.place,
                parent: None,
                sender: &self.from,
                roles: &[],
                is_mentioned,
            },
            message: &self.message,
            name: self.called(),
            text: &self.text,
            is_called: is_mentioned,
            at: self.at,
            details: Details {
                sender_name: Some(self.called().to_owned()),
                sender_number: crate::channel::is_number(&self.from).then(|| self.from.clone()),
                to: self.to.clone(),
                group: is_group.then(Group::default),
                media: self.media.clone(),
                transcript: None,
            },
            note: JobId::new(),
        }
    }
}
