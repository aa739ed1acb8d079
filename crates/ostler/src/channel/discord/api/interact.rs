//! Answers to buttons and commands, and which commands there are.

use serde::{Deserialize, Serialize};
use twilight_http::{request::RequestBuilder, routing::Route};

use super::{Api, Trouble, id, payload, to};
use crate::channel::discord::{heard::Ticket, slash::Command};

/// The first answer to a button or a command. It has to come within three seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    Say {
        text: String,
        is_private: bool,
    },
    /// Something will be said (`edit_response`).
    Later {
        is_private: bool,
    },
    /// The message with the button stays as it is, or is changed by other means.
    Nothing,
    /// A form with one field comes up; what is typed comes back under this id.
    Ask {
        id: String,
        title: String,
        label: String,
    },
}

/// What became of a first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Now,
    /// There was one before.
    Before,
}

/// What Discord says of something that was answered.
const ANSWERED: u64 = 40060;
/// What marks a message in which something will be said.
const AWAITED: u64 = 1 << 7;

#[derive(Deserialize)]
struct ReadAnswer {
    #[serde(default)]
    flags: u64,
}

impl Api {
    /// Gives the first answer, unless there is one.
    pub(crate) async fn respond(
        &self,
        ticket: &Ticket,
        response: &Response,
    ) -> Result<Given, Trouble> {
        let route = Route::InteractionCallback {
            interaction_id: id(&ticket.id)?,
            interaction_token: token(ticket)?,
            with_response: false,
        };
        match self.call(open(&route, &payload::first(response))).await {
            Ok(_) => Ok(Given::Now),
            Err(trouble) if trouble.is_code(ANSWERED) => Ok(Given::Before),
            Err(trouble) => Err(trouble),
        }
    }

    /// Whether the first answer was put off and not given yet.
    pub(crate) async fn is_awaited(&self, ticket: &Ticket) -> Result<bool, Trouble> {
        let route = Route::GetInteractionOriginal {
            application_id: id(&ticket.application)?,
            interaction_token: token(ticket)?,
        };
        let ReadAnswer { flags } = self.ask(to(&route).use_authorization_token(false)).await?;
        Ok(flags & AWAITED != 0)
    }

    /// Says something more, to whoever began it and nobody else.
    pub(crate) async fn whisper(&self, ticket: &Ticket, text: &str) -> Result<(), Trouble> {
        let route = Route::ExecuteWebhook {
            thread_id: None,
            token: token(ticket)?,
            wait: None,
            with_components: None,
            webhook_id: id(&ticket.application)?,
        };
        self.call(open(&route, &payload::whispered(text))).await?;
        Ok(())
    }

    /// Changes the first answer, or gives the one that was put off.
    pub(crate) async fn edit_response(&self, ticket: &Ticket, text: &str) -> Result<(), Trouble> {
        let route = Route::UpdateInteractionOriginal {
            application_id: id(&ticket.application)?,
            interaction_token: token(ticket)?,
        };
        self.call(open(&route, &payload::said(text))).await?;
        Ok(())
    }

    /// Sees to it that there are these commands and no others. Returns whether
    /// anything had to be changed.
    pub(crate) async fn register(&self, commands: &[Command]) -> Result<bool, Trouble> {
        let application_id = id(&self.application().await?.id)?;
        let route = Route::GetGlobalCommands { application_id, with_localizations: None };
        let mut there: Vec<Command> = self.ask(to(&route)).await?;
        there.sort_by(|a, b| a.name.cmp(&b.name));
        let mut wanted = commands.to_vec();
        wanted.sort_by(|a, b| a.name.cmp(&b.name));
        if there == wanted {
            return Ok(false);
        }
        let request = to(&Route::SetGlobalCommands { application_id }).json(&commands);
        self.call(request).await?;
        Ok(true)
    }
}

/// Makes a request that needs no token but that of its path.
fn open(route: &Route<'_>, body: &impl Serialize) -> RequestBuilder {
    to(route).json(body).use_authorization_token(false)
}

/// Returns a token that leads nowhere but where it belongs.
fn token(ticket: &Ticket) -> Result<&str, Trouble> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
    if ticket.token.is_empty() || !ticket.token.chars().all(is_plain) {
        return Err(Trouble::Unmade("that is not a token of Discord"));
    }
    Ok(&ticket.token)
}
