//! Prompt files: Markdown in a folder of the operator's that tells agents who
//! they are and how to work. Read afresh for each turn, so that an edit counts
//! from the next message on; whatever lies in the folder, no turn fails by it.
//!
//! `table` says which files there are, `reading` reads them, `assembly` makes
//! texts of them, `template` writes the ones to begin with. How the texts reach
//! an agent is not decided here, but in `gateway::instructions`.

mod assembly;
mod file;
mod markdown;
mod reading;
mod table;
pub(crate) mod template;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Semaphore, task, time};

pub(crate) use self::table::Occasion;
use self::{
    assembly::assemble,
    reading::{Found, LONGEST, LONGEST_FILE, Trouble},
};

/// The folder within the data folder, unless another is configured.
const FOLDER: &str = "prompt";
/// How long reading may take. Disks that are away must not keep turns waiting.
const DEADLINE: Duration = Duration::from_secs(5);
/// How many turns may read at once; each that never comes back holds a thread.
const READERS: usize = 4;

/// Returns where prompt files lie, as an absolute path: agents are told it.
pub(crate) fn folder(configured: Option<&Path>, data_dir: &Path) -> PathBuf {
    match configured {
        Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        None => data_dir.join(FOLDER),
    }
}

/// What a turn is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instructions {
    /// What holds for the whole session.
    pub(crate) system: Option<String>,
    /// What is said before the prompt of this turn.
    pub(crate) before: Option<String>,
}

/// A folder of prompt files.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    readers: Arc<Semaphore>,
    /// What was told of the last time, so that the log does not repeat it with each turn.
    told: Mutex<BTreeSet<Trouble>>,
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        let readers = Arc::new(Semaphore::new(READERS));
        Self { path, readers, told: Mutex::default() }
    }

    /// Reads the files as they are now. What cannot be read is logged and left out.
    pub(crate) async fn read(&self, occasion: Occasion) -> Instructions {
        let path = self.path.clone();
        let readers = Arc::clone(&self.readers);
        let reading = async move {
            // Nobody closes it.
            let permit = readers.acquire_owned().await.ok()?;
            let reading = task::spawn_blocking(move || {
                let found = reading::read(&path, occasion);
                drop(permit);
                found
            });
            reading.await.ok()
        };
        let (found, why) = match time::timeout(DEADLINE, reading).await {
            Ok(Some(found)) => (found, None),
            Ok(None) => (Found::default(), Some("reading it broke off".to_owned())),
            Err(_) => (Found::default(), Some(format!("it took longer than {DEADLINE:?} to read"))),
        };
        let Found { system, before, mut troubles } = found;
        troubles.extend(why.map(|why| Trouble { path: self.path.clone(), why }));
        self.tell(troubles);
        Instructions { system: assemble(&system, LONGEST), before: assemble(&before, LONGEST_FILE) }
    }

    /// Logs what is new.
    fn tell(&self, troubles: Vec<Trouble>) {
        let troubles: BTreeSet<_> = troubles.into_iter().collect();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for Trouble { path, why } in troubles.difference(&told) {
            tracing::warn!(path = %path.display(), why, "a prompt file is not used as it is");
        }
        *told = troubles;
    }
}

/// Writes templates into a folder that somebody configured and that is not
/// there yet. Whatever comes of it, the gateway starts.
pub(crate) async fn begin(path: PathBuf) {
    let shown = path.display().to_string();
    let writing = task::spawn_blocking(move || {
        let is_new = matches!(path.try_exists(), Ok(false));
        is_new.then(|| template::write(&path))
    });
    match time::timeout(DEADLINE, writing).await {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(Ok(_)))) => {
            tracing::info!(path = shown, "templates of prompt files were written; edit them");
        }
        Ok(Ok(Some(Err(error)))) => {
            tracing::warn!(path = shown, error, "there are no prompt files");
        }
        Ok(Err(_)) | Err(_) => tracing::warn!(path = shown, "the prompt folder does not answer"),
    }
}
