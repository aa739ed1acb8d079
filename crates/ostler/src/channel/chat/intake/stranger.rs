//! People whom nobody knows: they get a code if that is wanted, and no answer.

use super::{Intake, Said};
use crate::{
    channel::{
        access::{self, Rules, Standing},
        code::Code,
        pace::Verdict,
    },
    clock::Millis,
    store::{
        StoreError,
        pairings::{self, Asked},
    },
};

impl Intake {
    /// Offers somebody who is not known a code, if that is wanted.
    pub(super) async fn stranger(
        &self,
        said: &Said<'_>,
        rules: &Rules<'_>,
        standing: Standing,
    ) -> Result<(), StoreError> {
        let (channel, place, sender) = (self.channel, said.from.channel, said.from.sender);
        tracing::info!(channel, place, sender, "a stranger was not let in");
        if !access::is_offered_code(rules, &said.from, standing) {
            return Ok(());
        }
        if let Verdict::Slow { .. } = self.pace.allow(sender) {
            return Ok(());
        }
        let Ok(code) = Code::make() else {
            tracing::error!("no code could be made: the system has no randomness");
            return Ok(());
        };
        let args = (self.known_as(sender), said.name.to_owned(), code, Millis::now());
        let asked = self.store.write(args, |conn, (person, name, code, now)| {
            Box::pin(pairings::ask(conn, person, name, code, *now))
        });
        if let Asked::Code(code) = asked.await? {
            let text = format!(
                "I do not know you yet. Ask whoever runs me to say `ostler pairing approve {code}`; \
                 the code is good for an hour."
            );
            self.tell(place, said.message, text);
        }
        Ok(())
    }
}
