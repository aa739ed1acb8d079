//! Makes jobs of the instructions of hooks.

use std::sync::Arc;

use crate::{
    clock::Millis,
    config::Hook,
    gateway::{
        Gateway, gate,
        inbound::{Accepted, Details, Inbound, Origin, Refusal},
        policy::Policy,
    },
    hooks::happening::Happening,
    id::{ConversationId, JobId},
    store::{Store, conversations},
    wishes::Wishes,
};

/// Makes a job of an instruction; returns it, unless it cannot be had, which is
/// logged. It can be stored also while the gateway stops.
pub(super) async fn instruct(
    store: &Store,
    policy: &Policy,
    hook: &Hook,
    text: &str,
    happening: &Happening,
    wishes: &Wishes,
) -> Option<Accepted> {
    let (address, within) = match (&hook.conversation, &happening.conversation) {
        (Some(address), _) => (address.clone(), None),
        (None, Some((id, address))) => (address.clone(), Some(*id)),
        (None, None) => return None,
    };
    let inbound = Inbound {
        address,
        sender: format!("hook {}", hook.name),
        message: Some(happening.key(hook)),
        text: happening.instruction(text),
        // Elsewhere things are as they are there.
        wishes: within.map(|_| wishes.clone()).unwrap_or_default(),
        origin: Origin::Hook,
        details: Details::default(),
        belongs: None,
        words: None,
    };
    match accept(store, policy, inbound, within).await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            let event = happening.event.word();
            tracing::warn!(hook = hook.name, event, %error, "an instruction was not accepted");
            None
        }
    }
}

async fn accept(
    store: &Store,
    policy: &Policy,
    inbound: Inbound,
    within: Option<ConversationId>,
) -> Result<Accepted, Refusal> {
    let args = (JobId::new(), inbound, within, policy.rules.clone(), Millis::now());
    store
        .write_repeatable(args, |conn, (id, inbound, within, rules, now)| {
            Box::pin(async move {
                let found = match within {
                    Some(id) => conversations::find(conn, *id).await?,
                    None => None,
                };
                let conversation = match found {
                    Some(found) => found,
                    None => {
                        // A hook is none of the senders who may have their own there.
                        let place = gate::shared(&inbound.address, rules.sessions.scope)?;
                        conversations::find_or_begin(conn, &place, *now).await?
                    }
                };
                gate::store_in(conn, *id, &conversation, inbound, rules, *now).await
            })
        })
        .await
}

impl Gateway {
    /// Returns what it goes by now.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.shared.policy.borrow())
    }

    /// Makes a job of an instruction that follows something that happened to the
    /// gateway; also one that takes no more messages.
    pub(crate) async fn instruct(
        &self,
        hook: &Hook,
        text: &str,
        happening: &Happening,
    ) -> Option<JobId> {
        let (store, wishes) = (&self.shared.store, Wishes::default());
        let accepted = instruct(store, &self.policy(), hook, text, happening, &wishes).await;
        accepted.map(|accepted| accepted.job)
    }
}
