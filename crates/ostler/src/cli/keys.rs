//! `ostler keys`: the keys of the HTTP service. Works while the gateway runs, and
//! when it does not; before its first start, too, so that it can have one.

use std::time::Duration;

use clap::{Args, Subcommand};
use ipnet::IpNet;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Exit,
    agents::FormArg,
    store::{failed, print, shown},
};
use crate::{
    clock::Millis,
    config::{Loaded, Problems, duration, store_location},
    id::{KeyId, ProjectId},
    key::{
        Scope,
        wanted::{Wanted, read_network},
    },
    store::{
        Conn, Location, Store, StoreError, Use,
        audit::{self, Entry},
        keys::{self, KeyState, Revoked, StoredKey},
    },
    ui::{Ui, printable},
};

/// Who is written down for what is done here.
const OPERATOR: &str = "operator";

#[derive(Args, Debug)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
    /// What to print
    #[arg(long, value_enum, default_value = "text", global = true)]
    output: FormArg,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key, and print it; it cannot be shown again
    Create(CreateArgs),
    /// List the keys, newest first, without their words
    List {
        /// Begin after this key
        #[arg(long, value_name = "ID")]
        after: Option<KeyId>,
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Revoke a key for good
    Revoke {
        /// The key, as key_… or as it begins (ost_…)
        key: String,
    },
}

#[derive(Args, Debug)]
struct CreateArgs {
    /// What it is called
    #[arg(long)]
    name: String,
    /// What it may be used for: projects:read, projects:execute, keys:read, keys:write,
    /// audit:read or admin; more than once for several
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<Scope>,
    /// A project that it is for; more than once for several [default: all]
    #[arg(long = "project", value_name = "ID")]
    projects: Vec<ProjectId>,
    /// A network that it may be used from, such as 10.0.0.0/8; more than once for several
    /// [default: all]
    #[arg(long = "network", value_name = "NETWORK", value_parser = read_network)]
    networks: Vec<IpNet>,
    /// How long it can be used, such as 30d [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = read_duration)]
    expires: Option<Duration>,
}

fn read_duration(text: &str) -> Result<Duration, &'static str> {
    duration::parse(text).ok_or(duration::HINT)
}

impl CreateArgs {
    fn wanted(self, now: Millis) -> Result<Wanted, String> {
        let Self { name, scopes, projects, networks, expires } = self;
        let projects = Some(projects).filter(|list| !list.is_empty());
        let networks = Some(networks).filter(|list| !list.is_empty());
        let expires_at = expires.map(|length| now.after(length));
        Wanted { name, scopes, projects, networks, expires_at }.checked(now)
    }
}

/// A key as it is printed. The names are part of the contract.
#[derive(Serialize)]
struct Row {
    id: KeyId,
    /// Its word, where it was just made.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    name: String,
    prefix: String,
    state: KeyState,
    scopes: Vec<Scope>,
    projects: Option<Vec<ProjectId>>,
    networks: Option<Vec<IpNet>>,
    created_by: String,
    created_at: Millis,
    expires_at: Option<Millis>,
    revoked_at: Option<Millis>,
    last_used_at: Option<Millis>,
}

impl Row {
    fn new(stored: StoredKey, now: Millis) -> Self {
        let state = stored.state(now);
        let StoredKey { key, revoked_at, last_used_at } = stored;
        Self {
            id: key.id,
            key: None,
            name: key.name,
            prefix: key.prefix,
            state,
            scopes: key.scopes,
            projects: key.projects,
            networks: key.networks,
            created_by: key.created_by,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at,
            last_used_at,
        }
    }

    /// Returns it for people.
    fn text(&self) -> String {
        let scopes: Vec<_> = self.scopes.iter().map(|scope| scope.as_str()).collect();
        let state = match (self.state, self.expires_at) {
            (KeyState::Revoked, _) => "revoked".to_owned(),
            (KeyState::Expired, _) => "expired".to_owned(),
            (KeyState::Active, Some(end)) => format!("until {end}"),
            (KeyState::Active, None) => "active".to_owned(),
        };
        let used = self.last_used_at.map_or("never used".to_owned(), |at| format!("used {at}"));
        let mut line =
            format!("{}  {}…  {}  {state}  {used}", self.id, self.prefix, scopes.join(","));
        if let Some(projects) = &self.projects {
            let projects: Vec<_> = projects.iter().map(ToString::to_string).collect();
            line.push_str(&format!("  in {}", projects.join(",")));
        }
        if let Some(networks) = &self.networks {
            let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
            line.push_str(&format!("  from {}", networks.join(",")));
        }
        printable(&format!("{line}  {}", self.name))
    }
}

/// A page of them.
#[derive(Serialize)]
struct List {
    keys: Vec<Row>,
    next: Option<KeyId>,
}

/// Does what the subcommand says.
pub(crate) async fn run(args: KeysArgs, loaded: Loaded, ui: &mut Ui) -> Result<Exit, Problems> {
    let location = store_location(&loaded).await?;
    let KeysArgs { command, output } = args;
    let now = Millis::now();
    let opened = match &command {
        KeysCommand::Create(_) => open_or_make(&location).await,
        KeysCommand::Revoke { .. } => Store::open(&location, Use::Beside).await,
        KeysCommand::List { .. } => Store::open(&location, Use::Look).await,
    };
    let store = match opened {
        Ok(store) => store,
        Err(error) => return Ok(failed(&error, ui)),
    };
    let done = match command {
        KeysCommand::Create(args) => create(&store, args, now, output, ui).await,
        KeysCommand::List { after, limit } => list(&store, after, limit, now, output, ui).await,
        KeysCommand::Revoke { key } => revoke(&store, key, now, output, ui).await,
    };
    store.close().await;
    Ok(done.unwrap_or_else(|error| failed(&error, ui)))
}

/// Opens the store beside a gateway; makes it if no gateway ever did.
async fn open_or_make(location: &Location) -> Result<Store, StoreError> {
    match Store::open(location, Use::Beside).await {
        Err(StoreError::Missing { .. }) => Store::open(location, Use::Gateway).await,
        opened => opened,
    }
}

async fn create(
    store: &Store,
    args: CreateArgs,
    now: Millis,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let made = args.wanted(now).and_then(|wanted| {
        wanted.make(OPERATOR.to_owned(), now).map_err(|error| error.to_string())
    });
    let (text, key) = match made {
        Ok(made) => made,
        Err(why) => {
            ui.notice(&format!("ostler: {why}"));
            return Ok(Exit::Usage);
        }
    };
    let entry = entry("key.create", key.id, &key.summary(), now);
    let granted = store
        .write((key.clone(), entry), |conn, (key, entry)| Box::pin(keys::grant(conn, key, entry)));
    if let Some(project) = granted.await? {
        ui.notice(&format!("ostler: there is no project {project}"));
        return Ok(Exit::Failed);
    }
    let mut row = Row::new(StoredKey { key, revoked_at: None, last_used_at: None }, now);
    row.key = Some(text.reveal().to_owned());
    // The word alone, so that it can be put where it is needed.
    let printed = print(&row, text.reveal(), output, ui);
    if printed.is_ok() && matches!(output, FormArg::Text) {
        ui.notice(&format!("ostler: {} was made; its word is shown only now", row.id));
    }
    Ok(shown(printed, Exit::Answered, ui))
}

/// Makes a line of the audit.
fn entry(action: &str, id: KeyId, detail: &Value, now: Millis) -> Entry {
    let (actor, action) = (OPERATOR.to_owned(), action.to_owned());
    Entry { at: now, actor, action, subject: id.to_string(), detail: detail.to_string() }
}

async fn list(
    store: &Store,
    after: Option<KeyId>,
    limit: u32,
    now: Millis,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let found = store
        .read((after, limit), |conn, (after, limit)| Box::pin(keys::list(conn, *after, *limit)));
    let keys: Vec<_> = found.await?.into_iter().map(|key| Row::new(key, now)).collect();
    let is_full = u32::try_from(keys.len()).is_ok_and(|n_rows| n_rows == limit);
    let next = keys.last().filter(|_| is_full).map(|row| row.id);
    let lines: Vec<_> = keys.iter().map(Row::text).collect();
    let text = if lines.is_empty() { "no keys".to_owned() } else { lines.join("\n") };
    Ok(shown(print(&List { keys, next }, &text, output, ui), Exit::Answered, ui))
}

async fn revoke(
    store: &Store,
    which: String,
    now: Millis,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let done = store.write_repeatable((which.clone(), now), |conn, (which, now)| {
        Box::pin(revoke_one(conn, which, *now))
    });
    match done.await? {
        None => {
            ui.notice(&format!("ostler: there is no key {which:?}"));
            Ok(Exit::Failed)
        }
        Some(Revoked::Last) => {
            ui.notice(
                "ostler: this is the last admin key that works; make another one before with \
                 `ostler keys create --name admin --scope admin`",
            );
            Ok(Exit::Failed)
        }
        Some(Revoked::Done(key)) => {
            let row = Row::new(*key, now);
            let text = printable(&format!("{} ({}): revoked", row.id, row.name));
            Ok(shown(print(&row, &text, output, ui), Exit::Answered, ui))
        }
    }
}

/// Revokes a key that is named by its id or its start.
async fn revoke_one(
    conn: &mut Conn,
    which: &str,
    now: Millis,
) -> Result<Option<Revoked>, StoreError> {
    let found = match which.parse::<KeyId>() {
        Ok(id) => keys::find(conn, id).await?,
        Err(_) => keys::find_by_prefix(conn, which).await?,
    };
    let Some(key) = found else { return Ok(None) };
    if key.revoked_at.is_some() {
        return Ok(Some(Revoked::Done(Box::new(key))));
    }
    let id = key.key.id;
    let revoked = keys::revoke(conn, key, now).await?;
    if matches!(revoked, Revoked::Done(_)) {
        audit::add(conn, &entry("key.revoke", id, &json!({}), now)).await?;
    }
    Ok(Some(revoked))
}
