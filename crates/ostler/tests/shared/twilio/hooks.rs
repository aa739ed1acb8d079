//! Where the double tells of what is said, as it can be looked up.

use serde_json::json;

use super::{
    answer::{Answer, Refusal, Reply},
    world::World,
};

impl World {
    /// Returns where all groups are told. Nothing is set there unless a test did.
    pub(super) fn get_group_hook(&self) -> Answer {
        let url = self.conversation_webhook.clone();
        let filters: &[&str] = if url.is_some() { &["onMessageAdded"] } else { &[] };
        Reply::ok(json!({
            "account_sid": self.account,
            "method": "POST",
            "filters": filters,
            "pre_webhook_url": null,
            "post_webhook_url": url,
            "target": "webhook",
            "url": "https://conversations.twilio.com/v1/Configuration/Webhooks",
        }))
    }

    /// Returns the service that chooses numbers.
    pub(super) fn get_service(&self, sid: &str) -> Answer {
        if sid != self.messaging_service {
            return Err(Refusal::not_found(&format!("/Services/{sid}")));
        }
        Reply::ok(json!({
            "sid": sid,
            "account_sid": self.account,
            "friendly_name": "Stable",
            "inbound_request_url": self.webhook,
            "inbound_method": "POST",
            "use_inbound_webhook_on_number": false,
            "url": format!("https://messaging.twilio.com/v1/Services/{sid}"),
        }))
    }
}
