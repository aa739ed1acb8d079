//! WhatsApp, SMS and groups as chats: messages are sent, and stay as they are.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::{sync::watch, task};

use super::{
    Line,
    api::{Api, Outgoing, Wanted},
    code::Trouble,
    delivery::has_failed,
    kind::Kind,
    template,
};
use crate::{
    channel::{
        Next, SendError,
        chat::{Changed, Chat, Doing, Limits, Look, Post, Posting, Stands},
    },
    clock::Millis,
    config::{Receive, Twilio},
    gateway::policy::Policy,
    media::hosting::Hosting,
    store::Store,
};

/// What messages of a trial account begin with.
const TRIAL: &str = "Sent from your Twilio trial account -";
/// How far clocks may be apart.
const SKEW: SignedDuration = SignedDuration::from_secs(120);

/// One sort of conversations.
#[derive(Clone, Debug)]
pub(crate) struct TwilioChat {
    pub(super) kind: Kind,
    limits: Limits,
    pub(super) api: Arc<Api>,
    hosting: Hosting,
    config: Arc<Twilio>,
    /// Whether Twilio says what became of messages, and what answers refer to.
    is_called: bool,
    /// For whom something waits, of which the operator was told.
    pub(super) waiting: Arc<Mutex<HashSet<String>>>,
    pub(super) store: Store,
    pub(super) policy: watch::Receiver<Arc<Policy>>,
}

impl TwilioChat {
    pub(crate) fn new(
        kind: Kind,
        line: &Line,
        store: Store,
        policy: watch::Receiver<Arc<Policy>>,
    ) -> Self {
        let Line { api, hosting, config, .. } = line.clone();
        let limits = kind.limits(config.public_url.is_some());
        let is_called = config.receives() == Receive::Webhook;
        let waiting = Arc::default();
        Self { kind, limits, api, hosting, config, is_called, waiting, store, policy }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Makes a message to somebody, with nothing in it.
    pub(super) fn to(&self, place: &str) -> Outgoing {
        let (from, service) = match self.kind {
            Kind::WhatsApp => (self.config.whatsapp_number(), None),
            Kind::Sms => (self.config.sms_from.as_deref(), self.config.messaging_service.clone()),
            Kind::Group => (None, None),
        };
        Outgoing {
            to: self.kind.address(place),
            // The service chooses, if there is one.
            from: from.filter(|_| service.is_none()).map(|number| self.kind.address(number)),
            service,
            status: self.url("/twilio/status").filter(|_| self.is_called),
            ..Outgoing::default()
        }
    }

    /// Returns a URL of this gateway's by which Twilio reaches it.
    fn url(&self, path: &str) -> Option<String> {
        let base = self.config.public_url.as_deref()?;
        Some(format!("{}{path}", base.trim_end_matches('/')))
    }

    /// Lets Twilio fetch the files of a message.
    async fn offer(&self, post: &Post) -> Result<Vec<String>, SendError> {
        let mut urls = Vec::with_capacity(post.files.len());
        for file in &post.files {
            let failed =
                |why: String| SendError::soon(format!("a file could not be offered: {why}"));
            let (hosting, file) = (self.hosting.clone(), file.clone());
            let offered = task::spawn_blocking(move || hosting.offer(&file, Millis::now()));
            let offered = offered.await.map_err(|error| failed(error.to_string()))?;
            let link = offered.map_err(|error| failed(error.to_string()))?;
            urls.extend(self.url(&link.path()));
        }
        Ok(urls)
    }

    /// Returns the template that a post is sent by, if it is, and what it is filled with.
    fn template_of(&self, post: &Post) -> Option<(String, String)> {
        let template = self.policy.borrow().twilio.approval_template.clone();
        // Whoever has to ask for messages does not hear which button was pressed.
        let has_buttons = self.is_called && self.kind == Kind::WhatsApp && has_decisions(post);
        let template = template.filter(|_| has_buttons)?;
        Some((template, template::variable(&post.text)?))
    }

    /// Sends a post by a template, if there is one for it; returns what Twilio calls it.
    /// Where the template is not taken it goes without: its numbers can be answered, too.
    async fn send_by_template(
        &self,
        place: &str,
        post: &Post,
    ) -> Result<Option<String>, SendError> {
        let Some((template, said)) = self.template_of(post) else { return Ok(None) };
        let variables = json!({ "1": said }).to_string();
        let template = Some((template, variables));
        let sent = self.api.send(&Outgoing { template, ..self.to(place) }).await;
        match sent.map_err(SendError::from) {
            Err(SendError { next: Next::GiveUp, reason, .. }) => {
                tracing::warn!(
                    why = reason,
                    "a request for permission is sent without buttons, for the template was not \
                     taken; check twilio.approval_template"
                );
                Ok(None)
            }
            sent => sent.map(Some),
        }
    }

    /// Makes a message of a post.
    async fn outgoing(&self, place: &str, post: &Post) -> Result<Outgoing, SendError> {
        let media = self.offer(post).await?;
        Ok(Outgoing { body: post.text.clone(), media, ..self.to(place) })
    }
}

impl Chat for TwilioChat {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn typing<'a>(&'a self, _place: &'a str, answers: Option<&'a str>) -> Doing<'a, ()> {
        Box::pin(async move {
            match answers.filter(|_| self.kind == Kind::WhatsApp) {
                Some(message) => Ok(self.api.typing(message).await?),
                None => Ok(()),
            }
        })
    }

    fn send<'a>(&'a self, place: &'a str, posting: Posting<'a>) -> Doing<'a, Stands> {
        Box::pin(async move {
            let message = if self.kind == Kind::Group {
                self.api.say(place, &posting.post.text).await?
            } else {
                self.check_window(place).await?;
                let begun = Millis::now();
                match self.send_by_template(place, posting.post).await? {
                    Some(message) => message,
                    None => {
                        let message = self.outgoing(place, posting.post).await?;
                        match self.api.send(&message).await {
                            Err(trouble) if trouble.is_window() => {
                                return Err(self.close_window(place, begun).await?);
                            }
                            sent => sent?,
                        }
                    }
                }
            };
            Ok(Stands { message, is_as_sent: true })
        })
    }

    fn edit<'a>(&'a self, _: &'a str, _: &'a str, _: &'a Post) -> Doing<'a, Changed> {
        // Nothing that was sent can be changed.
        Box::pin(async { Ok(Changed::Done) })
    }

    fn delete<'a>(&'a self, _: &'a str, _: &'a str) -> Doing<'a, Changed> {
        Box::pin(async { Ok(Changed::Done) })
    }

    fn find<'a>(
        &'a self,
        place: &'a str,
        Posting { post, .. }: Posting<'a>,
        since: Millis,
    ) -> Doing<'a, Vec<Stands>> {
        Box::pin(async move {
            let since = Timestamp::from_millisecond(since.0).unwrap_or(Timestamp::MIN);
            let ahead = self.api.clock_skew().unwrap_or_default().max(SignedDuration::ZERO);
            let since = since.saturating_sub(SKEW + ahead).unwrap_or(Timestamp::MIN);
            let found = match self.kind {
                Kind::Group => self.found_in_group(place, post, since).await?,
                Kind::WhatsApp | Kind::Sms => self.found(place, post, since).await?,
            };
            let stands = |message| Stands { message, is_as_sent: true };
            Ok(found.into_iter().map(stands).collect())
        })
    }
}

impl TwilioChat {
    async fn found(
        &self,
        place: &str,
        post: &Post,
        since: Timestamp,
    ) -> Result<Vec<String>, Trouble> {
        let Outgoing { to, from, .. } = self.to(place);
        let wanted = Wanted { to: Some(&to), from: from.as_deref(), since, is_dated: false };
        let by_template = self.template_of(post).map(|(_, said)| said);
        let is_it = |body: Option<&str>| {
            // What stands around it is up to the template; it may have been sent without.
            let is_filled = |said: &String| body.is_some_and(|body| body.contains(said.trim()));
            by_template.as_ref().is_some_and(is_filled) || is_same(body, &post.text)
        };
        let found = self.api.messages(wanted).await?.into_iter().rev().filter(|message| {
            message.made_at().is_none_or(|at| since <= at)
                && message.direction.as_deref() != Some("inbound")
                && !message.status.as_deref().is_some_and(has_failed)
                && is_it(message.body.as_deref())
                && message.n_media() == post.files.len()
        });
        Ok(found.map(|message| message.sid).collect())
    }

    async fn found_in_group(
        &self,
        place: &str,
        post: &Post,
        since: Timestamp,
    ) -> Result<Vec<String>, Trouble> {
        let found = self.api.group(place, since).await?.into_iter().rev().filter(|message| {
            message.date_created.is_none_or(|at| since <= at)
                // What people wrote has the one of them who did.
                && message.participant_sid.is_none()
                && is_same(message.body.as_deref(), &post.text)
        });
        Ok(found.map(|message| message.sid).collect())
    }
}

/// Whether a message asks for a yes or a no, and can have buttons for that. Those of
/// questions are others each time.
fn has_decisions(post: &Post) -> bool {
    let has = |look| post.buttons.iter().any(|button| button.look == look);
    has(Look::Good) && has(Look::Bad)
}

/// Whether a text that Twilio has is this one. White space around it may be gone, and
/// a trial account's messages begin with words of Twilio's.
fn is_same(body: Option<&str>, text: &str) -> bool {
    let body = body.unwrap_or_default().trim();
    body.strip_prefix(TRIAL).unwrap_or(body).trim() == text.trim()
}
