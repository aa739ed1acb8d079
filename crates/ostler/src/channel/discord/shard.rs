//! The connection on which Discord tells what happens. It is kept up, resumed after
//! a loss and after a restart, and closed so that it can be resumed; what it brings
//! is handed on in the words of `heard`, as fast as somebody takes it.

mod fatal;
mod listener;

use std::{sync::Arc, time::Duration};

use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::{sync::mpsc, time};
use tokio_util::sync::CancellationToken;

pub(crate) use self::fatal::Fatal;
use self::listener::{Listener, Round};
use super::{
    api::{Api, Trouble},
    heard::{Heard, Person, Places, Pressed, Slash},
    prepare_encryption,
};
use crate::config::Secret;

/// The longest wait between two attempts to learn who the bot is.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a connection is made with.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) token: Secret,
    /// Unset: Discord's own.
    pub(crate) gateway_url: Option<String>,
    pub(crate) api: Arc<Api>,
    /// Where an earlier connection was left.
    pub(crate) resume: Option<Position>,
}

/// Up to where Discord's events were heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) session: String,
    pub(crate) sequence: u64,
    pub(crate) url: String,
    /// The id of what was heard last: what is newer may have been missed if the session
    /// cannot be gone on with.
    #[serde(default)]
    pub(crate) newest: Option<u64>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Where to go on once it was dealt with.
    pub(crate) position: Option<Position>,
    pub(crate) happening: Happening,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    Connected {
        bot: Person,
        application: String,
        is_resumed: bool,
        /// Below which ids nothing was missed; nothing if nothing at all was.
        missed_since: Option<u64>,
    },
    Heard(Heard),
    Pressed(Pressed),
    Slash(Slash),
}

/// Listens until it is told to stop, or nobody takes the events any more. A full
/// receiver is waited for: Discord tells again what it has told nobody meanwhile.
pub(crate) async fn listen(
    connection: Connection,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
) -> Result<(), Fatal> {
    prepare_encryption().map_err(|error| Fatal { reason: error.to_string() })?;
    if connection.gateway_url.as_deref().is_some_and(|url| !is_gateway(url)) {
        return Err(Fatal::url());
    }
    let Some(identity) = stop.run_until_cancelled(introduce(&connection.api)).await else {
        return Ok(());
    };
    let (bot, application) = identity?;
    let newest = connection.resume.as_ref().and_then(|position| position.newest);
    let position = connection.resume.clone().filter(|position| is_gateway(&position.url));
    let mut listener = Listener {
        connection,
        bot,
        application,
        places: Places::default(),
        position,
        newest,
        missed_since: None,
        events,
        is_told: false,
        n_losses: 0,
    };
    while let Round::Again = listener.round(&stop).await? {}
    Ok(())
}

/// Learns who the bot is and what it belongs to, as long as it takes.
async fn introduce(api: &Api) -> Result<(Person, String), Fatal> {
    let mut wait = Duration::from_secs(1);
    loop {
        let asked = async { Ok::<_, Trouble>((api.me().await?, api.application().await?.id)) };
        match asked.await {
            Ok(identity) => return Ok(identity),
            Err(trouble) if trouble.is_token_refused() => return Err(Fatal::token()),
            Err(trouble) => {
                let why = trouble.to_string();
                tracing::warn!(why, ?wait, "Discord does not say who the bot is; trying again");
            }
        }
        time::sleep(wait).await;
        wait = PATIENCE.min(wait * 2);
    }
}

/// Says whether something is a URL that can be connected to. What connects panics
/// if it cannot read one.
fn is_gateway(url: &str) -> bool {
    let is_whole = Url::parse(url).is_ok_and(|url| {
        matches!(url.scheme(), "ws" | "wss") && url.has_host() && url.query().is_none()
    });
    is_whole && format!("{url}/?v=10&encoding=json").parse::<axum::http::Uri>().is_ok()
}

#[cfg(test)]
mod tests;
