//! The session of a turn that runs, which is kept as soon as it has a name: if
//! this gateway is killed, the next attempt goes on with it.

use std::sync::Arc;

use ostler_core::{
    Memo, memo,
    request::{Identity, TurnRequest},
};

use super::{
    begin::{Beginning, Place},
    ending,
    inbound::Origin,
    policy::Policy,
};
use crate::{
    clock::Millis,
    id::TurnId,
    project,
    store::{Store, StoreError, sessions, turns},
};

/// The session of a turn.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The one that is stored.
    session: Option<String>,
    /// What will be known of another one, but for its name.
    memo: Memo,
}

impl Opened {
    pub(crate) fn new(beginning: &Beginning) -> Self {
        Self {
            session: beginning.memo.as_ref().map(|memo| memo.id.clone()),
            memo: Memo::of_id(beginning.agent.name.to_string(), ""),
        }
    }

    /// Takes what is known of a session that begins with a request.
    pub(crate) fn by(&mut self, request: &TurnRequest) {
        let options = &request.options;
        self.memo.cwd = Some(options.cwd.clone());
        self.memo.home.clone_from(&options.home);
        // As at the end of a turn: the agent is not told the same twice.
        self.memo.system_hash = options.system_prompt.as_deref().map(memo::hash);
        self.memo.system_sent =
            options.system_prompt.is_some() || options.identity != Identity::Off;
    }

    /// Returns the name of the session, if it has one yet.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Keeps a session.
    pub(crate) async fn keep(
        &mut self,
        store: &Store,
        policy: &Arc<Policy>,
        place: &Place,
        turn: TurnId,
        session: &str,
    ) {
        if place.origin == Origin::Heartbeat || self.session.as_deref() == Some(session) {
            return;
        }
        self.session = Some(session.to_owned());
        self.memo.id = session.to_owned();
        let session = ending::stored(&self.memo, Millis::now());
        let args = (place.clone(), Arc::clone(policy), turn, self.memo.agent.clone(), session);
        let kept = store.write_repeatable(args, |conn, args| {
            let (place, policy, turn, agent, session) = args;
            Box::pin(async move {
                // If the job is another's by now, so is the session.
                if turns::is_running(conn, *turn).await?
                    && project::still_answers(conn, policy, place.project(), agent).await?
                {
                    sessions::keep(conn, place.conversation, agent, session).await?;
                }
                Ok::<_, StoreError>(())
            })
        });
        if let Err(error) = kept.await {
            // It is stored again with the end of the turn.
            tracing::warn!(%error, "the name of a session could not be stored yet");
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_core::request::Repeat;

    use super::*;

    #[test]
    fn a_session_that_is_cut_off_knows_what_it_was_told() {
        let mut opened = Opened { session: None, memo: Memo::of_id("pi", "") };
        let mut request = TurnRequest::new("hello".to_owned(), "/workspace");
        request.options.identity = Identity::Off;
        opened.by(&request);
        assert_eq!((opened.memo.system_sent, opened.memo.system_hash.as_ref()), (false, None));
        request.options.system_prompt = Some("Be kind.".to_owned());
        opened.by(&request);
        assert_eq!(opened.memo.system_hash, Some(memo::hash("Be kind.")));
        assert!(opened.memo.system_sent);
        request.options.system_prompt = None;
        request.options.identity = Identity::Text("Ada".to_owned(), Repeat::EachTurn);
        opened.by(&request);
        assert_eq!((opened.memo.system_sent, opened.memo.system_hash), (true, None));
        assert_eq!(opened.memo.cwd.as_deref(), Some("/workspace".as_ref()));
    }
}
