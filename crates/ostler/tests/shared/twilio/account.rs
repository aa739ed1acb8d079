//! The account, its numbers and senders, and typing.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Refusal, Reply},
    message::ChangeKind,
    routes::field,
    world::World,
};

/// When all of this was set up.
const SET_UP: &str = "Thu, 30 Jul 2015 20:00:00 +0000";

impl World {
    pub(super) fn get_account(&self) -> Reply {
        let path = self.account_path();
        Reply::Json(
            200,
            json!({
                "sid": self.account,
                "owner_account_sid": self.account,
                "auth_token": self.token,
                "friendly_name": "A double of Twilio",
                "status": self.account_status,
                "type": if self.trial.is_some() { "Trial" } else { "Full" },
                "date_created": SET_UP,
                "date_updated": SET_UP,
                "subresource_uris": {
                    "messages": format!("{path}/Messages.json"),
                    "incoming_phone_numbers": format!("{path}/IncomingPhoneNumbers.json"),
                },
                "uri": format!("{path}.json"),
            }),
        )
    }

    /// Lists the numbers that a part of a number fits.
    pub(super) fn list_numbers(&self, query: &[(String, String)]) -> Answer {
        let wanted = field(query, "PhoneNumber").unwrap_or("");
        let found = self.sms.contains(wanted.trim_start_matches('*'));
        let numbers: Vec<Value> = found.then(|| self.number_json()).into_iter().collect();
        let uri = format!("{}/IncomingPhoneNumbers.json?PageSize=50&Page=0", self.account_path());
        Reply::ok(json!({
            "incoming_phone_numbers": numbers,
            "page": 0,
            "page_size": 50,
            "start": 0,
            "end": 0,
            "uri": uri,
            "first_page_uri": uri,
            "next_page_uri": null,
            "previous_page_uri": null,
        }))
    }

    fn number_json(&self) -> Value {
        let path = self.account_path();
        json!({
            "sid": self.phone_number,
            "account_sid": self.account,
            "phone_number": self.sms,
            "friendly_name": self.sms,
            "capabilities": { "voice": true, "sms": true, "mms": true, "fax": false },
            "sms_url": self.webhook.as_deref().unwrap_or(""),
            "sms_method": "POST",
            "sms_fallback_url": "",
            "sms_fallback_method": "POST",
            "sms_application_sid": "",
            "status_callback": "",
            "status_callback_method": "POST",
            "status": "in-use",
            "type": "local",
            "origin": "twilio",
            "beta": false,
            "api_version": "2010-04-01",
            "date_created": SET_UP,
            "date_updated": SET_UP,
            "uri": format!("{path}/IncomingPhoneNumbers/{}.json", self.phone_number),
        })
    }

    pub(super) fn list_senders(&self, query: &[(String, String)]) -> Answer {
        let channel = field(query, "Channel").ok_or_else(|| Refusal::invalid("Channel"))?;
        let senders: Vec<Value> =
            (channel == "whatsapp").then(|| self.sender_json()).into_iter().collect();
        let url = format!("{}/v2/Channels/Senders?Channel={channel}&PageSize=20&Page=0", self.base);
        Reply::ok(json!({
            "senders": senders,
            "meta": {
                "page": 0,
                "page_size": 20,
                "first_page_url": url,
                "previous_page_url": null,
                "url": url,
                "next_page_url": null,
                "key": "senders",
            },
        }))
    }

    pub(super) fn get_sender(&self, sid: &str) -> Answer {
        if sid == self.sender {
            return Reply::ok(self.sender_json());
        }
        Err(Refusal::not_found(&format!("/v2/Channels/Senders/{sid}")))
    }

    fn sender_json(&self) -> Value {
        json!({
            "sid": self.sender,
            "sender_id": format!("whatsapp:{}", self.whatsapp),
            "status": self.sender_status,
            "configuration": {},
            "webhook": {
                "callback_url": self.webhook,
                "callback_method": "POST",
                "fallback_url": null,
                "fallback_method": "POST",
                "status_callback_url": null,
                "status_callback_method": "POST",
            },
            "profile": { "name": "A double of Twilio" },
            "properties": { "quality_rating": "HIGH", "messaging_limit": "1K Customers/24hr" },
            "offline_reasons": null,
            "compliance": null,
            "url": format!("{}/v2/Channels/Senders/{}", self.base, self.sender),
        })
    }

    /// Shows the author of a message that an answer is being written.
    pub(super) fn type_to(&mut self, form: &[(String, String)]) -> Answer {
        if field(form, "channel") != Some("whatsapp") {
            return Err(Refusal::invalid("channel"));
        }
        let sid = field(form, "messageId").ok_or_else(|| Refusal::missing("messageId"))?;
        let message = self.message(sid).cloned();
        let message = message.ok_or_else(|| Refusal::not_found(sid))?;
        if message.is_outbound() || !message.is_whatsapp() {
            return Err(Refusal::invalid("messageId"));
        }
        self.changed(ChangeKind::Typed, sid, &message.from, "");
        Reply::ok(json!({ "success": true }))
    }
}
