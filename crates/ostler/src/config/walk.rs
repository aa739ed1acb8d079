//! What a file says, key by key, held against the table of keys: every value
//! with its place, and everything that is wrong, not only the first thing.

use ostler_core::agent::acp::check_name;
use serde_json::Value;

use super::{
    file::Found,
    hooks,
    key::{self, KEYS, Named, OLD, REQUIRED},
    nearest::nearest,
    problem::{Place, Problem, Source},
    tree::{self, Node, Part},
};

/// So many mistakes say enough.
const MAX_PROBLEMS: usize = 50;
/// More values than that have no place told: each is looked for in the whole text.
const MAX_PLACES: usize = 500;

/// A value, and where it comes from.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) source: Source,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct FileLayer {
    /// In the order of the file.
    pub(super) entries: Vec<Entry>,
    /// Sections that are there, even if they are empty.
    pub(super) sections: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

/// Reads the text of a file.
pub(super) fn read(found: &Found, text: &str) -> FileLayer {
    let mut walk =
        Walk { found, text, names: Vec::new(), at: Vec::new(), layer: FileLayer::default() };
    match json5::from_str::<Node>(text) {
        Ok(root) => walk.node(&root),
        Err(error) => {
            let place = error.position().map(Place::from);
            walk.problem_at(place, without_place(&error));
        }
    }
    walk.layer
}

/// Returns the words of an error; the place is told before them.
fn without_place(error: &json5::Error) -> String {
    let text = error.to_string();
    let place = error.position().map(|at| format!(" at {at}")).unwrap_or_default();
    text.strip_suffix(place.as_str()).unwrap_or(&text).to_owned()
}

/// A walk through the tree of a file.
struct Walk<'a> {
    found: &'a Found,
    text: &'a str,
    /// The names that lead to where the walk is.
    names: Vec<String>,
    /// The same as numbers of entries.
    at: Vec<usize>,
    layer: FileLayer,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node) {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        match (key::named(&names), node) {
            // As if it was not there, so that a default file can name every key.
            (_, Node::Leaf(Value::Null)) if !self.names.is_empty() => {}
            (Named::Key(key), node) => {
                if *node == Node::NoNumber {
                    let why = format!("expected {}, found {}", key.kind.noun(), node.noun());
                    return self.problem(Part::Value, why);
                }
                self.duplicates(node);
                let value = node.value();
                match key.kind.check(&value) {
                    Ok(()) => {
                        let source = self.source(Part::Value);
                        self.layer.entries.push(Entry { key: self.names.join("."), value, source });
                    }
                    Err(wrong) => {
                        self.names.push(wrong.below);
                        self.problem(Part::Value, wrong.why);
                        self.names.pop();
                    }
                }
            }
            (Named::Section(known), Node::Map(entries)) => self.section(&known, entries),
            (Named::Section(known), node) => {
                let known = if known == ["*"] {
                    format!("{} by name", self.names.join("."))
                } else {
                    known.join(", ")
                };
                let why = format!("expected an object with {known}, found {}", node.noun());
                self.problem(Part::Value, why);
            }
            // Whoever led here looked first.
            (Named::Nothing, _) => {}
        }
    }

    fn section(&mut self, known: &[&'static str], entries: &[(String, Node)]) {
        self.layer.sections.push(self.names.join("."));
        let mut meant = Vec::new();
        for (number, (name, node)) in entries.iter().enumerate() {
            self.at.push(number);
            self.names.push(name.clone());
            if entries.iter().take(number).any(|(other, _)| other == name) {
                self.problem(Part::Key, "duplicate: it is there twice".to_owned());
            } else if known == ["*"] {
                let is_hook = self.names.first().is_some_and(|section| section == "hooks");
                let checked = if is_hook {
                    hooks::check_name(name)
                } else {
                    check_name(name).map_err(|error| error.to_string())
                };
                match checked {
                    Ok(()) => self.node(node),
                    Err(why) => self.problem(Part::Key, why),
                }
            } else if known.contains(&name.as_str()) {
                self.node(node);
            } else {
                let (why, instead) = unknown(name, known);
                meant.extend(instead);
                self.problem(Part::Key, why);
            }
            self.names.pop();
            self.at.pop();
        }
        let is_there = |name: &str| {
            entries.iter().any(|(key, node)| key == name && *node != Node::Leaf(Value::Null))
        };
        for (section, name) in REQUIRED {
            if is_section(section, &self.names) && !is_there(name) && !meant.contains(name) {
                let known =
                    || if *name == "agent" { ": write agent: { kind: 'claude' }" } else { "" };
                self.problem(Part::Value, format!("missing key `{name}`{}", known()));
            }
        }
    }

    /// Finds keys that are there twice inside of a value.
    fn duplicates(&mut self, node: &Node) {
        let Node::Map(entries) = node else { return };
        for (number, (name, _)) in entries.iter().enumerate() {
            if entries.iter().take(number).any(|(other, _)| other == name) {
                self.at.push(number);
                self.names.push(name.clone());
                self.problem(Part::Key, "duplicate: it is there twice".to_owned());
                self.names.pop();
                self.at.pop();
            }
        }
    }

    fn source(&self, part: Part) -> Source {
        let is_few = self.layer.entries.len() < MAX_PLACES;
        let place = is_few.then(|| tree::locate(self.text, &self.at, part)).flatten();
        self.source_at(place.map(Place::from))
    }

    fn source_at(&self, place: Option<Place>) -> Source {
        Source::File { path: self.found.path.clone(), place, is_local: self.found.is_local }
    }

    fn problem(&mut self, part: Part, why: String) {
        if self.layer.problems.len() < MAX_PROBLEMS {
            let place = tree::locate(self.text, &self.at, part).map(Place::from);
            self.problem_at(place, why);
        }
    }

    fn problem_at(&mut self, place: Option<Place>, why: String) {
        let key = self.names.join(".").replace(".[", "[").replace("..", ".");
        let key = key.trim_end_matches('.').to_owned();
        self.layer.problems.push(Problem { source: self.source_at(place), key, why });
    }
}

fn is_section(pattern: &str, names: &[String]) -> bool {
    let pattern = pattern.split('.');
    pattern.clone().count() == names.len()
        && pattern.zip(names).all(|(own, name)| own == "*" || own == name)
}

/// Returns what to say about a key that there is not, and which one may be meant.
fn unknown(name: &str, known: &[&'static str]) -> (String, Option<&'static str>) {
    if let Some((_, hint)) = OLD.iter().find(|(old, _)| *old == name) {
        return (format!("this key is no longer used; {hint}"), None);
    }
    if let Some(meant) = nearest(name, known.iter().copied()) {
        return (format!("unknown key; did you mean `{meant}`?"), Some(meant));
    }
    let last = |path: &'static str| path.rsplit('.').next() == Some(name);
    let elsewhere = KEYS.iter().find(|key| last(key.path) && !key.path.contains('*'));
    let why = match elsewhere {
        Some(key) => format!("unknown key here; did you mean `{}`?", key.path),
        None => format!("unknown key; there are {}", known.join(", ")),
    };
    (why, None)
}
