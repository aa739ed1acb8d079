//! Sessions of the gateway: who listens to what, what was sent, and what is to be
//! sent again. The connections themselves are in `gateway`.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::world::World;

/// How many events are kept for a session that resumes.
const KEPT: usize = 20_000;

/// The intents that the double knows by name.
pub(super) mod intent {
    pub(crate) const GUILDS: u64 = 1;
    pub(crate) const GUILD_MESSAGES: u64 = 1 << 9;
    pub(crate) const GUILD_TYPING: u64 = 1 << 11;
    pub(crate) const DIRECT_MESSAGES: u64 = 1 << 12;
    pub(crate) const DIRECT_TYPING: u64 = 1 << 14;
    pub(crate) const MESSAGE_CONTENT: u64 = 1 << 15;
    /// Members and presences, which this application has not been given.
    pub(crate) const NOT_GIVEN: u64 = 1 << 1 | 1 << 8;
    /// All that exist.
    pub(crate) const ALL: u64 = 0x1_FFFF | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25;
}

/// What a connection is to do.
#[derive(Debug)]
pub(super) enum Out {
    Text(String),
    Close(u16, &'static str),
    /// End without a word.
    Cut,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) sender: UnboundedSender<Out>,
    pub(super) session: Option<String>,
    /// Whether nothing arrives any more although it is open.
    pub(super) silent: bool,
    /// When the client said what it said in the last minute.
    heard: VecDeque<Instant>,
}

/// How often a client may say something in a minute.
const SAID: usize = 120;
const MINUTE: Duration = Duration::from_secs(60);

impl Link {
    /// Sends something, unless nobody is there to hear it any more.
    pub(super) fn send(&self, out: Out) {
        if !self.silent || !matches!(out, Out::Text(_)) {
            self.sender.send(out).ok();
        }
    }

    /// Counts something that the client said; returns whether that is too often.
    fn is_too_loud(&mut self) -> bool {
        self.heard.push_back(Instant::now());
        while self.heard.front().is_some_and(|at| at.elapsed() > MINUTE) {
            self.heard.pop_front();
        }
        self.heard.len() > SAID
    }
}

/// A session, with or without a connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) intents: u64,
    pub(super) link: Option<u64>,
    sequence: u64,
    sent: VecDeque<(u64, String)>,
}

impl World {
    /// Tells all sessions that listen for it.
    pub(super) fn dispatch(&mut self, event: &str, needs: u64, data: &Value) {
        self.dispatch_redacted(event, needs, data, data);
    }

    /// Tells all sessions that listen, those without the content intent less.
    pub(super) fn dispatch_redacted(
        &mut self,
        event: &str,
        needs: u64,
        data: &Value,
        redacted: &Value,
    ) {
        let listening: Vec<(String, u64)> = self
            .sessions
            .iter()
            .filter(|(_, session)| needs == 0 || session.intents & needs != 0)
            .map(|(id, session)| (id.clone(), session.intents))
            .collect();
        for (id, intents) in listening {
            let data = if intents & intent::MESSAGE_CONTENT == 0 { redacted } else { data };
            self.tell(&id, event, data);
        }
    }

    fn tell(&mut self, session: &str, event: &str, data: &Value) {
        let Some(session) = self.sessions.get_mut(session) else { return };
        session.sequence += 1;
        let sequence = session.sequence;
        // Clients look for the first fields before they read the data.
        let text = format!(r#"{{"t":"{event}","s":{sequence},"op":0,"d":{data}}}"#);
        session.sent.push_back((sequence, text.clone()));
        if session.sent.len() > KEPT {
            session.sent.pop_front();
        }
        if let Some(link) = session.link.and_then(|link| self.links.get(&link)) {
            link.send(Out::Text(text));
        }
    }

    /// Says something that is not an event.
    pub(super) fn control(&self, link: u64, opcode: u8, data: &Value) {
        if let Some(link) = self.links.get(&link) {
            link.send(Out::Text(format!(r#"{{"t":null,"s":null,"op":{opcode},"d":{data}}}"#)));
        }
    }

    pub(super) fn close(&self, link: u64, code: u16, reason: &'static str) {
        if let Some(link) = self.links.get(&link) {
            link.send(Out::Close(code, reason));
        }
    }

    /// Hears what a client says.
    pub(super) fn hear(&mut self, link: u64, text: &str) {
        if self.links.get_mut(&link).is_some_and(Link::is_too_loud) {
            return self.close(link, 4008, "Rate limited.");
        }
        let Ok(said) = serde_json::from_str::<Value>(text) else {
            return self.close(link, 4002, "Decode error.");
        };
        let session = self.links.get(&link).and_then(|link| link.session.as_ref());
        match (said["op"].as_u64(), session) {
            (Some(1), _) => {
                self.heartbeats += 1;
                self.control(link, 11, &Value::Null);
            }
            (Some(2), None) => self.identify(link, &said["d"]),
            (Some(6), None) => self.resume(link, &said["d"]),
            (Some(2 | 6), Some(_)) => self.close(link, 4005, "Already authenticated."),
            (Some(3 | 4 | 8 | 31), Some(_)) => {}
            (Some(3 | 4 | 8 | 31), None) => self.close(link, 4003, "Not authenticated."),
            _ => self.close(link, 4001, "Unknown opcode."),
        }
    }

    fn is_token(&self, said: &Value) -> bool {
        let said = said["token"].as_str().unwrap_or("");
        !self.token_rejected && said.strip_prefix("Bot ").unwrap_or(said) == self.token
    }

    fn identify(&mut self, link: u64, said: &Value) {
        self.identifies += 1;
        if !self.is_token(said) {
            return self.close(link, 4004, "Authentication failed.");
        }
        let Some(intents) = said["intents"].as_u64().filter(|one| one & !intent::ALL == 0) else {
            return self.close(link, 4013, "Invalid intent(s).");
        };
        let content = if self.content_forbidden { intent::MESSAGE_CONTENT } else { 0 };
        if intents & (intent::NOT_GIVEN | content) != 0 {
            return self.close(link, 4014, "Disallowed intent(s).");
        }
        let id = format!("{:032x}", self.next_id());
        let session = Session { intents, link: Some(link), sequence: 0, sent: VecDeque::new() };
        self.sessions.insert(id.clone(), session);
        if let Some(link) = self.links.get_mut(&link) {
            link.session = Some(id.clone());
        }
        let guilds: Vec<u64> = self.guilds.keys().copied().collect();
        let unavailable = |guild: &u64| json!({ "id": guild.to_string(), "unavailable": true });
        let mut ready = json!({
            "v": 10,
            "user": self.me(),
            "guilds": guilds.iter().map(unavailable).collect::<Vec<_>>(),
            "session_id": id,
            "session_type": "normal",
            "resume_gateway_url": self.resume_url,
            "application": {
                "id": self.application.to_string(),
                "flags": self.application_flags(),
            },
            "private_channels": [],
            "relationships": [],
            "user_settings": {},
        });
        if !said["shard"].is_null() {
            ready["shard"] = said["shard"].clone();
        }
        self.tell(&id, "READY", &ready);
        if intents & intent::GUILDS != 0 {
            for guild in guilds {
                let guild = self.guild_create(guild);
                self.tell(&id, "GUILD_CREATE", &guild);
            }
        }
    }

    fn resume(&mut self, link: u64, said: &Value) {
        if !self.is_token(said) {
            return self.close(link, 4004, "Authentication failed.");
        }
        let id = said["session_id"].as_str().unwrap_or("").to_owned();
        let Some(session) = self.sessions.get_mut(&id) else {
            return self.control(link, 9, &false.into());
        };
        let Some(seen) = said["seq"].as_u64().filter(|seen| *seen <= session.sequence) else {
            return self.close(link, 4007, "Invalid seq.");
        };
        if session.sent.front().is_some_and(|(oldest, _)| seen + 1 < *oldest) {
            return self.control(link, 9, &false.into());
        }
        let before = session.link.replace(link);
        let missed: Vec<String> = session
            .sent
            .iter()
            .filter(|(sequence, _)| *sequence > seen)
            .map(|(_, text)| text.clone())
            .collect();
        if let Some(before) = before.and_then(|before| self.links.get_mut(&before)) {
            before.session = None;
            before.send(Out::Close(4000, "Resumed elsewhere."));
        }
        self.resumes += 1;
        if let Some(link) = self.links.get_mut(&link) {
            link.session = Some(id.clone());
            for text in missed {
                link.send(Out::Text(text));
            }
        }
        self.tell(&id, "RESUMED", &json!({}));
    }

    pub(super) fn connected(&mut self, sender: UnboundedSender<Out>) -> u64 {
        self.connections += 1;
        let number = self.connections as u64;
        self.links
            .insert(number, Link { sender, session: None, silent: false, heard: VecDeque::new() });
        let interval = u64::try_from(self.heartbeat.as_millis()).unwrap();
        self.control(number, 10, &json!({ "heartbeat_interval": interval }));
        number
    }

    /// Forgets a connection; whoever ended it with 1000 or 1001 has ended the session.
    pub(super) fn disconnected(&mut self, number: u64, code: Option<u16>) {
        let session = self.links.remove(&number).and_then(|link| link.session);
        let Some(id) = session else { return };
        if matches!(code, Some(1000 | 1001)) {
            self.sessions.remove(&id);
        } else if let Some(session) = self.sessions.get_mut(&id) {
            session.link = None;
        }
    }

    /// Ends a session whose client has not been heard for too long.
    pub(super) fn timed_out(&mut self, number: u64) {
        let link = self.links.get_mut(&number);
        if let Some(id) = link.and_then(|link| link.session.take()) {
            self.sessions.remove(&id);
        }
        self.close(number, 4009, "Session timed out.");
    }

    /// Tells all connections that their sessions are invalid.
    pub(super) fn invalidate(&mut self, resumable: bool) {
        let numbers: Vec<u64> = self.links.keys().copied().collect();
        for number in &numbers {
            self.control(*number, 9, &resumable.into());
        }
        if !resumable {
            self.forget_sessions();
        }
    }

    /// Forgets what was told, and counts anew.
    pub(super) fn rewind_sessions(&mut self) {
        for session in self.sessions.values_mut() {
            session.sequence = 0;
            session.sent.clear();
        }
    }

    pub(super) fn forget_sessions(&mut self) {
        self.sessions.clear();
        for link in self.links.values_mut() {
            link.session = None;
        }
    }
}
