//! Reads a configuration: flags over the environment over the file over the
//! defaults, each key for itself. Nothing is used if anything is wrong.

use std::{collections::BTreeMap, ffi::OsStr, fmt, path::PathBuf};

use ostler_core::{HostConfig, agent::Roster, environment::Variables};
use serde_json::Value;

use super::{
    dotenv,
    file::{self, Found},
    finish,
    layers::Layers,
    problem::{Problems, Source},
    section::Config,
};
use crate::prompt;

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

    /// Returns where the files lie that agents are instructed by.
    pub(crate) fn prompt_dir(&self) -> PathBuf {
        prompt::folder(self.config.prompt.dir.as_deref(), &self.host_config().data_dir)
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
        let mut layers = Layers::new(self.trust);
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
        let Layers { mut problems, warnings, values, sections, .. } = layers;
        let Some(config) = config else { return Err(Problems(problems)) };
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
        problems.extend(finish::finish(&mut loaded, &sections));
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
