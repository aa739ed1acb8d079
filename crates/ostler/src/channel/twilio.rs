//! WhatsApp and SMS through Twilio, and conversations of several people there.
//!
//! Pure: `signature` knows Twilio's calls, `heard` reads them, `kind` has what each of
//! the three can take, `code` says what Twilio's errors mean, `template` what a template
//! can be filled with. `api` calls Twilio, `chat` is what the other chats are too,
//! `window` keeps WhatsApp's 24 hours, `bound` knows which messages are a group's,
//! `desk` deals with what people write, however it came: by `webhook`, or by `poll`,
//! which also finds what was written while nobody could be called. `delivery` follows
//! what became of messages. `post` is all of it for as long as a gateway runs.

pub(crate) mod api;
mod bound;
pub(crate) mod chat;
pub(crate) mod check;
mod code;
mod delivery;
mod desk;
mod heard;
mod kind;
mod poll;
pub(crate) mod post;
mod signature;
mod template;
mod webhook;
mod window;

use std::{fmt, sync::Arc};

use ostler_core::environment::Variables;
use tokio::sync::watch;

pub(crate) use self::kind::Kind;
use self::{
    api::{Api, Login},
    chat::TwilioChat,
};
use crate::{
    config::{Secret, SecretSource, Twilio},
    gateway::policy::Policy,
    media::{self, hosting::Hosting, vouched::Vouched},
    store::Store,
};

/// What is needed to speak there.
#[derive(Clone)]
pub(crate) struct Line {
    api: Arc<Api>,
    /// By which Twilio's calls are known; without it there are none.
    token: Option<Secret>,
    hosting: Hosting,
    config: Arc<Twilio>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

impl Line {
    /// Makes what can be made before the gateway runs; nothing, if no account is
    /// configured. The error is for the operator.
    pub(crate) async fn prepare(
        twilio: &Twilio,
        environment: &Variables,
        hosting: Hosting,
    ) -> Result<Option<Self>, String> {
        if !twilio.is_wanted() {
            return Ok(None);
        }
        let missing = twilio.missing();
        if !missing.is_empty() {
            return Err(format!("these are missing: {}", missing.join("; ")));
        }
        let (login, token) = login(twilio, environment).await?;
        let api = Arc::new(Api::new(login, twilio.api_url.as_deref()));
        Ok(Some(Self { api, token, hosting, config: Arc::new(twilio.clone()) }))
    }

    /// Lets files be fetched that come with messages: from Twilio, with its login.
    pub(crate) fn vouch(&self, media: &mut media::Rules) {
        for kind in Kind::ALL {
            let login = Some(self.api.login());
            let api_url = self.config.api_url.as_deref();
            let vouched = match kind {
                Kind::WhatsApp | Kind::Sms => Vouched::twilio(api_url, login),
                Kind::Group => Vouched::twilio_groups(api_url, login),
            };
            media.vouch(kind.channel(), vouched);
        }
    }

    /// Returns the chats that there are with these numbers.
    pub(crate) fn chats(
        &self,
        store: &Store,
        policy: &watch::Receiver<Arc<Policy>>,
    ) -> Vec<TwilioChat> {
        let kinds = Kind::ALL.into_iter().filter(|kind| kind.is_in(&self.config));
        kinds.map(|kind| TwilioChat::new(kind, self, store.clone(), policy.clone())).collect()
    }
}

/// Gets what calls are made with, and what they are known by.
pub(crate) async fn login(
    twilio: &Twilio,
    environment: &Variables,
) -> Result<(Login, Option<Secret>), String> {
    let token = secret(twilio.auth_token.as_ref(), environment).await?;
    let account = twilio.account_sid.clone().unwrap_or_default();
    let login = match (&twilio.api_key, secret(twilio.api_secret.as_ref(), environment).await?) {
        (Some(key), Some(secret)) => Login { account, user: key.clone(), password: secret },
        (_, _) => {
            let password = token.clone().ok_or("there is no token")?;
            Login { user: account.clone(), account, password }
        }
    };
    Ok((login, token))
}

async fn secret(
    source: Option<&SecretSource>,
    environment: &Variables,
) -> Result<Option<Secret>, String> {
    match source {
        None => Ok(None),
        Some(source) => source.get(environment).await.map(Some).map_err(|error| error.to_string()),
    }
}
