//! What Twilio checks of a message before it takes it.

use super::{
    answer::Refusal,
    message::{Message, Status},
    routes::field,
    world::{World, sid},
};

/// The longest body, in the units that Twilio counts.
const BODY: usize = 1600;
/// What messages of a trial account begin with.
const TRIAL: &str = "Sent from your Twilio trial account - ";
/// The most media of an MMS, and of a message of WhatsApp.
const MEDIA: (usize, usize) = (10, 1);

impl World {
    /// Makes a message of a form, or says what is wrong with it.
    pub(super) fn check_message(&self, form: &[(String, String)]) -> Result<Message, Refusal> {
        let to = field(form, "To");
        let to = to.ok_or_else(|| Refusal::bad(21604, "A 'To' phone number is required."))?;
        let service = field(form, "MessagingServiceSid");
        let from = self.check_from(field(form, "From"), service, to)?;
        if !is_number(to.strip_prefix("whatsapp:").unwrap_or(to)) {
            return Err(Refusal::bad(21211, format!("Invalid 'To' Phone Number: {to}")));
        }
        if from == to {
            let code = if to.starts_with("whatsapp:") { 63031 } else { 21266 };
            return Err(Refusal::bad(code, "'To' and 'From' number cannot be the same"));
        }
        self.check_recipient(to)?;
        let template = self.check_template(form)?;
        let given = field(form, "Body").unwrap_or("");
        let body = template.as_ref().map_or(given, |template| template.text.as_str());
        let media_urls = check_media(form, to)?;
        if body.is_empty() && media_urls.is_empty() {
            return Err(Refusal::bad(21602, "Message body is required."));
        }
        if body.encode_utf16().count() > BODY {
            let message = "The concatenated message body exceeds the 1600 character limit";
            return Err(Refusal::bad(21617, message));
        }
        let status_callback = field(form, "StatusCallback");
        if let Some(url) = status_callback.filter(|url| !is_callback(url)) {
            let message = format!("The 'StatusCallback' URL {url} is not a valid URL.");
            return Err(Refusal::bad(21609, message));
        }
        let prefix = if self.trial.is_some() { TRIAL } else { "" };
        let now = self.now();
        Ok(Message {
            sid: sid(if media_urls.is_empty() { "SM" } else { "MM" }),
            direction: "outbound-api",
            from,
            to: to.to_owned(),
            body: format!("{prefix}{body}"),
            // With a service, the number is chosen later.
            status: if service.is_some() { Status::Accepted } else { Status::Queued },
            error: None,
            media: Vec::new(),
            media_urls,
            is_template: template.as_ref().is_some_and(|template| template.is_approved),
            content_sid: template.map(|template| template.sid),
            messaging_service: service.map(ToOwned::to_owned),
            status_callback: status_callback.map(ToOwned::to_owned),
            params: Vec::new(),
            created: now,
            sent: None,
            updated: now,
        })
    }

    fn check_from(
        &self,
        from: Option<&str>,
        service: Option<&str>,
        to: &str,
    ) -> Result<String, Refusal> {
        let is_whatsapp = to.starts_with("whatsapp:");
        let ours =
            if is_whatsapp { format!("whatsapp:{}", self.whatsapp) } else { self.sms.clone() };
        if let Some(service) = service {
            if service != self.messaging_service {
                let message = format!("The Messaging Service Sid {service} is invalid.");
                return Err(Refusal::bad(21701, message));
            }
            return Ok(ours);
        }
        let from = from.ok_or_else(|| Refusal::bad(21603, "A 'From' phone number is required."))?;
        if from.starts_with("whatsapp:") != is_whatsapp {
            let message = "Invalid From and To pair. From and To should be of the same channel";
            return Err(Refusal::bad(21910, message));
        }
        if from == ours && (!is_whatsapp || self.sender_status == "ONLINE") {
            return Ok(ours);
        }
        if is_whatsapp {
            let message = "Twilio could not find a Channel with the specified From address";
            return Err(Refusal::bad(63007, message));
        }
        if !is_number(from) {
            let message = format!("The 'From' number {from} is not a valid phone number.");
            return Err(Refusal::bad(21212, message));
        }
        let message = format!(
            "The 'From' phone number provided ({from}) is not a valid message-capable Twilio \
             phone number for this destination/account"
        );
        Err(Refusal::bad(21606, message))
    }

    fn check_recipient(&self, to: &str) -> Result<(), Refusal> {
        if self.limited_to.contains(to) {
            return Err(Refusal::too_many());
        }
        if self.unsubscribed.contains(to) {
            return Err(Refusal::bad(21610, "Attempt to send to unsubscribed recipient"));
        }
        let number = to.strip_prefix("whatsapp:").unwrap_or(to);
        if self.forbidden.iter().any(|start| number.starts_with(start)) {
            let message = format!(
                "Permission to send an SMS has not been enabled for the region indicated by the \
                 'To' number: {to}"
            );
            return Err(Refusal::bad(21408, message));
        }
        // Who is written to by WhatsApp has joined its sandbox instead.
        if self.trial.as_ref().is_some_and(|them| number == to && !them.contains(to)) {
            let message = format!(
                "The number {to} is unverified. Trial accounts cannot send messages to \
                 unverified numbers"
            );
            return Err(Refusal::bad(21608, message));
        }
        Ok(())
    }
}

/// Returns the links of a message, if there are no more than its channel takes.
fn check_media(form: &[(String, String)], to: &str) -> Result<Vec<String>, Refusal> {
    let given = form.iter().filter(|(name, value)| name == "MediaUrl" && !value.is_empty());
    let links: Vec<String> = given.map(|(_, link)| link.clone()).collect();
    let most = if to.starts_with("whatsapp:") { MEDIA.1 } else { MEDIA.0 };
    if links.len() > most {
        return Err(Refusal::bad(21623, "Number of media files exceeds allowed limit"));
    }
    match links.iter().find(|link| !is_link(link)) {
        Some(link) => Err(Refusal::bad(21620, format!("Invalid media URL(s): {link}"))),
        None => Ok(links),
    }
}

/// Says whether a text is a number as E.164 writes it.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or("");
    (7..=15).contains(&digits.len())
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Says whether statuses can be posted to an address: it is not too long, and its host
/// has no underscores.
fn is_callback(text: &str) -> bool {
    let host = reqwest::Url::parse(text).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    is_link(text) && text.len() <= 4000 && host.is_some_and(|host| !host.contains('_'))
}

fn is_link(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}
