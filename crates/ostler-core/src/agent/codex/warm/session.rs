//! One session of the server: a thread, how it was opened, and its turn.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::{
    thread::{Bounds, Thread},
    turn::LiveTurn,
};
use crate::{
    agent::{
        TurnKey,
        codex::launch::{effort, ignored_system_prompt, trust_level},
    },
    memo::Totals,
    request::{Open, Options, Permissions, ProjectSettings},
};

/// A session.
pub(super) struct Session {
    /// The server's id; absent until it is told.
    pub(super) thread: Option<String>,
    /// Whether the server has confirmed the thread as it is set now.
    pub(super) is_open: bool,
    settings: Settings,
    /// What to say in the first turn.
    pub(super) warning: Option<String>,
    /// A prompt that waits until the thread is open and idle.
    pub(super) held: Option<Held>,
    pub(super) turn: Option<LiveTurn>,
    /// What the thread has used in all, where that is known.
    pub(super) totals: Option<Totals>,
    /// The model that answers.
    pub(super) model: Option<String>,
    /// What holds where a prompt says nothing. The server would go on with what
    /// the prompt before said.
    defaults: Option<Defaults>,
    /// Whether the last prompt had an effort of its own.
    has_own_effort: bool,
    /// What commands can do, as the server words it.
    sandbox: Value,
    /// Whether the thread is opened as soon as the server has closed it.
    pub(super) awaits_close: bool,
    /// How often that was waited for.
    pub(super) n_waits: u32,
    /// How often the server was not done with closing the thread.
    pub(super) n_closing: u32,
    /// The file in which the thread is kept.
    pub(super) file: Option<PathBuf>,
    /// The thread was left in a state that nobody knows: it is opened anew.
    pub(super) is_stale: bool,
}

/// A prompt that waits.
pub(super) struct Held {
    pub(super) turn: TurnKey,
    pub(super) prompt: String,
    pub(super) steers: Vec<String>,
    model: Option<String>,
    effort: Option<&'static str>,
    settings: Settings,
}

/// The model and the effort that a thread was opened with.
struct Defaults {
    model: Option<String>,
    effort: Option<String>,
}

/// What is fixed while a thread is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    cwd: PathBuf,
    permissions: Permissions,
    project_settings: ProjectSettings,
}

impl Settings {
    fn of(options: &Options) -> Self {
        Self {
            cwd: options.cwd.clone(),
            permissions: options.permissions,
            project_settings: options.project_settings,
        }
    }

    fn bounds(&self) -> Bounds {
        let (policy, sandbox, sandbox_type) = match self.permissions {
            Permissions::Bypass => ("never", "danger-full-access", "dangerFullAccess"),
            Permissions::Ask => ("on-request", "workspace-write", "workspaceWrite"),
            Permissions::ReadOnly => ("never", "read-only", "readOnly"),
        };
        Bounds { policy, sandbox, sandbox_type }
    }

    fn params(&self) -> Map<String, Value> {
        let Bounds { policy, sandbox, .. } = self.bounds();
        // Left unsaid, a thread without a sandbox makes the server trust its directory,
        // start the programs that its settings name, and write the trust into the
        // user's own configuration.
        let cwd = self.cwd.to_string_lossy();
        let trust = trust_level(self.project_settings);
        let mut config = Map::new();
        let mut projects = Map::new();
        projects.insert(cwd.clone().into_owned(), json!({ "trust_level": trust }));
        config.insert("projects".to_owned(), Value::Object(projects));
        if self.project_settings == ProjectSettings::Ignored {
            // The parents' settings would count as well, up to the root of the repository.
            config.insert("project_root_markers".to_owned(), json!([]));
        }
        let mut params = Map::new();
        params.insert("cwd".to_owned(), json!(cwd));
        params.insert("approvalPolicy".to_owned(), json!(policy));
        params.insert("sandbox".to_owned(), json!(sandbox));
        params.insert("config".to_owned(), Value::Object(config));
        params
    }
}

impl Session {
    /// A session that is to be opened.
    pub(super) fn new(open: &Open, options: &Options) -> Self {
        let memo = open.memo();
        Self {
            thread: memo.map(|memo| memo.id.clone()),
            is_open: false,
            settings: Settings::of(options),
            warning: ignored_system_prompt(open, options).map(str::to_owned),
            held: None,
            turn: None,
            // What a session used before it is known here can only be remembered.
            totals: memo.map_or(Some(Totals::default()), |memo| memo.totals),
            model: None,
            defaults: None,
            has_own_effort: false,
            sandbox: Value::Null,
            awaits_close: false,
            n_waits: 0,
            n_closing: 0,
            file: None,
            is_stale: false,
        }
    }

    /// What the thread is to be held to.
    pub(super) fn bounds(&self) -> Bounds {
        self.settings.bounds()
    }

    /// Takes over what the server says of the thread.
    pub(super) fn take(&mut self, thread: Thread) {
        self.is_open = true;
        self.n_closing = 0;
        self.thread = Some(thread.id);
        self.file = thread.file;
        self.sandbox = thread.sandbox;
        // A thread that is opened again tells what the last prompt wanted.
        let defaults = Defaults { model: thread.model, effort: thread.effort };
        self.defaults.get_or_insert(defaults);
    }

    /// What the agent may do here without asking.
    pub(super) fn permissions(&self) -> Permissions {
        self.settings.permissions
    }

    /// Returns method and parameters of the request that opens the thread.
    pub(super) fn opening(&self, options: Option<&Options>) -> (&'static str, Value) {
        let mut params = self.settings.params();
        if let Some(model) = options.and_then(|options| options.model.as_ref()) {
            params.insert("model".to_owned(), json!(model));
        }
        let method = match &self.thread {
            Some(id) => {
                params.insert("threadId".to_owned(), json!(id));
                // The whole history would come back otherwise, in one line.
                params.insert("excludeTurns".to_owned(), json!(true));
                "thread/resume"
            }
            None => {
                if let Some(text) = options.and_then(|options| options.system_prompt.as_ref()) {
                    params.insert("developerInstructions".to_owned(), json!(text));
                }
                "thread/start"
            }
        };
        (method, Value::Object(params))
    }

    /// Takes a prompt to be sent as soon as that is possible.
    pub(super) fn hold(&mut self, turn: TurnKey, prompt: &str, options: &Options) {
        self.held = Some(Held {
            turn,
            prompt: prompt.to_owned(),
            steers: Vec::new(),
            model: options.model.clone(),
            effort: options.thinking.map(effort),
            settings: Settings::of(options),
        });
    }

    /// Returns whether the thread has to be opened anew before the prompt that
    /// waits can be sent, and takes over what the prompt wants.
    pub(super) fn must_reopen(&mut self) -> bool {
        let Some(held) = &self.held else { return false };
        if !self.is_stale && held.settings == self.settings {
            return false;
        }
        self.settings = held.settings.clone();
        self.is_stale = false;
        self.is_open = false;
        self.await_close();
        true
    }

    /// The thread is opened as soon as the server has closed it. Returns the
    /// number of this waiting.
    pub(super) fn await_close(&mut self) -> u32 {
        self.awaits_close = true;
        self.n_waits = self.n_waits.wrapping_add(1);
        self.n_waits
    }

    /// Returns the parameters of the request that begins the turn, and notes
    /// which model answers in it.
    ///
    /// Everything that can be said with a turn is said, so that nothing depends
    /// on what the server has kept from earlier.
    pub(super) fn turn_params(&mut self, held: &Held) -> Value {
        let bounds = self.settings.bounds();
        let mut params = Map::new();
        params.insert("threadId".to_owned(), json!(self.thread));
        params.insert("input".to_owned(), input(&held.prompt));
        params.insert("cwd".to_owned(), json!(self.settings.cwd.to_string_lossy()));
        params.insert("approvalPolicy".to_owned(), json!(bounds.policy));
        params.insert("sandboxPolicy".to_owned(), self.sandbox.clone());
        let defaults = self.defaults.as_ref();
        let default_model = defaults.and_then(|defaults| defaults.model.as_ref());
        let model = held.model.as_ref().or(default_model).cloned();
        let default_effort = defaults.and_then(|defaults| defaults.effort.as_deref());
        match held.effort.or(default_effort) {
            Some(effort) => {
                params.insert("effort".to_owned(), json!(effort));
            }
            // An absent effort means the one before. This alone takes it back.
            None if self.has_own_effort => {
                let settings = json!({
                    "model": model, "reasoning_effort": null, "developer_instructions": null,
                });
                let mode = json!({ "mode": "default", "settings": settings });
                params.insert("collaborationMode".to_owned(), mode);
            }
            None => {}
        }
        self.has_own_effort = held.effort.is_some();
        if let Some(model) = &model {
            params.insert("model".to_owned(), json!(model));
        }
        self.model = model;
        Value::Object(params)
    }

    /// Returns whether this turn waits or runs here.
    pub(super) fn has_turn(&self, key: TurnKey) -> bool {
        let held = self.held.as_ref().map(|held| held.turn);
        held == Some(key) || self.turn.as_ref().is_some_and(|turn| turn.key == key)
    }
}

/// A text as the server takes it: nothing in it means anything.
pub(super) fn input(text: &str) -> Value {
    json!([{ "type": "text", "text": text, "text_elements": [] }])
}
