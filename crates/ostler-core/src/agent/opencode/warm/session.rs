//! One session of the server: where it is, what waits in it, and its turn.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::{attach::Rules, client::Round, launch, meanwhile::Meanwhile, turn::LiveTurn};
use crate::{
    agent::{TurnKey, opencode::launch::variant},
    request::{Open, Options, Permissions},
};

/// How many prompts of the past are remembered, whose records still change.
const MAX_PAST: usize = 16;
/// How long a title is, at most.
const TITLE_CHARS: usize = 50;

/// A session.
pub(super) struct Session {
    /// The server's id; absent until it is told.
    pub(super) id: Option<String>,
    /// Where it works.
    pub(super) directory: String,
    /// Whether the server was asked for it, or has confirmed it.
    pub(super) state: State,
    /// A prompt that waits until the session is open and idle.
    pub(super) held: Option<Held>,
    pub(super) turn: Option<LiveTurn>,
    /// The user's messages of turns that are over or not ours, the latest last.
    pub(super) past: VecDeque<String>,
    /// The model's messages of our last turn that is over.
    pub(super) answered: Vec<String>,
    /// When it had last been used before it was opened here, by the server's
    /// clock: messages from before are of other turns.
    pub(super) since: Option<i64>,
    /// The model that answered last. A prompt that names none would go to the
    /// model that was named last, even if there is none of that name.
    pub(super) model: Option<String>,
    /// The rules that the server has for it, as far as that is certain.
    pub(super) rules: Vec<Value>,
    /// It was seen with rules of its own.
    pub(super) has_rules: bool,
    /// Other rules that the server was told and has not confirmed.
    pub(super) ruling: Option<Vec<Value>>,
    /// What to say in the first turn.
    pub(super) warning: Option<String>,
    /// It was said if the version of the server is not one that was tested.
    pub(super) was_version_judged: bool,
    /// What happened while the messages are read again.
    pub(super) meanwhile: Option<Meanwhile>,
    /// Counts how often it was read again.
    pub(super) round: Round,
    /// Aborts that the server has not answered. One that it hears late would end
    /// the next turn.
    pub(super) n_aborts: u32,
    /// How often nothing was found where a turn should be.
    pub(super) n_missed: u32,
    /// It was closed, and is kept until nothing of it is left on the server.
    pub(super) is_closing: bool,
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is made for its first prompt.
    New,
    /// The server was asked.
    Asked,
    /// It exists.
    Open,
}

/// A prompt that waits.
pub(super) struct Held {
    pub(super) turn: TurnKey,
    pub(super) prompt: String,
    pub(super) steers: Vec<String>,
    pub(super) max_turns: Option<u32>,
    pub(super) permissions: Permissions,
    model: Option<String>,
    system: Option<String>,
    agent: Option<&'static str>,
    variant: Option<&'static str>,
    /// What the turn may do, where its session is told and not the process.
    pub(super) rules: Option<Rules>,
    /// What the process was told, for a session that has rules of its own: those
    /// count more.
    settings: Option<Rules>,
}

impl Session {
    /// A session that is to be opened.
    pub(super) fn new(open: &Open, options: &Options) -> Self {
        let memo = open.memo();
        let cwd = memo.and_then(|memo| memo.cwd.as_ref()).unwrap_or(&options.cwd);
        Self {
            id: memo.map(|memo| memo.id.clone()),
            directory: cwd.to_string_lossy().into_owned(),
            state: State::New,
            held: None,
            turn: None,
            past: VecDeque::new(),
            answered: Vec::new(),
            since: None,
            model: None,
            rules: Vec::new(),
            has_rules: false,
            ruling: None,
            warning: None,
            was_version_judged: false,
            meanwhile: None,
            round: Round::default(),
            n_aborts: 0,
            n_missed: 0,
            is_closing: false,
        }
    }

    /// Takes a prompt to be sent as soon as that is possible. A server that is
    /// not ours does not have its rules in the settings.
    pub(super) fn hold(&mut self, turn: TurnKey, prompt: &str, options: &Options, is_ours: bool) {
        self.held = Some(Held {
            turn,
            prompt: prompt.to_owned(),
            steers: Vec::new(),
            max_turns: options.max_turns,
            permissions: options.permissions,
            model: options.model.clone(),
            system: options.system_prompt.clone().filter(|text| !text.is_empty()),
            agent: launch::agent(options).filter(|_| is_ours),
            variant: options.thinking.map(variant),
            rules: (!is_ours).then(|| Rules::of(options)),
            settings: is_ours.then(|| Rules::of_settings(options)),
        });
    }

    /// Returns whether a message is of another turn.
    pub(super) fn is_past(&self, id: &str, info: &Map<String, Value>) -> bool {
        let created = info.get("time").and_then(|time| time.get("created")?.as_i64());
        let is_older = created.zip(self.since).is_some_and(|(created, since)| created <= since);
        is_older || self.past.iter().any(|past| past == id)
    }

    /// Returns whether a request is one of a turn of ours, which may be over.
    pub(super) fn has_asked(&self, request: &Map<String, Value>) -> bool {
        let message = request.get("tool").and_then(|tool| tool.get("messageID")?.as_str());
        let is_late = message.is_some_and(|id| self.answered.iter().any(|known| known == id));
        self.turn.is_some() || is_late
    }

    /// Returns whether nothing is left to say of what its next turn may do.
    pub(super) fn obeys(&self, rules: &Rules) -> bool {
        match rules {
            // They go with the prompt.
            Rules::Free => true,
            // They begin with one for everything, so nothing before them counts.
            Rules::Strict(rules) => self.rules.ends_with(rules),
        }
    }

    /// Takes which rules the server has for it. What is told may be older than
    /// what we know, so if it differs the next turn says its rules again.
    pub(super) fn was_ruled(&mut self, rules: &[Value]) {
        self.has_rules |= !rules.is_empty();
        if self.rules != rules {
            self.rules.clear();
        }
    }

    /// Makes the prompt that waits say its rules, if those of the process would
    /// not count.
    pub(super) fn insist(&mut self) {
        if let Some(held) = self.held.as_mut().filter(|_| self.has_rules) {
            held.rules = held.settings.take().or(held.rules.take());
        }
    }

    /// Returns the id and the directory.
    pub(super) fn at(&self) -> Option<(String, String)> {
        Some((self.id.clone()?, self.directory.clone()))
    }

    /// Remembers the messages of a turn that is over.
    pub(super) fn remember(&mut self, users: Vec<String>) {
        self.past.extend(users);
        while self.past.len() > MAX_PAST {
            self.past.pop_front();
        }
    }

    /// Returns whether something of a turn is left on the server that was ended
    /// here: a prompt that may be taken up yet, or an abort that may end the next.
    pub(super) fn is_draining(&self) -> bool {
        self.turn.as_ref().map_or(self.n_aborts > 0, |live| live.is_silent)
    }

    /// Learns what a session of the same name knew that was closed before.
    pub(super) fn inherit(&mut self, closed: Self) {
        self.remember(closed.past.into());
        self.has_rules |= closed.has_rules;
        // What was told of them meanwhile was not heard here.
        self.rules.clear();
    }

    /// Returns whether this turn waits or runs here.
    pub(super) fn has_turn(&self, key: TurnKey) -> bool {
        let held = self.held.as_ref().map(|held| held.turn);
        held == Some(key) || self.turn.as_ref().is_some_and(|turn| turn.key == key)
    }
}

impl Held {
    /// Returns the model to ask, given the one that answered last.
    pub(super) fn model<'a>(&'a self, last: Option<&'a str>) -> Option<&'a str> {
        self.model.as_deref().or(last)
    }

    /// Returns what the server is sent for this text.
    pub(super) fn body(&self, text: &str, last: Option<&str>) -> Value {
        let mut body = Map::new();
        body.insert("parts".to_owned(), json!([{ "type": "text", "text": text }]));
        if let Some(model) = self.model(last) {
            let (provider, model) = model.split_once('/').unwrap_or((model, ""));
            let model = json!({ "providerID": provider, "modelID": model });
            body.insert("model".to_owned(), model);
        }
        let texts =
            [("agent", self.agent), ("system", self.system.as_deref()), ("variant", self.variant)];
        for (name, value) in texts {
            if let Some(value) = value {
                body.insert(name.to_owned(), json!(value));
            }
        }
        if let Some(Rules::Free) = self.rules {
            // Puts its rules in the place of those that the session had.
            body.insert("tools".to_owned(), json!({ "question": false }));
        }
        Value::Object(body)
    }

    /// Returns what the server is sent for a new session.
    pub(super) fn session_body(&self) -> Value {
        let mut body = json!({ "title": self.title() });
        if let (Some(rules), Some(body)) = (&self.rules, body.as_object_mut()) {
            body.insert("permission".to_owned(), rules.list().into());
        }
        body
    }

    /// Returns a title for the session. Without one the server would have the
    /// model make it, in a call that no figure shows.
    fn title(&self) -> String {
        let line = self.prompt.trim().lines().next().unwrap_or_default();
        let title: String = line.chars().take(TITLE_CHARS).collect();
        if title.is_empty() { "Ostler".to_owned() } else { title }
    }
}
