//! The `agents` key: agents of the operator's own, by name.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use ostler_core::agent::acp::{AcpAgent, check_name};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};

/// Agents of the operator's own, in the order of the file.
#[derive(Default)]
pub(crate) struct OwnAgents {
    agents: Vec<AcpAgent>,
}

impl fmt::Debug for OwnAgents {
    /// Leaves the variables out: there are secrets in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.agents.iter().map(|agent| &agent.name)).finish()
    }
}

impl OwnAgents {
    /// Takes programs that are named by a relative path as seen from a folder.
    pub(crate) fn settle_in(&mut self, folder: &Path) {
        for agent in &mut self.agents {
            let version = agent.version.iter_mut().flat_map(|words| words.first_mut());
            for program in agent.command.first_mut().into_iter().chain(version) {
                let path = PathBuf::from(&*program);
                if path.components().count() > 1 && path.is_relative() {
                    *program = folder.join(path).to_string_lossy().into_owned();
                }
            }
        }
    }

    /// Drops the programs that would be run without their agent being asked for.
    pub(crate) fn run_only_when_named(&mut self) {
        self.agents.iter_mut().for_each(|agent| agent.version = None);
    }

    /// Returns the agents.
    pub(crate) fn into_vec(self) -> Vec<AcpAgent> {
        self.agents
    }
}

impl<'de> Deserialize<'de> for OwnAgents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = OwnAgents;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("agents by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OwnAgents, A::Error> {
                let mut agents: Vec<AcpAgent> = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    let entry: Entry = map.next_value()?;
                    if agents.iter().any(|known| known.name == name) {
                        return Err(A::Error::custom(format!("{name} is there twice")));
                    }
                    let agent = entry.named(name);
                    agent.clone().spec().map_err(A::Error::custom)?;
                    agents.push(agent);
                }
                Ok(OwnAgents { agents })
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// What is said about one agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dialect: Dialect,
    command: Words,
    #[serde(default)]
    env: BTreeMap<Variable, String>,
    #[serde(default)]
    pass_env: Vec<Variable>,
    #[serde(default)]
    version: Option<Words>,
}

impl Entry {
    fn named(self, name: String) -> AcpAgent {
        match self.dialect {
            Dialect::Acp => AcpAgent {
                name,
                command: self.command.0,
                env: self.env.into_iter().map(|(name, value)| (name.0, value)).collect(),
                pass_env: self.pass_env.into_iter().map(|name| name.0).collect(),
                version: self.version.map(|words| words.0),
            },
        }
    }
}

/// How an agent is spoken with.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dialect {
    Acp,
}

/// The name of an agent.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, "the name of an agent", |name| {
            check_name(name).map_err(|error| error.to_string())
        })
        .map(Self)
    }
}

/// The name of a variable.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Variable(String);

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, "the name of a variable", |name| {
            let is_fine = !name.is_empty() && !name.contains(['=', '\0']);
            let why = || format!("{name:?} is no name for a variable; names are exact, one by one");
            if is_fine && !name.contains('*') { Ok(()) } else { Err(why()) }
        })
        .map(Self)
    }
}

/// Reads a text that must be of some kind, so that what is wrong with it is told
/// with its place.
fn word<'de, D: Deserializer<'de>>(
    deserializer: D,
    kind: &'static str,
    check: fn(&str) -> Result<(), String>,
) -> Result<String, D::Error> {
    struct Reader(&'static str, fn(&str) -> Result<(), String>);
    impl Visitor<'_> for Reader {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
            (self.1)(text).map_err(E::custom)?;
            Ok(text.to_owned())
        }
    }
    deserializer.deserialize_str(Reader(kind, check))
}

/// A program and its arguments.
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a program and its arguments, each a text of its own")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words: Vec<String> = Vec::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                if words.first().is_none_or(String::is_empty) {
                    return Err(A::Error::custom("it names no program"));
                }
                if words.iter().any(|word| word.contains('\0')) {
                    return Err(A::Error::custom("a null character cannot be given to a program"));
                }
                Ok(Words(words))
            }
        }
        deserializer.deserialize_seq(Reader)
    }
}
