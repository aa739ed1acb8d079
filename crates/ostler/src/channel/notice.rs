//! The channel by which webhooks are told of commands: its addresses are their ids.
//! Each call is signed, so that the receiver knows that it comes from here, is new,
//! and is unchanged.

use std::{sync::Arc, time::Duration};

use hmac::{Hmac, KeyInit as _, Mac as _};
use ostler_core::failure::chain;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use sha2::Sha256;
use tokio::{sync::watch, time};

use super::{
    SendError, Sent,
    reach::{self, Lookup, PublicOnly},
    webhook::{
        Limits,
        verdict::{judge, no_answer, retry_after},
    },
};
use crate::{
    clients::{Clients, read_start},
    clock::Millis,
    gateway::policy::Policy,
    id::WebhookId,
    store::{
        Store, StoreError,
        outbox::Sending,
        webhooks::{self, Webhook},
    },
};

/// How much of an answer is read, in bytes.
const READ: usize = 4096;
/// The time limits.
pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    whole: Duration::from_secs(10),
    body: Duration::from_secs(2),
};

/// What calls webhooks.
#[derive(Debug)]
pub(crate) struct Notices {
    store: Store,
    policy: watch::Receiver<Arc<Policy>>,
    limits: Limits,
    /// For calls that may lead anywhere, and for those that may not.
    anywhere: Clients,
    public: Clients,
}

impl Notices {
    pub(crate) fn new(store: Store, policy: watch::Receiver<Arc<Policy>>) -> Self {
        Self::with(store, policy, LIMITS, reach::system())
    }

    /// Makes some with limits and an address book of their own.
    pub(crate) fn with(
        store: Store,
        policy: watch::Receiver<Arc<Policy>>,
        limits: Limits,
        lookup: Lookup,
    ) -> Self {
        let anywhere = Clients::new(limits.connect);
        let public = Clients::new(limits.connect).with_names(Arc::new(PublicOnly(lookup)));
        Self { store, policy, limits, anywhere, public }
    }

    /// Calls a webhook.
    pub(super) async fn send(&self, sending: &Sending, now: Millis) -> Result<Sent, SendError> {
        let Webhook { url, secret, .. } = self.find(&sending.message.address).await?;
        let is_free = self.policy.borrow().api.private_webhooks;
        if !is_free {
            reach::check(&url).map_err(|error| SendError::given_up(error.to_string()))?;
        }
        let clients = if is_free { &self.anywhere } else { &self.public };
        let client = clients.client(&url).map_err(|error| {
            let reason = format!("could not prepare the call: {}", chain(&error.without_url()));
            SendError::soon(reason)
        })?;
        let key = sending.id.to_string();
        let body = with_id(&sending.message.body, &key);
        let kind = sending.message.dedupe.rsplit(':').next().unwrap_or_default();
        let call = client
            .post(&url)
            .header(CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", &key)
            .header("Ostler-Event", kind)
            .header("Ostler-Signature", signature(&secret, now, &body))
            .body(body)
            .timeout(self.limits.whole);
        let response = match call.send().await {
            Ok(response) => response,
            Err(error) => return Err(no_answer(error, self.limits.whole)),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(Sent { message: Some(status.as_u16().to_string()) });
        }
        let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let after = after.and_then(|after| retry_after(after, now));
        let mut said = Vec::new();
        // As far as it comes.
        time::timeout(self.limits.body, read_start(response, READ, &mut said)).await.ok();
        Err(judge(status, after, &said))
    }

    /// Returns whom to call.
    async fn find(&self, address: &str) -> Result<Webhook, SendError> {
        let gone = || SendError::given_up("the webhook was deleted");
        let id: WebhookId = address.parse().map_err(|_| gone())?;
        let found = self.store.read(id, |conn, id| Box::pin(webhooks::find(conn, *id)));
        let found: Result<Option<Webhook>, StoreError> = found.await;
        let away = |error: StoreError| {
            let reason = format!("the webhook cannot be looked up: {}", error.chain());
            SendError::soon(reason)
        };
        found.map_err(away)?.ok_or_else(gone)
    }
}

/// Puts the id of a notice into it.
fn with_id(body: &str, id: &str) -> String {
    match body.strip_prefix('{') {
        Some(rest) => format!("{{\"id\":\"{id}\",{rest}"),
        None => body.to_owned(),
    }
}

/// Signs a body for a moment. A receiver computes the same from the secret, and
/// refuses what is old.
fn signature(secret: &str, at: Millis, body: &str) -> String {
    let seconds = at.0.div_euclid(1000);
    // A key may have any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body.as_bytes());
    let digits: String =
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_that_other_programs_compute() {
        // printf '1700000000.{"id":"out_1"}' | openssl dgst -sha256 -hmac whsec_test
        assert_eq!(
            signature("whsec_test", Millis(1_700_000_000_999), "{\"id\":\"out_1\"}"),
            "t=1700000000,v1=e649668469673e8a6435601e9f0be05a5421daad9d1e73f742387277e3bc661f"
        );
    }

    #[test]
    fn a_notice_is_sent_with_its_id_first() {
        assert_eq!(with_id("{\"a\":1}", "out_1"), "{\"id\":\"out_1\",\"a\":1}");
    }
}
