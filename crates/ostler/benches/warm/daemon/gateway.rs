//! A gateway to be measured: started, asked, looked at, stopped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{client::Client, figures::ms, process::MARK, stand::OSTLER};

/// How long a gateway may take to come or go before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a gateway runs, and with which settings.
pub(crate) struct Ground {
    place: PathBuf,
    database_url: Option<String>,
}

impl Ground {
    /// Makes a place for a gateway whose part `gateway` of the settings is this.
    pub(crate) fn new(place: &Path, gateway: &Value) -> Self {
        for folder in ["data", "home", "tmp", "work"] {
            fs::create_dir_all(place.join(folder)).unwrap();
        }
        super::install_agents(&place.join("bin"));
        let mut settings = json!({
            "gateway": { "listen": "127.0.0.1:0" },
            "agent": { "permissions": "read-only" },
        });
        for (key, value) in gateway.as_object().unwrap() {
            settings["gateway"][key] = value.clone();
        }
        fs::write(place.join("ostler.json5"), settings.to_string()).unwrap();
        Self { place: place.to_owned(), database_url: None }
    }

    /// The same with a database that is a server's.
    pub(crate) fn with_database(self, url: &str) -> Self {
        Self { database_url: Some(url.to_owned()), ..self }
    }

    /// Returns the folder on the disk that the store is on.
    pub(crate) fn data(&self) -> PathBuf {
        self.place.join("data")
    }

    /// The same with these settings of another part.
    pub(crate) fn with_part(self, part: &str, its: &Value) -> Self {
        let path = self.place.join("ostler.json5");
        let mut settings: Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        settings[part] = its.clone();
        fs::write(path, settings.to_string()).unwrap();
        self
    }

    /// Returns the folder that turns run in.
    pub(crate) fn work(&self) -> PathBuf {
        self.place.join("work")
    }

    /// Makes a key that may do everything.
    pub(crate) fn key(&self) -> String {
        let mut command = self.command("keys");
        command.args(["create", "--name", "bench", "--scope", "admin", "--output", "json"]);
        let output = command.stdout(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "no key could be made");
        let made: Value = serde_json::from_slice(&output.stdout).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    /// Returns a command of ostler, without the arguments that are its own.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(OSTLER);
        command
            .args([name, "--config"])
            .arg(self.place.join("ostler.json5"))
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", self.place.join("bin").display()))
            .env("HOME", self.place.join("home"))
            .env("TMPDIR", self.place.join("tmp"))
            .env("OSTLER_DATA_DIR", self.data())
            .env(MARK, &self.place)
            .envs(self.database_url.iter().map(|url| ("OSTLER_DATABASE_URL", url)))
            .current_dir(self.place.join("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.place.join("log")).unwrap());
        command
    }
}

/// What a process takes, in MB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) resident: f64,
    pub(crate) anonymous: f64,
}

/// A gateway that runs.
pub(crate) struct Daemon {
    child: Child,
    socket: PathBuf,
    /// From its start to its hello.
    pub(crate) ready_ms: f64,
}

impl Daemon {
    pub(crate) fn start(ground: &Ground) -> Self {
        let socket = ground.data().join("daemon.sock");
        let mut command = ground.command("serve");
        let started = Instant::now();
        let mut child = command.spawn().unwrap();
        while Client::connect(&socket).is_err() {
            let log = || fs::read_to_string(ground.place.join("log")).unwrap_or_default();
            assert!(child.try_wait().unwrap().is_none(), "the gateway ended: {}", log());
            assert!(started.elapsed() < PATIENCE, "the gateway does not come: {}", log());
            std::thread::sleep(Duration::from_micros(500));
        }
        Self { child, socket, ready_ms: ms(started) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    pub(crate) fn memory(&self) -> Memory {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mb = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let kilobytes: f64 = line.split_whitespace().next().unwrap().parse().unwrap();
            kilobytes / 1000.0
        };
        Memory { resident: mb("VmRSS:"), anonymous: mb("RssAnon:") }
    }

    /// Returns how many files it has open.
    pub(crate) fn n_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Stops it as an operator would.
    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the gateway ended with {status}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Nothing is left of one that was stopped; one that was not is given up.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
