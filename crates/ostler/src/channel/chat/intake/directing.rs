//! Words that are for the gateway: done at once, in the order in which they came,
//! and never twice. A `/stop` that is told again must not end what began after it.

use super::{Intake, Said};
use crate::{
    channel::{
        access::{self, Rules},
        directive::Directive,
    },
    clock::Millis,
    id::JobId,
    queue::MessageKey,
    store::{StoreError, conversations::Address, jobs},
};

impl Intake {
    /// Does what a word asks for, unless that was done; returns what to say to it.
    pub(crate) async fn direct_once(
        &self,
        said: &Said<'_>,
        rules: &Rules<'_>,
        directive: &Directive,
    ) -> Result<Option<String>, StoreError> {
        let place = said.from.channel;
        if !self.note_as(said.note, place, said.message).await? {
            return Ok(None);
        }
        if *directive == Directive::Restart && access::is_owner(rules, said.from.sender) {
            self.restart(said);
            return Ok(None);
        }
        let Ok(at) = Address::new(self.channel, place) else { return Ok(None) };
        let group = said.details.group.as_ref();
        match self.gateway.direct(&at, said.from.sender, group, directive).await {
            Ok(answer) => Ok(Some(answer)),
            Err(refusal) => Ok(Some(format!("⚠️ {refusal}"))),
        }
    }

    /// Notes that a message was dealt with; returns whether it was not before. It becomes
    /// no job, but is remembered like one.
    pub(crate) async fn note_once(&self, place: &str, message: &str) -> Result<bool, StoreError> {
        self.note_as(JobId::new(), place, message).await
    }

    /// Notes that a message was dealt with, or finds the note that was made of it under
    /// this id; returns whether nobody else made one.
    pub(super) async fn note_as(
        &self,
        id: JobId,
        place: &str,
        message: &str,
    ) -> Result<bool, StoreError> {
        let key = MessageKey::new(self.channel, place, message);
        let args = (key, id, Millis::now());
        let noted = self.store.write_repeatable(args, |conn, (key, id, now)| {
            Box::pin(async move {
                let before =
                    jobs::note_message(conn, &key.channel, &key.message, *id, *now).await?;
                Ok::<_, StoreError>(before.is_none_or(|before| before == *id))
            })
        });
        noted.await
    }

    /// Starts the gateway again, after it has said so.
    fn restart(&self, said: &Said<'_>) {
        let by = format!("{}:{}", self.channel, said.from.sender);
        let (intake, place) = (self.clone(), said.from.channel.to_owned());
        let message = said.message.to_owned();
        self.spawn(async move {
            let text = "I am starting again; what runs is ended or gone on with after it.";
            // It does not wait for a chat that has no time.
            intake.tell_once(&place, &message, text).await;
            if let Err(error) = intake.gateway.ask_restart(&by).await {
                tracing::error!(%error, "the gateway is not started again");
            }
        });
    }
}
