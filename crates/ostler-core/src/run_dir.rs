//! Private folders for turns.
//!
//! Each turn has a folder of its own, the agent's TMPDIR, which nobody else can
//! look into and which is gone afterwards. It lies in a folder per user, so
//! that the name stays short: paths of sockets in it have about 100 bytes.
//!
//! An Ostler that is killed cannot tidy up. So a folder is locked for as long
//! as it is in use, the kernel gives the lock back, and [`sweep`] removes the
//! folders whose lock can be had.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use uuid::Uuid;

const PRIVATE: u32 = 0o700;
const NAME_LENGTH: usize = 8;
/// How many names are tried before something must be wrong.
const MAX_ATTEMPTS: usize = 16;

/// A private folder that is removed when it is dropped.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    _lock: File,
}

impl RunDir {
    /// Makes a folder below `root`, which is usually the system's one for temporary files.
    ///
    /// # Errors
    /// When it cannot be made, or the user's folder in `root` is not to be trusted.
    pub fn create(root: &Path) -> io::Result<Self> {
        let parent = open_parent(root)?;
        for _ in 0..MAX_ATTEMPTS {
            let path = parent.join(random_name());
            match make_private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other.map_err(|error| about(&path, "cannot make", &error))?,
            }
            if let Some(lock) = lock(&path)? {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(io::Error::other(format!(
            "cannot make a run folder in {}: every name is taken",
            parent.display()
        )))
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunDir {
    /// What cannot be removed now is left to a later [`sweep`].
    fn drop(&mut self) {
        remove(&self.path).ok();
    }
}

/// Removes what killed Ostlers left below `root`; returns how many folders.
///
/// Folders in use are left alone, and so is everything that is no run folder.
///
/// # Errors
/// When the user's folder in `root` is not to be trusted or cannot be read.
pub fn sweep(root: &Path) -> io::Result<usize> {
    let parent = parent_path(root);
    match check_private(&parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        other => other?,
    }
    let mut n_removed = 0;
    for entry in fs::read_dir(&parent)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() || !is_run_name(entry.file_name().as_encoded_bytes()) {
            continue;
        }
        if let Ok(Some(_lock)) = lock(&entry.path())
            && remove(&entry.path()).is_ok()
        {
            n_removed += 1;
        }
    }
    Ok(n_removed)
}

fn parent_path(root: &Path) -> PathBuf {
    root.join(format!("ostler-{}", effective_user()))
}

fn open_parent(root: &Path) -> io::Result<PathBuf> {
    let parent = parent_path(root);
    match make_private(&parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(about(&parent, "cannot make", &error))
        }
        _ => check_private(&parent).map(|()| parent),
    }
}

/// Everybody can write to the usual root, so somebody else may have come first.
fn check_private(parent: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(parent)?;
    let is_private = found.permissions().mode() & 0o777 == PRIVATE;
    if found.is_dir() && found.uid() == effective_user() && is_private {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{} is not a folder that only this user can enter; remove it", parent.display()),
    ))
}

fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE).create(path)
}

/// Locks a folder; returns `None` when it is in use or has been swept.
///
/// The folder itself is locked: a file in it could be removed by the agent.
/// Between making a folder and locking it, a sweep can take it, so what was
/// locked is compared with what has the name now.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let folder = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| about(path, "cannot open", &error))?,
    };
    match folder.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(error)) => return Err(about(path, "cannot lock", &error)),
    }
    let locked = folder.metadata()?;
    let is_same = fs::symlink_metadata(path)
        .is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino()));
    Ok(is_same.then_some(folder))
}

/// Removes a folder, also when there are folders in it that may not be changed.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            make_removable(path);
            fs::remove_dir_all(path)
        }
        _ => Ok(()),
    }
}

/// Gives the owner all rights to all folders, without following links.
fn make_removable(top: &Path) {
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        // What fails here fails again, and is reported, when it is removed.
        fs::set_permissions(&folder, Permissions::from_mode(PRIVATE)).ok();
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
}

fn random_name() -> String {
    let mut name = Uuid::new_v4().simple().to_string();
    name.truncate(NAME_LENGTH);
    name
}

fn is_run_name(name: &[u8]) -> bool {
    name.len() == NAME_LENGTH && name.iter().all(u8::is_ascii_hexdigit)
}

fn about(path: &Path, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
}

#[expect(unsafe_code, reason = "the standard library does not tell who we are")]
fn effective_user() -> u32 {
    // SAFETY: `geteuid` has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_run_folder_is_private_short_and_gone_afterwards() {
        let root = tempfile::tempdir().unwrap();
        let run_dir = RunDir::create(root.path()).unwrap();
        let path = run_dir.path().to_owned();
        assert_eq!(mode(&path), PRIVATE);
        assert_eq!(mode(path.parent().unwrap()), PRIVATE);
        let below_root = path.strip_prefix(root.path()).unwrap();
        assert!(below_root.as_os_str().len() <= "ostler-4294967295/12345678".len());
        fs::write(path.join("file"), "text").unwrap();
        drop(run_dir);
        assert!(!path.exists());
    }

    #[test]
    fn read_only_folders_are_removed_too() {
        let root = tempfile::tempdir().unwrap();
        let run_dir = RunDir::create(root.path()).unwrap();
        let path = run_dir.path().to_owned();
        let inner = path.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), "text").unwrap();
        fs::set_permissions(&inner, Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(path.join("a"), Permissions::from_mode(0o500)).unwrap();
        drop(run_dir);
        assert!(!path.exists());
    }

    #[test]
    fn making_folders_removable_does_not_follow_links() {
        let root = tempfile::tempdir().unwrap();
        let outside = root.path().join("outside");
        DirBuilder::new().mode(0o755).create(&outside).unwrap();
        let inside = root.path().join("inside");
        fs::create_dir(&inside).unwrap();
        symlink(&outside, inside.join("link")).unwrap();
        make_removable(&inside);
        assert_eq!(mode(&inside), PRIVATE);
        assert_ne!(mode(&outside), PRIVATE);
    }

    #[test]
    fn a_sweep_removes_what_is_left_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(sweep(root.path()).unwrap(), 0);
        let in_use = RunDir::create(root.path()).unwrap();
        let parent = in_use.path().parent().unwrap();
        let left_over = parent.join("0123abcd");
        fs::create_dir_all(left_over.join("a/b")).unwrap();
        let strange = parent.join("notes");
        fs::create_dir(&strange).unwrap();
        assert_eq!(sweep(root.path()).unwrap(), 1);
        assert!(in_use.path().exists());
        assert!(strange.exists());
        assert!(!left_over.exists());
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let parent = parent_path(root.path());
        fs::create_dir(&parent).unwrap();
        fs::set_permissions(&parent, Permissions::from_mode(0o755)).unwrap();
        let error = RunDir::create(root.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("ostler-"), "{error}");
        assert!(sweep(root.path()).is_err());
    }

    #[test]
    fn a_link_in_place_of_the_users_folder_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::set_permissions(elsewhere.path(), Permissions::from_mode(PRIVATE)).unwrap();
        symlink(elsewhere.path(), parent_path(root.path())).unwrap();
        assert!(RunDir::create(root.path()).is_err());
        assert!(sweep(root.path()).is_err());
    }

    #[test]
    fn folders_made_during_sweeps_are_never_lost() {
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            let run_dir = RunDir::create(root.path()).unwrap();
                            fs::write(run_dir.path().join("file"), "text").unwrap();
                            assert!(run_dir.path().join("file").exists());
                        }
                    })
                })
                .collect();
            while !makers.iter().all(|maker| maker.is_finished()) {
                // A folder that its owner removes meanwhile is no failure here.
                sweep(root.path()).ok();
            }
        });
    }
}
