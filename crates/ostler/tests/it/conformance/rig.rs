//! A real CLI, the simulated model, and the program between them.

use std::{path::PathBuf, process::Command};

use ostler_core::{
    CliAgent, Host, HostConfig, PoolLimits, TurnRequest, agent, event::Mode, request::Permissions,
};
use ostler_sim::model;

use super::{Facts, chat::Chat};
use crate::support::{Events, Model, Outcome, Place, Running};

/// One agent with everything it needs, isolated from the user and the network.
pub(crate) struct Rig {
    pub(crate) facts: &'static Facts,
    pub(crate) place: Place,
    pub(crate) model: Model,
    /// Where the CLI is told the model is.
    url: String,
    key: String,
    permissions: &'static str,
}

impl Rig {
    /// Makes a rig; `None`, with a word about it, where the CLIs are not installed.
    pub(crate) fn new(facts: &'static Facts) -> Option<Self> {
        Self::with_model(facts, Model::start())
    }

    pub(crate) fn with_model(facts: &'static Facts, model: Model) -> Option<Self> {
        let Some(clis) = std::env::var_os("OSTLER_TEST_CLIS") else {
            eprintln!("skipped: OSTLER_TEST_CLIS does not say where the real CLIs are");
            return None;
        };
        assert!(PathBuf::from(clis).join(facts.program).is_file(), "{} is missing", facts.program);
        let url = model.url();
        let key = model::KEY.to_owned();
        Some(Self { facts, place: Place::new(), model, url, key, permissions: "bypass" })
    }

    /// Sends the CLI to an address where nobody listens.
    pub(crate) fn unreachable(mut self) -> Self {
        // Every listener of these tests is on 127.0.0.1.
        self.url = "http://127.0.0.2:9".to_owned();
        self
    }

    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.key = key.to_owned();
        self
    }

    pub(crate) fn read_only(mut self) -> Self {
        self.permissions = "read-only";
        self
    }

    /// Returns `ostler run` for this agent, with further arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of("run", args)
    }

    /// Returns one of the commands that run turns, with further arguments.
    fn command_of(&self, name: &str, args: &[&str]) -> Command {
        let clis = PathBuf::from(std::env::var_os("OSTLER_TEST_CLIS").unwrap());
        let program = clis.join(self.facts.program);
        let mut command = self.place.ostler(&[name, "--agent", self.facts.agent]);
        // Some CLIs are scripts of Node's; the one that was installed with them comes first.
        let path = format!("{}:/usr/bin:/bin", clis.join("node_modules/.bin").display());
        command.env("PATH", path).arg("--isolated");
        match &self.facts.own {
            Some(own) => {
                let config = own.config(self.facts.agent, &program, &self.url, &self.key);
                let file = self.place.path("own.json5");
                std::fs::write(&file, config.to_string()).unwrap();
                command.arg("--config").arg(file);
            }
            None => {
                command.arg("--bin").arg(program);
            }
        }
        if !args.contains(&"--timeout") {
            command.args(["--timeout", "90s"]);
        }
        if !args.contains(&"--permissions") {
            command.args(["--permissions", self.permissions]);
        }
        if let Some(settings) = model::settings(self.facts.agent, &self.url) {
            let settings = settings.with_key(&self.key);
            settings.write_files(&self.place.path("data/homes").join(self.facts.agent)).unwrap();
            for (name, value) in settings.environment {
                command.arg("--env").arg(format!("{name}={value}"));
            }
            if let Some(model) = settings.model
                && !args.contains(&"--model")
            {
                command.args(["--model", model]);
            }
            for argument in settings.arguments {
                command.arg("--agent-arg").arg(argument);
            }
        }
        // The tests run as root in a machine made for them; Claude wants to be told so.
        command.args(["--env", "IS_SANDBOX=1"]).args(args);
        command
    }

    /// Runs a prompt and returns its events.
    pub(crate) fn ask(&self, prompt: &str, args: &[&str]) -> (Option<i32>, Events) {
        let outcome = self.outcome(prompt, args);
        (outcome.code, outcome.events())
    }

    /// Runs a prompt, given on standard input, to its end.
    pub(crate) fn outcome(&self, prompt: &str, args: &[&str]) -> Outcome {
        let mut command = self.command(args);
        if !args.contains(&"--output") {
            command.args(["--output", "stream-json"]);
        }
        command.stdin(std::process::Stdio::piped());
        Outcome::of_input(command, Some(prompt.as_bytes().to_vec()))
    }

    /// Starts a prompt and returns while it runs.
    pub(crate) fn start(&self, prompt: &str, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.args(["--output", "stream-json", "--", prompt]);
        Running::start(command)
    }

    /// Returns the same agent as a library, in a host with these limits, and the
    /// request for a turn in a kept process.
    pub(crate) fn library(&self, pool: PoolLimits) -> (CliAgent, Host, TurnRequest) {
        let clis = PathBuf::from(std::env::var_os("OSTLER_TEST_CLIS").unwrap());
        let path = format!("{}:/usr/bin:/bin", clis.join("node_modules/.bin").display());
        let environment = [
            ("PATH", path.into()),
            ("HOME", self.place.path("home").into_os_string()),
            ("TMPDIR", self.place.path("tmp").into_os_string()),
            ("OSTLER_DATA_DIR", self.place.path("data").into_os_string()),
        ];
        let environment = environment.into_iter().map(|(name, value)| (name.into(), value));
        let config = HostConfig::from_environment(environment.collect());
        let host = Host::new(HostConfig { pool, ..config });
        let spec = agent::find(self.facts.agent).unwrap();
        let program = clis.join(self.facts.program);
        let agent = CliAgent::new(spec, host.clone()).with_program(program);
        let mut request = TurnRequest::new("hello", self.place.work());
        request.mode = Mode::Warm;
        let options = &mut request.options;
        let home = host.isolated_home(&spec.name);
        let settings = model::settings(&spec.name, &self.url).unwrap().with_key(&self.key);
        settings.write_files(&home).unwrap();
        options.home = Some(home);
        options.permissions = Permissions::Bypass;
        options.model = settings.model.map(str::to_owned);
        options.extra_args = settings.arguments;
        let named = settings.environment.into_iter();
        options.env = named.map(|(name, value)| (name.to_owned(), Some(value))).collect();
        options.env.push(("IS_SANDBOX".to_owned(), Some("1".to_owned())));
        (agent, host, request)
    }

    /// Starts a conversation.
    pub(crate) fn chat(&self, args: &[&str]) -> Chat {
        let mut command = self.command_of("chat", args);
        command.args(["--output", "stream-json"]);
        Chat::start(command)
    }

    /// Asserts that nothing of any turn is left.
    pub(crate) fn assert_clean(&self) {
        assert!(self.place.is_swept(), "a turn left its folder behind");
    }
}
