//! Twilio: WhatsApp and SMS, who may write there, and how it is answered.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{duration, pattern::Pattern, secret::SecretSource};

/// How an address of WhatsApp is told from a telephone number.
const WHATSAPP: &str = "whatsapp:";

/// The account, and the people who write to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Twilio {
    /// Unset: there is no account.
    pub(crate) account_sid: Option<String>,
    /// By it calls of Twilio are known to be Twilio's.
    pub(crate) auth_token: Option<SecretSource>,
    /// What calls are made with instead of the token.
    pub(crate) api_key: Option<String>,
    pub(crate) api_secret: Option<SecretSource>,
    /// The numbers that answers come from.
    pub(crate) whatsapp_from: Option<String>,
    pub(crate) sms_from: Option<String>,
    /// What chooses a number for SMS instead.
    pub(crate) messaging_service: Option<String>,
    /// Where Twilio reaches this gateway.
    pub(crate) public_url: Option<String>,
    /// Unset: by webhook, if Twilio can reach this gateway.
    pub(crate) receive: Option<Receive>,
    #[serde(with = "duration")]
    pub(crate) poll_every: Duration,
    /// Who may write. Nobody, if these are none.
    pub(crate) allow_from: Vec<String>,
    /// Those who may do more than that.
    pub(crate) owners: Vec<String>,
    /// Whether strangers get a code with which the operator can let them in.
    pub(crate) pairing: bool,
    pub(crate) messages_per_minute: u32,
    /// The conversations of several people in which it takes part.
    pub(crate) groups: Vec<String>,
    /// The words by which it is called there.
    pub(crate) group_words: Vec<String>,
    /// What calls it there as well, wherever it is found in a text.
    pub(crate) group_patterns: Vec<Pattern>,
    /// How many messages it is told that it was not called by.
    pub(crate) group_context: u32,
    /// What is sent to somebody who has not written for a day.
    pub(crate) window_template: Option<String>,
    /// What asks for a permission by buttons.
    pub(crate) approval_template: Option<String>,
    /// Unset: Twilio's own.
    pub(crate) api_url: Option<String>,
}

/// How messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Receive {
    /// Twilio calls.
    Webhook,
    /// Twilio is asked.
    Polling,
}

impl Default for Twilio {
    fn default() -> Self {
        Self {
            account_sid: None,
            auth_token: None,
            api_key: None,
            api_secret: None,
            whatsapp_from: None,
            sms_from: None,
            messaging_service: None,
            public_url: None,
            receive: None,
            poll_every: Duration::from_secs(5),
            allow_from: Vec::new(),
            owners: Vec::new(),
            pairing: false,
            messages_per_minute: 20,
            groups: Vec::new(),
            group_words: vec!["ostler".to_owned(), "@ostler".to_owned()],
            group_patterns: Vec::new(),
            group_context: 50,
            window_template: None,
            approval_template: None,
            api_url: None,
        }
    }
}

impl Twilio {
    /// Returns how messages come.
    pub(crate) fn receives(&self) -> Receive {
        let usual = if self.public_url.is_some() { Receive::Webhook } else { Receive::Polling };
        self.receive.unwrap_or(usual)
    }

    /// Returns the number that answers by WhatsApp come from.
    pub(crate) fn whatsapp_number(&self) -> Option<&str> {
        self.whatsapp_from.as_deref().map(number)
    }

    /// Whether there is to be an account: something is said that only one has.
    pub(crate) fn is_wanted(&self) -> bool {
        self.account_sid.is_some()
            || self.auth_token.is_some()
            || self.api_key.is_some()
            || self.api_secret.is_some()
            || self.has_number()
    }

    fn has_number(&self) -> bool {
        self.whatsapp_from.is_some() || self.sms_from.is_some() || self.messaging_service.is_some()
    }

    /// Returns everything without which an account cannot be used, and is not there.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let has_key = self.api_key.is_some() && self.api_secret.is_some();
        let is_called = self.receives() == Receive::Webhook;
        [
            (self.account_sid.is_some(), "twilio.account_sid (TWILIO_ACCOUNT_SID)"),
            (
                self.auth_token.is_some() || (has_key && !is_called),
                "twilio.auth_token (TWILIO_AUTH_TOKEN)",
            ),
            (
                self.api_key.is_some() == self.api_secret.is_some(),
                "both of twilio.api_key and twilio.api_secret (TWILIO_API_KEY, TWILIO_API_SECRET)",
            ),
            (
                self.has_number(),
                "twilio.whatsapp_from (TWILIO_WHATSAPP_FROM), twilio.sms_from or \
                 twilio.messaging_service",
            ),
            (
                !is_called || self.public_url.is_some(),
                "twilio.public_url, for twilio.receive is 'webhook'",
            ),
        ]
        .into_iter()
        .filter_map(|(is_there, what)| (!is_there).then_some(what))
        .collect()
    }
}

/// Returns the number of an address.
pub(crate) fn number(address: &str) -> &str {
    address.strip_prefix(WHATSAPP).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::{super::secret::Secret, *};

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        assert_eq!(Twilio::default().missing().len(), 3);
        assert!(!Twilio::default().is_wanted());
        let token = Some(SecretSource::Given(Secret::new("x".to_owned())));
        assert!(Twilio { api_secret: token.clone(), ..Twilio::default() }.is_wanted());
        let mut twilio = Twilio {
            account_sid: Some(format!("AC{}", "0".repeat(32))),
            whatsapp_from: Some("whatsapp:+14155238886".to_owned()),
            ..Twilio::default()
        };
        assert!(twilio.is_wanted() && twilio.missing().join("").starts_with("twilio.auth_token"));
        twilio.api_key = Some("SK1".to_owned());
        assert_eq!(twilio.missing().len(), 2);
        twilio.api_secret.clone_from(&token);
        assert_eq!((twilio.missing().len(), twilio.receives()), (0, Receive::Polling));
        // By a key nobody is known.
        twilio.public_url = Some("https://example.org".to_owned());
        assert_eq!((twilio.missing().len(), twilio.receives()), (1, Receive::Webhook));
        twilio.auth_token = token;
        assert_eq!(twilio.missing(), Vec::<&str>::new());
        assert_eq!(twilio.whatsapp_number(), Some("+14155238886"));
    }
}
