//! A gateway as a process of its own: started, waited for, killed, stopped.

use std::{
    fs::OpenOptions,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
};

use super::{
    place::Place,
    process::{self, Ready},
};

/// How to start one, again and again.
#[derive(Clone, Debug)]
pub(crate) struct Stable {
    /// What it writes, all of its lives together.
    log: PathBuf,
    data: PathBuf,
    work: PathBuf,
    config: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Stable {
    /// Prepares a gateway with a data folder of this name.
    pub(crate) fn new(place: &Place, name: &str, database_url: Option<&str>) -> Self {
        let path = |relative: &str| place.path(relative).display().to_string();
        let data = place.path(name);
        std::fs::create_dir(&data).unwrap();
        let mut environment = vec![
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME", path("home")),
            ("TMPDIR", path("tmp")),
            ("OSTLER_DATA_DIR", path(name)),
        ];
        if let Some(url) = database_url {
            environment.push(("OSTLER_DATABASE_URL", url.to_owned()));
        }
        let log = place.path(&format!("{name}.log"));
        Self { log, data, work: place.path("work"), config: place.config(), environment }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.data.join("daemon.sock")
    }

    /// Returns the file of its store, where that is one.
    pub(crate) fn store(&self) -> PathBuf {
        self.data.join("ostler.db")
    }

    /// Returns the program with its environment, not started yet.
    pub(crate) fn ostler(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
        command
            .args(args)
            .arg("--config")
            .arg(&self.config)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.work)
            .stdin(Stdio::null());
        command
    }

    /// Starts the gateway and waits until it says that it is ready.
    pub(crate) fn start(&self) -> Gateway {
        let log = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let errors = log.try_clone().unwrap();
        let ready = Ready::listen(&self.data);
        let (name, path) = ready.variable();
        let mut command = self.ostler(&["serve"]);
        let child = command.env(name, path).stdout(log).stderr(errors).spawn().unwrap();
        let mut gateway = Gateway { child, log: self.log.clone() };
        if let Err(why) = ready.wait(&mut gateway.child) {
            panic!("the gateway did not start: {why}\n{}", gateway.log());
        }
        gateway
    }
}

/// A gateway that runs. One that is forgotten is killed.
pub(crate) struct Gateway {
    child: Child,
    log: PathBuf,
}

impl Gateway {
    /// Ends it as a power cut would; returns when it is gone.
    pub(crate) fn kill(mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it ended by itself\n{}", self.log());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end; returns how it did.
    pub(crate) fn stop(mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = process::ended(&mut self.child);
        status.unwrap_or_else(|| panic!("the gateway does not stop\n{}", self.log()))
    }

    /// Returns the last that was written.
    fn log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
