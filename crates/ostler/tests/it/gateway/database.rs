//! A store for several gateways: a database of a test's own, on the server that the
//! tests have.

use std::{
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

use super::daemon::{Daemon, configure, serve};
use crate::support::Place;

/// A database, which goes with the test unless that fails.
pub(crate) struct Database {
    name: String,
    server: String,
}

impl Database {
    /// Makes one; `None`, with a word about it, where there is no server.
    pub(crate) fn make() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Ok(server) = std::env::var("OSTLER_TEST_POSTGRES") else {
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "OSTLER_TEST_POSTGRES names no server");
            eprintln!("skipped: OSTLER_TEST_POSTGRES names no server");
            return None;
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gateways_{}_{number}", std::process::id());
        let database = Self { name, server };
        database.say("CREATE DATABASE");
        Some(database)
    }

    /// Starts a gateway with files of its own, which has its store here.
    pub(crate) fn start_gateway(&self, place: &Place, settings: &Value) -> Daemon {
        configure(place, settings);
        let mut command = serve(place);
        command.env("OSTLER_DATABASE_URL", self.url());
        Daemon::start_by(place, command, |_| place.path("data/daemon.sock"))
    }

    fn url(&self) -> String {
        self.server.replace("/postgres?", &format!("/{}?", self.name))
    }

    fn say(&self, what: &str) {
        let psql = PathBuf::from(std::env::var_os("OSTLER_TEST_POSTGRES_BIN").unwrap());
        let statement = format!("{what} {} ", self.name);
        let done = Command::new(psql.join("psql"))
            .args(["--quiet", "--no-psqlrc", "--command", &statement])
            .arg(&self.server)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.say("DROP DATABASE");
        }
    }
}
