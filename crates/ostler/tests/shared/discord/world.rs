//! All that there is at one moment: people, places, messages, sessions, and what is
//! planned to go wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    command::Commands,
    fault::Faults,
    interaction::Interaction,
    limits::Limits,
    message::{Change, ChangeKind, Message},
    place::{Channel, Guild, User},
    session::{Link, Session},
    time,
};

/// The world of one double.
pub(crate) struct World {
    pub(super) api: String,
    pub(super) gateway: String,
    /// Where a session is to be gone on with.
    pub(super) resume_url: String,
    pub(super) token: String,
    pub(super) bot: u64,
    pub(super) application: u64,
    last_id: u64,

    pub(super) users: BTreeMap<u64, User>,
    pub(super) guilds: BTreeMap<u64, Guild>,
    pub(super) channels: BTreeMap<u64, Channel>,
    /// The messages by channel, also those that only one user can see.
    pub(super) messages: BTreeMap<u64, BTreeMap<u64, Message>>,
    pub(super) changes: BTreeMap<u64, Vec<Change>>,
    /// The channel, message and time of each nonce that was to be unique.
    pub(super) nonces: BTreeMap<String, (u64, u64, Instant)>,
    /// How long a nonce is remembered.
    pub(super) nonce_life: Duration,
    /// What the bot sent whose words rang somewhere.
    pub(super) pings: Vec<Message>,
    pub(super) interactions: BTreeMap<u64, Interaction>,
    pub(super) commands: Commands,

    /// The open connections of the gateway.
    pub(super) links: BTreeMap<u64, Link>,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) heartbeat: Duration,
    pub(super) connections: usize,
    pub(super) identifies: usize,
    pub(super) resumes: usize,
    pub(super) heartbeats: usize,

    pub(super) requests: Vec<(String, String, u16)>,
    pub(super) limited: usize,
    pub(super) limits: Limits,
    pub(super) faults: Faults,
    pub(super) content_forbidden: bool,
    pub(super) token_rejected: bool,
    pub(super) refused: BTreeSet<u64>,
    /// How long an interaction waits for its answer.
    pub(super) patience: Duration,
    /// How far in the past all that is made is said to have been made.
    behind: Duration,
    /// How often a message of more than an hour can be edited, and how often each was.
    pub(super) old_edits: u32,
    pub(super) edited_old: BTreeMap<u64, u32>,
}

impl World {
    pub(super) fn new(api: SocketAddr, gateway: SocketAddr, behind: Duration) -> Self {
        let mut world = Self {
            api: format!("http://{api}"),
            gateway: format!("ws://{gateway}"),
            resume_url: format!("ws://{gateway}"),
            token: "MTAwMDAwMDAwMDAwMDAwMDAwMA.double.of-discord".to_owned(),
            bot: 0,
            application: 0,
            last_id: 0,
            users: BTreeMap::new(),
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
            messages: BTreeMap::new(),
            changes: BTreeMap::new(),
            nonces: BTreeMap::new(),
            nonce_life: Duration::from_secs(300),
            pings: Vec::new(),
            interactions: BTreeMap::new(),
            commands: Commands::default(),
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            heartbeat: Duration::from_secs(5),
            connections: 0,
            identifies: 0,
            resumes: 0,
            heartbeats: 0,
            requests: Vec::new(),
            limited: 0,
            limits: Limits::new(),
            faults: Faults::default(),
            content_forbidden: false,
            token_rejected: false,
            refused: BTreeSet::new(),
            patience: Duration::from_secs(3),
            behind,
            old_edits: 3,
            edited_old: BTreeMap::new(),
        };
        world.application = world.next_id();
        world.bot = world.add_user("ostler", true);
        world
    }

    /// Returns an id that is greater than all before.
    pub(super) fn next_id(&mut self) -> u64 {
        let behind = u64::try_from(self.behind.as_millis()).unwrap();
        self.last_id = time::snowflake(time::now() - behind).max(self.last_id + 1);
        self.last_id
    }

    pub(super) fn changed(&mut self, channel: u64, kind: ChangeKind, message: u64, content: &str) {
        let content = content.to_owned();
        let change = Change { kind, message, content, at: Instant::now() };
        self.changes.entry(channel).or_default().push(change);
    }

    pub(super) fn find_message(&self, channel: u64, id: u64) -> Option<&Message> {
        self.messages.get(&channel)?.get(&id)
    }

    /// Returns the messages that all in a channel can see, oldest first.
    pub(crate) fn messages(&self, channel: u64) -> Vec<&Message> {
        let all = self.messages.get(&channel).into_iter().flat_map(BTreeMap::values);
        all.filter(|message| !message.is_ephemeral()).collect()
    }

    /// Returns what the bot did in a channel: sent, edited, deleted, typed.
    pub(crate) fn changes(&self, channel: u64) -> &[Change] {
        self.changes.get(&channel).map_or(&[], Vec::as_slice)
    }

    /// Returns the messages of the bot whose words rang somewhere when they were sent.
    /// That a reply rings whoever it answers is not among that.
    pub(crate) fn pings(&self) -> &[Message] {
        &self.pings
    }

    /// Returns the threads below a channel.
    pub(crate) fn threads(&self, channel: u64) -> Vec<u64> {
        let below = |(_, thread): &(&u64, &Channel)| thread.parent == Some(channel);
        self.channels.iter().filter(below).map(|(id, _)| *id).collect()
    }

    /// Returns the commands that are registered, those for everywhere first.
    pub(crate) fn commands(&self) -> Vec<Value> {
        self.commands.all()
    }

    /// Returns how often commands were written.
    pub(crate) fn command_writes(&self) -> usize {
        self.commands.writes
    }

    /// Returns how many connections of the gateway were opened.
    pub(crate) fn connections(&self) -> usize {
        self.connections
    }

    /// Returns how many connections of the gateway are open.
    pub(crate) fn open_connections(&self) -> usize {
        self.links.len()
    }

    /// Returns how many sessions have a connection.
    pub(crate) fn connected_sessions(&self) -> usize {
        self.sessions.values().filter(|session| session.link.is_some()).count()
    }

    pub(crate) fn identifies(&self) -> usize {
        self.identifies
    }

    /// Returns how many sessions were resumed with success.
    pub(crate) fn resumes(&self) -> usize {
        self.resumes
    }

    /// Returns how many heartbeats came.
    pub(crate) fn heartbeats(&self) -> usize {
        self.heartbeats
    }

    /// Returns the method, path with query, and status of every request.
    pub(crate) fn requests(&self) -> &[(String, String, u16)] {
        &self.requests
    }

    /// Returns how many requests were answered with 429.
    pub(crate) fn limited(&self) -> usize {
        self.limited
    }

    /// Returns how many requests came although they had been told to wait longer.
    pub(crate) fn hurried(&self) -> usize {
        self.limits.hurried
    }

    /// Returns how many planned faults have not happened yet.
    pub(crate) fn faults_left(&self) -> usize {
        self.faults.len()
    }

    /// Says what happened, for a test that waited in vain.
    pub(super) fn report(&self) -> String {
        let mut report = format!(
            "connections {} (open {}), identifies {}, resumes {}, 429s {}\n",
            self.connections,
            self.links.len(),
            self.identifies,
            self.resumes,
            self.limited
        );
        let skipped = self.requests.len().saturating_sub(20);
        for (method, path, status) in self.requests.iter().skip(skipped) {
            report.push_str(&format!("{status} {method} {path}\n"));
        }
        for channel in self.channels.keys() {
            for message in self.messages(*channel).iter().rev().take(5).rev() {
                let (author, content) = (message.author, &message.content);
                report.push_str(&format!("#{channel} @{author}: {content:?}\n"));
            }
        }
        report
    }
}
