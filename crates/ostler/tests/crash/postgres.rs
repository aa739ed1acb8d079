//! A PostgreSQL server of a test's own, which it can take away and bring back.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::chown,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::process::{self, Ready};

/// A server, which runs or does not.
pub(crate) struct Server {
    bin: PathBuf,
    place: TempDir,
    child: Option<Child>,
}

impl Server {
    /// Makes and starts a server, or says why there is none and returns nothing.
    pub(crate) fn start_new() -> Option<Self> {
        let Some(bin) = std::env::var_os("OSTLER_TEST_POSTGRES_BIN") else {
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "OSTLER_TEST_POSTGRES_BIN does not say where PostgreSQL is");
            eprintln!("skipped: OSTLER_TEST_POSTGRES_BIN does not say where PostgreSQL is");
            return None;
        };
        // Sockets have short names only, so this is not below TMPDIR.
        let place = tempfile::Builder::new().prefix("op").tempdir_in("/tmp").unwrap();
        if is_root() {
            let (user, group) = (id_of_postgres("-u"), id_of_postgres("-g"));
            chown(place.path(), Some(user), Some(group)).unwrap();
        }
        let mut server = Self { bin: bin.into(), place, child: None };
        server.make();
        server.start();
        Some(server)
    }

    /// Returns the URL of its one database.
    pub(crate) fn url(&self) -> String {
        format!("postgres://ostler@localhost/postgres?host={}", self.place.path().display())
    }

    fn make(&self) {
        let data = self.data();
        let made = self
            .program("initdb")
            .args(["--username", "ostler", "--auth", "trust", "--encoding", "UTF8"])
            .args(["--locale", "C", "--no-sync", "--pgdata"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let place = self.place.path().display();
        let mut settings = format!("listen_addresses = ''\nunix_socket_directories = '{place}'\n");
        if cfg!(target_os = "linux") && self.version() >= 14 {
            // Else each start after a crash flushes a thousand files one by one.
            settings += "recovery_init_sync_method = syncfs\n";
        }
        let path = data.join("postgresql.conf");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text + &settings).unwrap();
    }

    /// Returns the first number of its version.
    fn version(&self) -> u32 {
        let output = self.program("postgres").arg("--version").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let word =
            text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let first = word.and_then(|word| word.split(|c: char| !c.is_ascii_digit()).next());
        first.unwrap_or_default().parse().expect("PostgreSQL has a version")
    }

    /// Starts it and waits until it says that it takes connections.
    pub(crate) fn start(&mut self) {
        let log = self.place.path().join("log");
        let file = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let errors = file.try_clone().unwrap();
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).stdin(Stdio::null()).stdout(file).stderr(errors);
        let ready = Ready::listen(self.place.path());
        let (name, path) = ready.variable();
        let mut child = command.env(name, path).spawn().unwrap();
        if let Err(why) = ready.wait(&mut child) {
            panic!("no server: {why}\n{}", fs::read_to_string(&log).unwrap_or_default());
        }
        self.child = Some(child);
    }

    /// Ends it at once, without a word to its clients or a checkpoint: what is
    /// not in its log is gone. Returns when it is.
    pub(crate) fn crash(&mut self) {
        self.signal(rustix::process::Signal::QUIT);
    }

    fn signal(&mut self, signal: rustix::process::Signal) {
        let Some(mut child) = self.child.take() else { return };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        assert!(process::ended(&mut child).is_some(), "the server does not end");
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// Returns one of its programs. It refuses to be run by root.
    fn program(&self, name: &str) -> Command {
        let program = self.bin.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            let user = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"];
            command.args(user).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.place.path());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.signal(rustix::process::Signal::INT);
        } else if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn id_of_postgres(which: &str) -> u32 {
    let output = Command::new("id").args([which, "postgres"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().expect("there is a user postgres")
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, PgConnection};

    use super::*;

    #[test]
    fn a_server_that_crashed_comes_back_with_what_was_committed() {
        let Some(mut server) = Server::start_new() else { return };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = server.url();
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            sqlx::query("CREATE TABLE things (id BIGINT)").execute(&mut connection).await.unwrap();
            server.crash();
            assert!(connection.ping().await.is_err());
            assert!(PgConnection::connect(&url).await.is_err());
            server.start();
            let mut connection = PgConnection::connect(&url).await.unwrap();
            sqlx::query("SELECT id FROM things").fetch_all(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}
