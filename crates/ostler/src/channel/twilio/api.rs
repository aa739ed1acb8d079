//! Calls of Twilio's API. Each ends within a time limit. What an answer means is up
//! to `code`.

mod listing;

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use form_urlencoded::Serializer;
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use reqwest::{
    Method, Response,
    header::{CONTENT_TYPE, DATE, RETRY_AFTER},
};
use serde::{Deserialize, de::DeserializeOwned};

pub(crate) use self::listing::{
    GroupHook, Hook, Listed, Message, Number, Participant, Sender, Service, Wanted,
};
use super::code::Trouble;
use crate::{
    clients::{self, Clients},
    config::Secret,
    media::vouched,
};

/// How long it may take to get through, and how long a whole call.
const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(20);
/// The longest answer that is read.
const ANSWER: usize = 4 * 1024 * 1024;

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) account: String,
    pub(crate) user: String,
    pub(crate) password: Secret,
}

/// What calls.
pub(crate) struct Api {
    login: Login,
    /// Where everything is, if not at Twilio.
    base: Option<String>,
    clients: Clients,
    /// How far the clock was off when Twilio answered last.
    skew: Mutex<Option<SignedDuration>>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("account", &self.login.account).finish_non_exhaustive()
    }
}

/// The parts of Twilio, each at a place of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Core,
    Messaging,
    Conversations,
    /// The files of groups.
    Media,
}

impl Part {
    fn url(self) -> &'static str {
        match self {
            Self::Core => "https://api.twilio.com",
            Self::Messaging => "https://messaging.twilio.com",
            Self::Conversations => "https://conversations.twilio.com",
            Self::Media => "https://mcs.us1.twilio.com",
        }
    }
}

/// A message on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) to: String,
    /// The number that it comes from, or the service that chooses one.
    pub(crate) from: Option<String>,
    pub(crate) service: Option<String>,
    pub(crate) body: String,
    /// Where its files are.
    pub(crate) media: Vec<String>,
    /// Where Twilio says what became of it.
    pub(crate) status: Option<String>,
    /// The template that it is made of, and what is filled in, as JSON.
    pub(crate) template: Option<(String, String)>,
}

impl Outgoing {
    fn form(&self) -> String {
        let optional = [
            ("From", self.from.as_deref()),
            ("MessagingServiceSid", self.service.as_deref()),
            ("StatusCallback", self.status.as_deref()),
        ];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut said: Vec<(&str, &str)> =
            [("To", self.to.as_str())].into_iter().chain(optional).collect();
        match &self.template {
            Some((sid, variables)) => {
                said.extend([("ContentSid", sid.as_str()), ("ContentVariables", variables)]);
            }
            None => {
                let body = (!self.body.is_empty()).then_some(("Body", self.body.as_str()));
                said.extend(body);
                said.extend(self.media.iter().map(|url| ("MediaUrl", url.as_str())));
            }
        }
        form(&said)
    }
}

/// What Twilio calls a thing.
#[derive(Clone, Debug, Deserialize)]
struct Named {
    sid: String,
}

/// An account, as far as it matters.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Account {
    pub(crate) friendly_name: String,
    pub(crate) status: String,
}

/// A refusal in Twilio's words.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Refusal {
    code: u32,
}

impl Api {
    pub(crate) fn new(login: Login, base: Option<&str>) -> Self {
        let base = base.map(|base| base.trim_end_matches('/').to_owned());
        Self { login, base, clients: Clients::new(CONNECT), skew: Mutex::new(None) }
    }

    /// Returns what files are fetched with.
    pub(crate) fn login(&self) -> vouched::Login {
        let Login { user, password, .. } = self.login.clone();
        vouched::Login { user, password }
    }

    /// Returns where the files of groups are.
    pub(crate) fn media_url(&self) -> String {
        self.at(Part::Media, "")
    }

    pub(crate) fn account_sid(&self) -> &str {
        &self.login.account
    }

    /// Sends a message; returns what Twilio calls it.
    pub(crate) async fn send(&self, message: &Outgoing) -> Result<String, Trouble> {
        let url = self.of_account("/Messages.json");
        let sent: Named = self.post(&url, message.form()).await?;
        Ok(sent.sid)
    }

    /// Says something in a group; returns what Twilio calls it.
    pub(crate) async fn say(&self, group: &str, body: &str) -> Result<String, Trouble> {
        let url = self.at(Part::Conversations, &format!("/v1/Conversations/{group}/Messages"));
        let sent: Named = self.post(&url, form(&[("Body", body)])).await?;
        Ok(sent.sid)
    }

    /// Shows that somebody is at work on the answer to a message of WhatsApp's.
    pub(crate) async fn typing(&self, message: &str) -> Result<(), Trouble> {
        let url = self.at(Part::Messaging, "/v2/Indicators/Typing.json");
        let form = form(&[("messageId", message), ("channel", "whatsapp")]);
        self.post::<serde_json::Value>(&url, form).await.map(drop)
    }

    pub(crate) async fn account(&self) -> Result<Account, Trouble> {
        let url = self.of_account(".json");
        self.get(&url).await
    }

    /// Returns how far this machine's clock was ahead when Twilio answered last.
    pub(crate) fn clock_skew(&self) -> Option<SignedDuration> {
        *self.skew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where something of a part of Twilio's is.
    fn at(&self, part: Part, path: &str) -> String {
        format!("{}{path}", self.base.as_deref().unwrap_or(part.url()))
    }

    fn of_account(&self, path: &str) -> String {
        let account = &self.login.account;
        self.at(Part::Core, &format!("/2010-04-01/Accounts/{account}{path}"))
    }

    async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, Trouble> {
        self.call(Method::GET, url, None).await
    }

    async fn post<T: DeserializeOwned>(&self, url: &str, form: String) -> Result<T, Trouble> {
        self.call(Method::POST, url, Some(form)).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        url: &str,
        form: Option<String>,
    ) -> Result<T, Trouble> {
        let client = self.clients.client(url);
        let client = client.map_err(|error| Trouble::Unmade(error.without_url().to_string()))?;
        let request = client
            .request(method, url)
            .basic_auth(&self.login.user, Some(self.login.password.reveal()));
        let request = match form {
            Some(form) => {
                request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form)
            }
            None => request,
        };
        let answered = async {
            let response = request.send().await.map_err(|error| lost(&error))?;
            self.note_clock(&response);
            read(response).await
        };
        tokio::time::timeout(WHOLE, answered).await.unwrap_or(Err(Trouble::Late))
    }

    fn note_clock(&self, response: &Response) {
        let said = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        let theirs = said.and_then(|date| rfc2822::parse(date).ok());
        if let Some(theirs) = theirs {
            let skew = Timestamp::now().duration_since(theirs.timestamp());
            *self.skew.lock().unwrap_or_else(PoisonError::into_inner) = Some(skew);
        }
    }
}

/// Writes what a call says.
fn form(said: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(said).finish()
}

/// Reads an answer.
async fn read<T: DeserializeOwned>(response: Response) -> Result<T, Trouble> {
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
    let after = after.and_then(|after| after.trim().parse().ok()).map(Duration::from_secs);
    let mut body = Vec::new();
    let is_long = clients::read_start(response, ANSWER, &mut body).await;
    let is_whole = matches!(is_long, Ok(false));
    if status.is_success() {
        let read = serde_json::from_slice(&body).ok().filter(|_| is_whole);
        return read.ok_or(Trouble::Garbled);
    }
    let Refusal { code } = serde_json::from_slice(&body).unwrap_or_default();
    Err(Trouble::Refused { status: status.as_u16(), code, after })
}

fn lost(error: &reqwest::Error) -> Trouble {
    if error.is_connect() {
        Trouble::Unreachable
    } else if error.is_timeout() {
        Trouble::Late
    } else if error.is_builder() {
        Trouble::Unmade("the address of Twilio's API cannot be used".to_owned())
    } else {
        Trouble::Cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_it_has_and_nothing_else() {
        let message = Outgoing {
            to: "whatsapp:+15551234567".to_owned(),
            from: Some("whatsapp:+14155238886".to_owned()),
            body: "a & b".to_owned(),
            media: vec!["https://x/1".to_owned(), "https://x/2".to_owned()],
            ..Outgoing::default()
        };
        assert_eq!(
            message.form(),
            "To=whatsapp%3A%2B15551234567&From=whatsapp%3A%2B14155238886&Body=a+%26+b\
             &MediaUrl=https%3A%2F%2Fx%2F1&MediaUrl=https%3A%2F%2Fx%2F2"
        );
        // What a template says is up to the template.
        let template = Some(("HX1".to_owned(), "{}".to_owned()));
        let form = Outgoing { template, ..message }.form();
        assert!(form.ends_with("ContentSid=HX1&ContentVariables=%7B%7D"), "{form}");
    }
}
