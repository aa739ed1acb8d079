//! Asks Twilio for messages: all the time where Twilio cannot call, and now and then
//! where it can, for it calls once, and what was written while nobody answered would
//! be lost. What is known already is passed over by its name.

mod waiting;

use std::{collections::HashSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::{
    sync::Notify,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    api::{Api, Listed, Message, Wanted},
    delivery::{Delivered, Delivery},
    desk::Desk,
    heard::{FILES, Heard, Shelf, medium, nowhere},
    kind::Kind,
};
use crate::{
    channel::chat::intake::NotTaken,
    clock::Millis,
    config::{Receive, Twilio},
    store::{StoreError, choices},
};

/// How often Twilio is asked that can call.
const CATCH_UP: Duration = Duration::from_secs(120);
/// How much of what was asked for before is asked for again: a message may be there
/// later than it says.
const OVERLAP: SignedDuration = SignedDuration::from_mins(5);
/// What is older than that is not answered any more.
const OLDEST: SignedDuration = SignedDuration::from_hours(6 * 24);
/// The longest wait after Twilio did not answer.
const LONGEST: Duration = Duration::from_secs(300);
/// The name under which it is kept up to when messages are known.
const POSITION: &str = "twilio_position";

/// For how long a message is left to Twilio's call, which says more of it: what it
/// refers to, and which button was pressed.
const YOUNG: SignedDuration = SignedDuration::from_secs(30);
/// How long after a start a message may seem to be written that was written before it:
/// clocks are compared by the second.
const STARTING: SignedDuration = SignedDuration::from_secs(5);

/// The wait after a call was not taken, until it is asked for.
const SOON: Duration = Duration::from_secs(3);

/// Whoever asks.
pub(crate) struct Poll {
    pub(crate) api: Arc<Api>,
    pub(crate) desk: Desk,
    pub(crate) delivery: Delivery,
    pub(crate) config: Arc<Twilio>,
    /// Told when a call of Twilio's was not taken.
    pub(crate) missed: Arc<Notify>,
}

/// How far somebody has looked.
#[derive(Debug, Default)]
struct Seen {
    begun: Option<Timestamp>,
    /// Up to when messages are known.
    since: Option<Timestamp>,
    /// When what waits was last let go.
    released: Option<Instant>,
    /// Whether a call was not taken since it was last looked: it does not come again.
    has_missed: bool,
    /// The groups that nobody may look at, of which the operator was told.
    refused: HashSet<String>,
}

/// What messages go through.
#[derive(Clone, Debug)]
enum Way<'a> {
    /// A number, as Twilio writes it.
    Number(String),
    /// A service, which has numbers that only Twilio knows.
    Service(&'a str),
}

impl Poll {
    /// Asks until it is to stop.
    pub(crate) async fn work(&self, stop: &CancellationToken) {
        let every = match self.config.receives() {
            Receive::Polling => self.config.poll_every,
            Receive::Webhook => CATCH_UP,
        };
        let mut seen = Seen::default();
        let mut n_failures = 0u32;
        while !stop.is_cancelled() {
            let wait = match self.look_on(&mut seen).await {
                Ok(()) => {
                    n_failures = 0;
                    seen.has_missed = false;
                    every
                }
                Err(why) => {
                    n_failures = n_failures.saturating_add(1);
                    tracing::warn!("Twilio could not be asked for messages: {why}");
                    let first = every.min(SOON);
                    first.saturating_mul(1 << n_failures.min(8)).min(LONGEST)
                }
            };
            let waited = async {
                tokio::select! {
                    () = time::sleep(wait) => false,
                    () = self.missed.notified() => {
                        time::sleep(SOON.min(wait)).await;
                        true
                    }
                }
            };
            seen.has_missed |= stop.run_until_cancelled(waited).await.unwrap_or_default();
        }
    }

    /// Looks at what was not looked at before, and notes up to when that was.
    async fn look_on(&self, seen: &mut Seen) -> Result<(), String> {
        let begun = self.begin(seen).await?;
        // Twilio's clock counts: it says when messages came.
        let now = by_twilios_clock(Timestamp::now(), self.ahead());
        let from = match seen.since {
            Some(since) => since,
            None => {
                let begun = by_twilios_clock(begun, self.ahead());
                self.position(begun).await.map_err(|error| error.chain())?
            }
        };
        seen.since = Some(from);
        self.release(seen).await.map_err(|error| error.chain())?;
        self.look(from, seen).await?;
        // It never goes back: what was written before the first look is not answered.
        let known = from.max(now.saturating_sub(OVERLAP).unwrap_or(from));
        seen.since = Some(known);
        self.keep(known).await.map_err(|error| error.chain())
    }

    /// Returns when looking began. What time it is at Twilio is known then: it says so with
    /// whatever it answers.
    async fn begin(&self, seen: &mut Seen) -> Result<Timestamp, String> {
        let begun = *seen.begun.get_or_insert_with(Timestamp::now);
        if self.api.clock_skew().is_none()
            && let Err(trouble) = self.api.may_look().await
            && self.api.clock_skew().is_none()
        {
            return Err(trouble.to_string());
        }
        Ok(begun)
    }

    /// Returns how far this machine's clock is ahead of Twilio's.
    fn ahead(&self) -> SignedDuration {
        self.api.clock_skew().unwrap_or_default()
    }

    /// Returns what messages go through.
    fn ways(&self) -> Vec<Way<'_>> {
        let number = |kind: Kind, number: &str| Way::Number(kind.address(number));
        let whatsapp = self.config.whatsapp_number().map(|it| number(Kind::WhatsApp, it));
        let sms = self.config.sms_from.as_deref().map(|it| number(Kind::Sms, it));
        let service = self.config.messaging_service.as_deref().map(Way::Service);
        [whatsapp, sms, service].into_iter().flatten().collect()
    }

    /// Deals with everything that was written since a time.
    async fn look(&self, since: Timestamp, seen: &mut Seen) -> Result<(), String> {
        let oldest = Timestamp::now().saturating_sub(OLDEST).unwrap_or(since);
        let since = since.max(oldest);
        // Twilio writes moments by the second.
        let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
        let groups = self.desk.policy.borrow().twilio.groups.clone();
        self.desk.bound.refresh(&groups).await.map_err(|trouble| trouble.to_string())?;
        for way in self.ways() {
            let (own, service) = match &way {
                Way::Number(number) => (Some(number.as_str()), None),
                Way::Service(service) => (None, Some(*service)),
            };
            let is_of = |message: &&Message| {
                let of = message.messaging_service_sid.as_deref();
                service.is_none_or(|service| of == Some(service))
            };
            let came = Wanted { to: own, from: None, since, is_dated: true };
            let came = self.api.messages(came).await.map_err(|trouble| trouble.to_string())?;
            for message in came.iter().rev().filter(is_of) {
                if !self.is_left(message.made_at(), seen) {
                    self.take(message).await?;
                }
            }
            let went = Wanted { to: None, from: own, since, is_dated: false };
            let went = self.api.messages(went).await.map_err(|trouble| trouble.to_string())?;
            for delivered in went.iter().rev().filter(is_of).filter_map(Delivered::of) {
                let noted = self.delivery.note_late(&delivered).await;
                noted.map_err(|error| error.chain())?;
            }
        }
        for group in &groups {
            let found = match self.api.group(group, since).await {
                Ok(found) => found,
                // A group that cannot be looked at is no reason to hear nobody.
                Err(trouble) if trouble.is_lasting() => {
                    if seen.refused.insert(group.clone()) {
                        tracing::warn!(group, "a group is not looked at: {trouble}");
                    }
                    continue;
                }
                Err(trouble) => return Err(trouble.to_string()),
            };
            seen.refused.remove(group);
            for message in found.iter().rev() {
                if message.date_created.is_none_or(|at| since <= at)
                    && !self.is_left(message.date_created, seen)
                {
                    self.take_of_group(group, message).await?;
                }
            }
        }
        Ok(())
    }

    /// Whether a message is left to Twilio's call. It is looked for again.
    fn is_left(&self, made_at: Option<Timestamp>, seen: &Seen) -> bool {
        let is_called = self.config.receives() == Receive::Webhook && !seen.has_missed;
        let made_at = by_own_clock(made_at, self.ahead()).filter(|_| is_called);
        made_at.zip(seen.begun).is_some_and(|(at, begun)| is_young(at, begun, Timestamp::now()))
    }

    async fn take(&self, message: &Message) -> Result<(), String> {
        let is_inbound = message.direction.as_deref() == Some("inbound");
        let heard = heard(message, self.ahead()).filter(|_| is_inbound);
        let Some(mut heard) = heard else { return Ok(()) };
        if self.is_known(&heard).await? {
            return Ok(());
        }
        if message.n_media() > 0 {
            heard.media = match self.api.files(&heard.message).await {
                Ok(files) => files.iter().map(|(url, kind)| medium(url, kind.as_deref())).collect(),
                // Files that are not to be had are no reason to hear nobody.
                Err(trouble) if trouble.is_lasting() => {
                    vec![nowhere(None); message.n_media().min(FILES)]
                }
                Err(trouble) => return Err(trouble.to_string()),
            };
        }
        self.tell(&heard).await
    }

    async fn take_of_group(&self, group: &str, message: &Listed) -> Result<(), String> {
        let Some(mut heard) = of_group(group, message, self.ahead()) else { return Ok(()) };
        let files = message.media.as_deref().unwrap_or_default();
        if !files.is_empty() {
            if self.is_known(&heard).await? {
                return Ok(());
            }
            let service = match self.api.chat_service(group).await {
                Ok(service) => service,
                Err(trouble) if trouble.is_lasting() => None,
                Err(trouble) => return Err(trouble.to_string()),
            };
            let all = self.api.media_url();
            let shelf = Shelf { files: &all, service: service.as_deref() };
            let files = files.iter().take(FILES);
            let media =
                files.map(|file| shelf.medium(file.sid.as_deref(), file.content_type.clone()));
            heard.media = media.collect();
        }
        self.tell(&heard).await
    }

    /// Whether nothing is to be done about a message: it is known, or not answered here.
    async fn is_known(&self, heard: &Heard) -> Result<bool, String> {
        let Some(intake) = self.desk.intake(heard.kind) else { return Ok(true) };
        let known = intake.is_known(&heard.message, &[&heard.place]).await;
        known.map_err(|error| error.to_string())
    }

    async fn tell(&self, heard: &Heard) -> Result<(), String> {
        match self.desk.heard(heard).await {
            Ok(()) => Ok(()),
            // It would stand in the way of all others for ever.
            Err(NotTaken::Store(error)) if error.is_refusal() => {
                let (id, why) = (&heard.message, error.chain());
                tracing::error!(id, why, "a message is passed over, for the store refuses it");
                Ok(())
            }
            Err(NotTaken::Store(error)) => Err(error.chain()),
            Err(NotTaken::Stopping) => Err("the gateway stops".to_owned()),
        }
    }

    /// Returns up to when messages are known. Who looks for the first time begins now.
    async fn position(&self, now: Timestamp) -> Result<Timestamp, StoreError> {
        let found =
            self.delivery.store.read((), |conn, ()| Box::pin(choices::find(conn, POSITION)));
        let found: Option<String> = found.await?;
        match found.and_then(|text| text.parse().ok()) {
            Some(since) => Ok(since),
            None => self.keep(now).await.map(|()| now),
        }
    }

    async fn keep(&self, since: Timestamp) -> Result<(), StoreError> {
        let args = (since.to_string(), Millis::now());
        let kept = self.delivery.store.write_repeatable(args, |conn, (text, now)| {
            Box::pin(choices::keep(conn, POSITION, text, *now))
        });
        kept.await
    }
}

/// Whether Twilio may be about to tell of a message by itself. Of what was written before
/// this gateway could be called it does not.
fn is_young(made_at: Timestamp, begun: Timestamp, now: Timestamp) -> bool {
    let started = begun.saturating_add(STARTING).unwrap_or(begun);
    started <= made_at && now.duration_since(made_at) < YOUNG
}

/// Returns a moment of this machine's by Twilio's clock.
fn by_twilios_clock(at: Timestamp, ahead: SignedDuration) -> Timestamp {
    at.saturating_sub(ahead).unwrap_or(at)
}

/// Returns a moment of Twilio's by this machine's clock.
fn by_own_clock(at: Option<Timestamp>, ahead: SignedDuration) -> Option<Timestamp> {
    at.map(|at| at.saturating_add(ahead).unwrap_or(at))
}

/// Reads a message that Twilio has.
fn heard(message: &Message, ahead: SignedDuration) -> Option<Heard> {
    let (kind, from) = Kind::of(message.from.as_deref()?);
    let (_, to) = Kind::of(message.to.as_deref()?);
    crate::channel::is_number(from).then(|| Heard {
        kind,
        by: kind,
        message: message.sid.clone(),
        place: from.to_owned(),
        from: from.to_owned(),
        name: None,
        to: Some(to.to_owned()),
        text: message.body.clone().unwrap_or_default(),
        media: Vec::new(),
        answers: None,
        is_own: from == to,
        at: by_own_clock(message.made_at(), ahead),
    })
}

/// Reads a message of a group's. One without a participant is a program's.
fn of_group(group: &str, message: &Listed, ahead: SignedDuration) -> Option<Heard> {
    let (by, from) = Kind::of(message.author.as_deref()?);
    Some(Heard {
        kind: Kind::Group,
        by,
        message: message.sid.clone(),
        place: group.to_owned(),
        from: from.to_owned(),
        name: None,
        to: None,
        text: message.body.clone().unwrap_or_default(),
        media: Vec::new(),
        answers: None,
        is_own: message.participant_sid.is_none(),
        at: by_own_clock(message.date_created, ahead),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_is_left_to_the_call() {
        let at = |second: i64| Timestamp::from_second(1_794_816_000 + second).unwrap();
        let (begun, now) = (at(0), at(100));
        for (made_at, is_left) in [(-1, false), (70, false), (71, true), (101, true)] {
            assert_eq!(is_young(at(made_at), begun, now), is_left, "{made_at}");
        }
        // Before the start nobody could be called.
        for (made_at, is_left) in [(-1, false), (4, false), (5, true)] {
            assert_eq!(is_young(at(made_at), begun, at(20)), is_left, "{made_at}");
        }
    }
}
