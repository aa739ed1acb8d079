//! The layers of a configuration, one over the other: what a file, variables
//! and flags say, key by key with where it comes from, and the types made of it.

use std::{collections::BTreeMap, ffi::OsStr, path::Path};

use ostler_core::environment::Variables;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{
    dotenv, duration,
    file::{self, Found},
    inbound::MOVED,
    key,
    load::Trust,
    problem::{Problem, Source},
    section::Config,
    variable::{Outcome, VARIABLES},
    walk::{self, Entry},
};

/// The layers so far.
pub(super) struct Layers {
    trust: Trust,
    pub(super) values: BTreeMap<String, (Value, Source)>,
    /// Sections that are there, even if nothing is in them.
    pub(super) sections: Vec<String>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<String>,
}

impl Layers {
    pub(super) fn new(trust: Trust) -> Self {
        Self {
            trust,
            values: BTreeMap::new(),
            sections: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds what a file says; returns its agents and hooks in their order.
    pub(super) fn add_file(&mut self, found: &Found) -> Vec<Entry> {
        let text = match file::text(&found.path) {
            Ok(text) => text,
            Err(why) => {
                let Found { path, is_local } = found.clone();
                let source = Source::File { path, place: None, is_local };
                self.problems.push(Problem { source, key: String::new(), why });
                return Vec::new();
            }
        };
        let layer = walk::read(found, &text);
        self.problems.extend(layer.problems);
        self.sections = layer.sections;
        let is_named =
            |entry: &Entry| ["agents.", "hooks."].iter().any(|it| entry.key.starts_with(it));
        let (named, entries): (Vec<_>, Vec<_>) = layer.entries.into_iter().partition(is_named);
        for entry in entries {
            self.set(&entry.key, entry.value, entry.source);
        }
        self.move_keys();
        self.trusted(named)
    }

    /// Leaves hooks of a directory out that may be a stranger's. Its agents stay:
    /// they are run only when somebody names them.
    fn trusted(&mut self, named: Vec<Entry>) -> Vec<Entry> {
        let mut left_out = Vec::new();
        let mut kept = Vec::new();
        for entry in named {
            let name = entry.key.rsplit_once('.').map_or("", |(name, _)| name).to_owned();
            let is_strange = self.trust == Trust::Named && entry.source.is_local();
            if !(is_strange && name.starts_with("hooks.")) {
                kept.push(entry);
            } else if !left_out.contains(&name) {
                self.warn_of_strange(&name, &entry.source);
                left_out.push(name);
            }
        }
        kept
    }

    fn warn_of_strange(&mut self, key: &str, source: &Source) {
        self.warnings.push(format!(
            "{source}: {key} is not used from here, because this directory could be a stranger's; \
             name the file with --config, set the variable, or use --trust-project"
        ));
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
    pub(super) fn add_variables(
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
    pub(super) fn set(&mut self, path: &str, value: Value, source: Source) {
        let Some(key) = key::find(path) else { return };
        if let Err(wrong) = key.kind.check(&value) {
            let key = format!("{path}{}", wrong.below);
            self.problems.push(Problem { source, key, why: wrong.why });
            return;
        }
        if self.trust == Trust::Named && source.is_local() && !key.is_harmless(&value) {
            self.warn_of_strange(path, &source);
            return;
        }
        self.values.insert(path.to_owned(), (value, source));
    }

    /// Makes the types, with the agents and hooks of one's own.
    pub(super) fn typed(&mut self, named: &[Entry]) -> Option<Config> {
        let mut root = Value::Object(Map::new());
        if self.sections.iter().any(|section| section == "inbound.reply") {
            root = json!({ "inbound": { "reply": {} } });
        }
        for (key, (value, _)) in &self.values {
            put(&mut root, key, value.clone());
        }
        let mut track = serde_path_to_error::Track::new();
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
        for entry in named {
            self.values.insert(entry.key.clone(), (Value::Null, entry.source.clone()));
        }
        for One { key, name, map, source } in by_name(named) {
            let added = if key.starts_with("hooks.") {
                config.hooks.add(name, map)
            } else {
                config.agents.add(name, map).map_err(|why| (None, why))
            };
            let Err((below, why)) = added else { continue };
            let is_its = |told: &str| {
                told.strip_prefix(key).is_some_and(|rest| !rest.starts_with(|c: char| c != '.'))
            };
            if self.problems.iter().any(|problem| is_its(&problem.key)) {
                continue;
            }
            let key = below.map_or_else(|| key.to_owned(), |below| format!("{key}.{below}"));
            let source = self.values.get(&key).map_or(source, |(_, source)| source).clone();
            self.problems.push(Problem { source, key, why });
        }
        Some(config)
    }
}

/// An agent or a hook, as a file describes it.
struct One<'a> {
    /// Where it is, such as `agents.goose`.
    key: &'a str,
    name: &'a str,
    map: Map<String, Value>,
    source: &'a Source,
}

/// Puts the entries of each agent and hook together, in their order.
fn by_name(entries: &[Entry]) -> Vec<One<'_>> {
    let mut all: Vec<One<'_>> = Vec::new();
    for entry in entries {
        let Some((key, field)) = entry.key.rsplit_once('.') else { continue };
        let Some((_, name)) = key.split_once('.') else { continue };
        if all.last().is_none_or(|last| last.key != key) {
            all.push(One { key, name, map: Map::new(), source: &entry.source });
        }
        if let Some(one) = all.last_mut() {
            one.map.insert(field.to_owned(), entry.value.clone());
        }
    }
    all
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
