//! What all agents of one Ostler share: the outer environment, the folders,
//! and the tasks that shutdown waits for.

use std::{
    fmt, fs, io,
    os::unix::fs::DirBuilderExt,
    path::{self, Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    environment::Variables,
    memo::MemoStore,
    permission::Allowances,
    run_dir,
    running::Running,
    warm::pool::{Pool, PoolLimits, PoolStats},
};

/// The surroundings in which agents run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Host {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: HostConfig,
    tasks: TaskTracker,
    running: Running,
    shutdown: CancellationToken,
    pool: OnceLock<Pool>,
    allowances: Allowances,
}

/// What a [`Host`] is made from.
#[derive(Clone)]
pub struct HostConfig {
    /// The outer environment, of which agents see only listed names.
    pub environment: Variables,
    /// Where memos and locks are kept.
    pub data_dir: PathBuf,
    /// Where the turns' private folders are made.
    pub run_root: PathBuf,
    /// What processes that are kept between turns may cost.
    pub pool: PoolLimits,
}

impl fmt::Debug for HostConfig {
    /// Leaves the environment out: there are secrets in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostConfig")
            .field("data_dir", &self.data_dir)
            .field("run_root", &self.run_root)
            .finish_non_exhaustive()
    }
}

impl HostConfig {
    /// Takes the environment of this process: `OSTLER_DATA_DIR`, else
    /// `~/.local/share/ostler`, and the system's folder for temporary files.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where the library reads it")]
    pub fn from_process() -> Self {
        Self::from_environment(std::env::vars_os().collect())
    }

    /// Takes an environment as given.
    #[must_use]
    pub fn from_environment(environment: Variables) -> Self {
        let get = |name: &str| {
            environment.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty())
        };
        let home = || get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let data_dir = match (get("OSTLER_DATA_DIR"), get("XDG_DATA_HOME")) {
            (Some(dir), _) => PathBuf::from(dir),
            (None, Some(dir)) => Path::new(dir).join("ostler"),
            (None, None) => home().join(".local/share/ostler"),
        };
        let run_root = get("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        // A child has another working directory, to which a relative path would lead.
        let data_dir = path::absolute(&data_dir).unwrap_or(data_dir);
        let run_root = path::absolute(&run_root).unwrap_or(run_root);
        Self { environment, data_dir, run_root, pool: PoolLimits::default() }
    }
}

impl Host {
    /// Makes a host, and removes what a killed one left in the folder for turns.
    #[must_use]
    pub fn new(config: HostConfig) -> Self {
        // What cannot be removed now costs a little disk, and the next host tries again.
        run_dir::sweep(&config.run_root).ok();
        Self {
            shared: Arc::new(Shared {
                config,
                tasks: TaskTracker::new(),
                running: Running::default(),
                shutdown: CancellationToken::new(),
                pool: OnceLock::new(),
                allowances: Allowances::default(),
            }),
        }
    }

    /// Returns the outer environment.
    #[must_use]
    pub fn environment(&self) -> &Variables {
        &self.shared.config.environment
    }

    /// Returns the folder for memos and locks.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.shared.config.data_dir
    }

    /// Returns the folder in which the turns' private folders are made.
    #[must_use]
    pub fn run_root(&self) -> &Path {
        &self.shared.config.run_root
    }

    /// Returns the memos of this host's data folder.
    #[must_use]
    pub fn memos(&self) -> MemoStore {
        MemoStore::new(self.data_dir())
    }

    /// Returns a home of its own for an agent, which lasts, so that sessions can be resumed.
    #[must_use]
    pub fn isolated_home(&self, agent: &str) -> PathBuf {
        self.data_dir().join("homes").join(agent)
    }

    /// Cancels every turn and waits until all have ended, at most `limit`.
    ///
    /// Returns whether all ended in time. What has not is killed by its keeper
    /// when this process ends.
    pub async fn shutdown(&self, limit: Duration) -> bool {
        self.shared.shutdown.cancel();
        self.shared.tasks.close();
        tokio::time::timeout(limit, self.shared.tasks.wait()).await.is_ok()
    }

    /// Returns what happened to the processes that are kept between turns.
    pub async fn pool_stats(&self) -> PoolStats {
        match self.pool_if_any() {
            Some(pool) => pool.stats().await,
            None => PoolStats::default(),
        }
    }

    /// Returns the kept processes; their task starts with the first call.
    pub(crate) fn pool(&self) -> &Pool {
        self.shared.pool.get_or_init(|| Pool::start(self))
    }

    pub(crate) fn pool_if_any(&self) -> Option<&Pool> {
        self.shared.pool.get()
    }

    pub(crate) fn allowances(&self) -> &Allowances {
        &self.shared.allowances
    }

    pub(crate) fn pool_limits(&self) -> PoolLimits {
        self.shared.config.pool
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.shared.tasks
    }

    pub(crate) fn running(&self) -> &Running {
        &self.shared.running
    }

    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.shared.shutdown
    }
}

/// Makes a folder with its parents, for this user only: sessions are private.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folders_are_made_absolute_and_secrets_are_not_printed() {
        let pairs = [("OSTLER_DATA_DIR", "data"), ("TMPDIR", "tmp"), ("KEY", "very-secret")];
        let pairs = pairs.into_iter().map(|(k, v)| (k.into(), v.into()));
        let config = HostConfig::from_environment(pairs.collect());
        assert!(config.data_dir.is_absolute() && config.run_root.is_absolute());
        let host = format!("{:?} {:?}", config, Host::new(config.clone()));
        assert!(!host.contains("very-secret"), "{host}");
    }
}
