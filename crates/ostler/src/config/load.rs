//! Puts the layers together: flags over the environment over the file over the
//! defaults, each key for itself. Nothing is used if anything is wrong.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
};

use ostler_core::{HostConfig, agent::Roster, environment::Variables};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{
    dotenv, duration,
    file::{self, Found},
    finish,
    inbound::MOVED,
    key,
    layer::{self, Entry},
    problem::{Problem, Problems, Source},
    section::Config,
    variable::{Outcome, VARIABLES},
};

/// Where to read a configuration from.
#[derive(Clone)]
pub(crate) struct Loader {
    pub(crate) environment: Variables,
    /// The working directory; empty for that of the process.
    pub(crate) here: PathBuf,
    /// The file that the command line names.
    pub(crate) file: Option<PathBuf>,
    pub(crate) flags: Vec<Flag>,
    pub(crate) trust: Trust,
}

/// A flag of the command line that sets a key.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

/// How far files are trusted that merely lie in the working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// They are the operator's: a gateway is started where its files are.
    Everything,
    /// The directory may be a stranger's repository: from there comes nothing
    /// that starts a program or allows one something.
    Named,
}

/// A configuration that is right, and where it comes from.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// The agents there are.
    pub(crate) roster: Roster,
    /// The outer environment.
    pub(crate) environment: Variables,
    /// What the `.env` file has and the environment has not.
    pub(super) dotenv: BTreeMap<String, String>,
    pub(crate) file: Option<Found>,
    /// What was read but is not as it should be.
    pub(crate) warnings: Vec<String>,
    /// What an operator should know when a gateway starts.
    pub(crate) notes: Vec<String>,
    /// Variables that are set, but have no effect yet.
    pub(crate) unused: Vec<&'static str>,
    pub(super) sources: BTreeMap<String, Source>,
}

impl fmt::Debug for Loaded {
    /// Leaves the environment out: there are secrets in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Loaded {
    /// Returns where the value of a key comes from.
    pub(crate) fn source(&self, key: &str) -> &Source {
        self.sources.get(key).unwrap_or(&Source::Default)
    }

    /// Whether somebody set a key.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.sources.contains_key(key)
    }

    /// Returns the surroundings in which agents run.
    pub(crate) fn host_config(&self) -> HostConfig {
        let mut host = HostConfig::from_environment(self.environment.clone());
        if let Some(folder) = &self.config.gateway.data_dir {
            host.data_dir = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        }
        host
    }
}

impl Loader {
    /// Reads from the environment of this process.
    pub(crate) fn from_process(file: Option<PathBuf>, trust: Trust) -> Self {
        #[expect(clippy::disallowed_methods, reason = "configuration is read here")]
        let environment = std::env::vars_os().collect();
        Self { environment, here: PathBuf::new(), file, flags: Vec::new(), trust }
    }

    /// Returns the file that counts.
    pub(crate) fn find(&self) -> Option<Found> {
        let (dotenv, _) = self.dotenv();
        self.find_beside(&dotenv)
    }

    fn find_beside(&self, dotenv: &[dotenv::Line]) -> Option<Found> {
        let is_named =
            self.file.is_some() || self.environment.contains_key(OsStr::new("OSTLER_CONFIG"));
        let line =
            dotenv.iter().rfind(|line| line.name == "OSTLER_CONFIG" && !line.value.is_empty());
        match line.filter(|_| !is_named) {
            Some(line) => Some(Found { path: self.here.join(&line.value), is_local: true }),
            None => file::find(self.file.as_deref(), &self.environment, &self.here),
        }
    }

    /// Reads everything.
    pub(crate) fn load(&self) -> Result<Loaded, Problems> {
        let mut layers = Layers { trust: self.trust, ..Layers::default() };
        let (dotenv, warnings) = self.dotenv();
        layers.warnings.extend(warnings);
        let found = self.find_beside(&dotenv);
        let mut agents = Vec::new();
        if let Some(found) = &found {
            agents = layers.add_file(found);
        }
        let unused = layers.add_variables(&self.environment, &dotenv, &self.dotenv_path());
        for flag in &self.flags {
            layers.set(flag.key, flag.value.clone(), Source::Flag(flag.name));
        }
        let config = layers.typed(&agents);
        let Layers { mut problems, warnings, sections: _, values, .. } = layers;
        let Some(config) = config.filter(|_| problems.is_empty()) else {
            return Err(Problems(problems));
        };
        let dotenv = dotenv.into_iter().map(|line| (line.name, line.value));
        let mut loaded = Loaded {
            config,
            roster: Roster::default(),
            environment: self.environment.clone(),
            dotenv: dotenv.collect(),
            file: found,
            warnings,
            notes: Vec::new(),
            unused,
            sources: values.into_iter().map(|(key, (_, source))| (key, source)).collect(),
        };
        problems.extend(finish::finish(&mut loaded));
        if problems.is_empty() { Ok(loaded) } else { Err(Problems(problems)) }
    }

    fn dotenv_path(&self) -> PathBuf {
        self.here.join(".env")
    }

    /// Reads the `.env` file, if there is one. Other programs read it as well, so
    /// what cannot be read is no error.
    fn dotenv(&self) -> (Vec<dotenv::Line>, Vec<String>) {
        let path = self.dotenv_path();
        // Folders of that name are common, too.
        if !path.is_file() {
            return (Vec::new(), Vec::new());
        }
        match file::text(&path) {
            Ok(text) => {
                let (lines, unread) = dotenv::parse(&text);
                let warn = |number: usize| {
                    format!("{}:{number}: not a line of NAME=value", path.display())
                };
                (lines, unread.into_iter().map(warn).collect())
            }
            Err(why) => (Vec::new(), vec![format!("{}: {why}; it is not used", path.display())]),
        }
    }
}

/// The layers so far.
struct Layers {
    trust: Trust,
    values: BTreeMap<String, (Value, Source)>,
    /// Sections that are there, even if nothing is in them.
    sections: Vec<String>,
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            trust: Trust::Everything,
            values: BTreeMap::new(),
            sections: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Layers {
    /// Adds what a file says; returns its agents in their order.
    fn add_file(&mut self, found: &Found) -> Vec<Entry> {
        let text = match file::text(&found.path) {
            Ok(text) => text,
            Err(why) => {
                let Found { path, is_local } = found.clone();
                let source = Source::File { path, place: None, is_local };
                self.problems.push(Problem { source, key: String::new(), why });
                return Vec::new();
            }
        };
        let layer = layer::read(found, &text);
        self.problems.extend(layer.problems);
        self.sections = layer.sections;
        let (agents, entries): (Vec<_>, Vec<_>) =
            layer.entries.into_iter().partition(|entry| entry.key.starts_with("agents."));
        for entry in entries {
            self.set(&entry.key, entry.value, entry.source);
        }
        self.move_keys();
        agents
    }

    /// Moves keys to where everybody reads them.
    fn move_keys(&mut self) {
        for moved in MOVED {
            let Some((value, source)) = self.values.remove(moved.from) else { continue };
            let value = (moved.convert)(&value);
            match self.values.get(moved.to) {
                Some((other, _)) if !is_same(other, &value) => {
                    let why = format!(
                        "{} is there as well, with another value; write one of them",
                        moved.to
                    );
                    self.problems.push(Problem { source, key: moved.from.to_owned(), why });
                }
                Some(_) | None => self.set(moved.to, value, source),
            }
        }
    }

    /// Adds what variables say; returns those that have no effect yet.
    fn add_variables(
        &mut self,
        environment: &Variables,
        dotenv: &[dotenv::Line],
        path: &Path,
    ) -> Vec<&'static str> {
        let mut unused = Vec::new();
        for variable in VARIABLES {
            let name = variable.name;
            let line = dotenv.iter().rfind(|line| line.name == name);
            let (text, source) = match (environment.get(OsStr::new(name)), line) {
                (Some(text), _) => (text.to_str(), Source::Variable(name)),
                (None, Some(line)) => {
                    let source = Source::DotEnv { path: path.to_owned(), line: line.number, name };
                    (Some(line.value.as_str()), source)
                }
                (None, None) => continue,
            };
            if variable.is_unused() {
                unused.push(name);
                continue;
            }
            let read = text.ok_or_else(|| "its value is not valid UTF-8".to_owned());
            match (read.and_then(|text| variable.value(text)), variable.key) {
                (Ok(Outcome::Value(value)), Some(key)) => self.set(key, value, source),
                (Ok(Outcome::Instead(value, warning)), Some(key)) => {
                    self.warnings.push(format!("{source}: {warning}"));
                    self.set(key, value, source);
                }
                (Ok(_), _) => {}
                (Err(why), key) => {
                    let key = key.unwrap_or_default().to_owned();
                    self.problems.push(Problem { source, key, why });
                }
            }
        }
        unused
    }

    /// Sets a key, over what was there.
    fn set(&mut self, path: &str, value: Value, source: Source) {
        let Some(key) = key::find(path) else { return };
        if let Err(wrong) = key.kind.check(&value) {
            let key = format!("{path}{}", wrong.below);
            self.problems.push(Problem { source, key, why: wrong.why });
            return;
        }
        if self.trust == Trust::Named && source.is_local() && !key.is_harmless(&value) {
            self.warnings.push(format!(
                "{source}: {path} is not used from here, because this directory could be a \
                 stranger's; name the file with --config, set the variable, or use --trust-project"
            ));
            return;
        }
        self.values.insert(path.to_owned(), (value, source));
    }

    /// Makes the types, with the agents of one's own.
    fn typed(&mut self, agents: &[Entry]) -> Option<Config> {
        let mut root = Value::Object(Map::new());
        if self.sections.iter().any(|section| section == "inbound.reply") {
            root = json!({ "inbound": { "reply": {} } });
        }
        for (key, (value, _)) in &self.values {
            put(&mut root, key, value.clone());
        }
        let track = serde_path_to_error::Track::new();
        let mut track = track;
        let read = Config::deserialize(serde_path_to_error::Deserializer::new(&root, &mut track));
        let mut config = match read {
            Ok(config) => config,
            Err(error) => {
                let key = track.path().to_string();
                let source =
                    self.values.get(&key).map_or(Source::Default, |(_, source)| source.clone());
                self.problems.push(Problem { source, key, why: error.to_string() });
                return None;
            }
        };
        let mut by_name: Vec<(&str, Map<String, Value>, &Source)> = Vec::new();
        for entry in agents {
            let mut names = entry.key.splitn(3, '.').skip(1);
            let (Some(name), Some(field)) = (names.next(), names.next()) else { continue };
            if by_name.last().is_none_or(|(last, ..)| *last != name) {
                by_name.push((name, Map::new(), &entry.source));
            }
            if let Some((_, map, _)) = by_name.last_mut() {
                map.insert(field.to_owned(), entry.value.clone());
            }
            self.values.insert(entry.key.clone(), (Value::Null, entry.source.clone()));
        }
        // What lacks a key was told before.
        let is_whole = self.problems.is_empty();
        for (name, map, source) in by_name.into_iter().filter(|_| is_whole) {
            if let Err(why) = config.agents.add(name, map) {
                let key = format!("agents.{name}");
                self.problems.push(Problem { source: source.clone(), key, why });
            }
        }
        Some(config)
    }
}

/// Whether two values of the same key mean the same.
fn is_same(one: &Value, other: &Value) -> bool {
    let durations = (duration::from_value(one), duration::from_value(other));
    one == other || matches!(durations, (Some(one), Some(other)) if one == other)
}

/// Puts a value where a name with dots leads.
fn put(root: &mut Value, key: &str, value: Value) {
    let mut node = root;
    for name in key.split('.') {
        if !node.is_object() {
            *node = Value::Object(Map::new());
        }
        let Value::Object(map) = node else { return };
        node = map.entry(name).or_insert(Value::Null);
    }
    *node = value;
}
