//! `ostler sessions`: the gateway's conversations, who answers in them, and the
//! sessions that the agents have there. Works while it runs, and when it does not.

mod change;
mod view;

use std::{fmt, path::Path, str::FromStr};

use clap::{Args, Subcommand};
use ostler_core::{failure::chain, host::Host, registry::Agent as _};

use self::{
    change::{reset, set_agent},
    view::{Details, Page, Row, SessionRow, TurnRow},
};
use super::{
    Exit,
    agents::FormArg,
    store::{failed, print, shown},
};
use crate::{
    clock::Millis,
    config::{Loaded, Problems, Settings, store_location},
    id::{ConversationId, IdError},
    socket,
    store::{
        Conn, Store, StoreError, Use,
        conversations::{self, Address, Conversation},
        sessions, turns,
    },
    ui::Ui,
};

/// How many turns are shown.
const TURNS: u32 = 20;

#[derive(Args, Debug)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    command: SessionsCommand,
    /// What to print
    #[arg(long, value_enum, default_value = "text", global = true)]
    output: FormArg,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List the conversations, newest first
    List {
        /// Begin after this conversation
        #[arg(long, value_name = "ID")]
        after: Option<ConversationId>,
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Show a conversation: its agent, sessions and last turns
    Show {
        /// The conversation, as cnv_… or channel:address
        conversation: Which,
    },
    /// Forget the sessions of a conversation, so that the next message begins afresh
    Reset {
        /// The conversation, as cnv_… or channel:address
        conversation: Which,
    },
    /// Let another agent answer in a conversation; its sessions are forgotten
    Agent {
        /// The conversation, as cnv_… or channel:address
        conversation: Which,
        /// The agent
        name: String,
    },
}

/// A conversation, however it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Id(ConversationId),
    At(Address),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(':') {
            return text
                .parse()
                .map(Self::At)
                .map_err(|error: <Address as FromStr>::Err| error.to_string());
        }
        text.parse().map(Self::Id).map_err(|error: IdError| format!("{error}, or like local:main"))
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// Does what the subcommand says.
pub(crate) async fn run(args: SessionsArgs, loaded: Loaded, ui: &mut Ui) -> Result<Exit, Problems> {
    let location = store_location(&loaded).await?;
    let socket = socket::path(&loaded.host_config().data_dir);
    let SessionsArgs { command, output } = args;
    let purpose = match &command {
        SessionsCommand::List { .. } | SessionsCommand::Show { .. } => Use::Look,
        SessionsCommand::Reset { .. } | SessionsCommand::Agent { .. } => Use::Beside,
    };
    let command = match command {
        SessionsCommand::Agent { conversation, name } => {
            match usable(&name, Settings::new(loaded, Some(&name)).await?).await {
                Ok(name) => SessionsCommand::Agent { conversation, name },
                Err((exit, why)) => {
                    ui.notice(&format!("ostler: {why}"));
                    return Ok(exit);
                }
            }
        }
        other @ (SessionsCommand::List { .. }
        | SessionsCommand::Show { .. }
        | SessionsCommand::Reset { .. }) => other,
    };
    let store = match Store::open(&location, purpose).await {
        Ok(store) => store,
        Err(error) => return Ok(failed(&error, ui)),
    };
    let done = perform(&store, command, output, &socket, ui).await;
    store.close().await;
    Ok(done.unwrap_or_else(|error| failed(&error, ui)))
}

/// Returns the name that an agent goes by, if it can be run.
async fn usable(name: &str, settings: Settings) -> Result<String, (Exit, String)> {
    let spec = settings.roster.resolve(name);
    let spec = spec.map_err(|error| (Exit::Usage, error.to_string()))?;
    let host = Host::new(settings.host_config());
    match settings.cli_agent(spec, &host).validate().await {
        Ok(_) => Ok(spec.name.to_string()),
        Err(error) => {
            let why = format!("{} cannot be run: {}", spec.name, chain(&error));
            Err((Exit::NotRunnable, why))
        }
    }
}

async fn perform(
    store: &Store,
    command: SessionsCommand,
    output: FormArg,
    socket: &Path,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let (which, changed) = match command {
        SessionsCommand::List { after, limit } => {
            return list(store, after, limit, output, ui).await;
        }
        SessionsCommand::Show { conversation } => {
            let details =
                store.read(conversation.clone(), |conn, which| Box::pin(details(conn, which)));
            let Some(details) = details.await? else { return Ok(unknown(&conversation, ui)) };
            let text = details.text(Millis::now());
            return Ok(shown(print(&details, &text, output, ui), Exit::Answered, ui));
        }
        SessionsCommand::Reset { conversation } => {
            let args = (conversation.clone(), Millis::now());
            let changed =
                store.write(args, |conn, (which, now)| Box::pin(reset(conn, which, *now)));
            (conversation, changed.await?)
        }
        SessionsCommand::Agent { conversation, name } => {
            let args = (conversation.clone(), name, Millis::now());
            let changed = store.write(args, |conn, (which, name, now)| {
                Box::pin(set_agent(conn, which, name, *now))
            });
            (conversation, changed.await?)
        }
    };
    let Some(change) = changed else { return Ok(unknown(&which, ui)) };
    socket::client::tell_to_look(socket).await;
    if let Some(job) = change.running {
        ui.notice(&format!("ostler: {job} is running; its session is kept when it ends"));
    }
    let text = change.text();
    Ok(shown(print(&change, &text, output, ui), Exit::Answered, ui))
}

pub(super) fn unknown(which: &Which, ui: &mut Ui) -> Exit {
    ui.notice(&format!("ostler: there is no conversation {which}"));
    Exit::Failed
}

async fn list(
    store: &Store,
    after: Option<ConversationId>,
    limit: u32,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let page = store.read((after, limit), |conn, (after, limit)| {
        Box::pin(conversations::list(conn, *after, *limit))
    });
    let conversations: Vec<_> = page.await?.into_iter().map(Row::from).collect();
    let is_full = u32::try_from(conversations.len()).is_ok_and(|n_rows| n_rows == limit);
    let next = conversations.last().filter(|_| is_full).map(|row| row.id);
    let page = Page { conversations, next };
    let text = page.text();
    Ok(shown(print(&page, &text, output, ui), Exit::Answered, ui))
}

/// Finds a conversation.
pub(super) async fn find(
    conn: &mut Conn,
    which: &Which,
) -> Result<Option<Conversation>, StoreError> {
    match which {
        Which::Id(id) => conversations::find(conn, *id).await,
        Which::At(address) => conversations::find_at(conn, address).await,
    }
}

async fn details(conn: &mut Conn, which: &Which) -> Result<Option<Details>, StoreError> {
    let Some(conversation) = find(conn, which).await? else { return Ok(None) };
    let id = conversation.id;
    let sessions = sessions::list(conn, id).await?.into_iter().map(SessionRow::from).collect();
    let turns = turns::newest(conn, id, TURNS).await?.into_iter().map(TurnRow::from).collect();
    Ok(Some(Details { conversation: conversation.into(), sessions, turns }))
}

#[cfg(test)]
mod tests;
