//! Where files lie that came with messages: a folder for each job, which nobody
//! else may read. Nothing here follows a link, whoever may have put one there.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::{fd::OwnedFd, unix::fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat},
    io::Errno,
};

use crate::{clock::Millis, id::JobId};

/// For how long files are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The files of a job.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    fd: OwnedFd,
}

/// A file that is not complete. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct Part {
    folder: OwnedFd,
    name: String,
    is_kept: bool,
}

impl Folder {
    /// Opens the folder of a job below another, and makes what is missing.
    pub(super) fn open(root: &Path, job: JobId) -> io::Result<Self> {
        Self::below(root, &job.to_string())
    }

    /// Opens a folder of this name below another, and makes what is missing.
    pub(super) fn below(root: &Path, folder: &str) -> io::Result<Self> {
        let (Some(above), Some(name)) = (root.parent(), root.file_name()) else {
            return Err(io::Error::other("there is no folder for it"));
        };
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = open(above, flags, Mode::empty())?;
        let below = |folder: &OwnedFd, name: &Path| {
            match mkdirat(folder, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty())
        };
        let fd = below(&below(&above, Path::new(name))?, Path::new(folder))?;
        Ok(Self { path: root.join(folder), fd })
    }

    /// Returns it as the system knows it.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Returns where a file of a name lies.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file that is there and complete. Nothing, if it is none, is a link,
    /// or cannot be read.
    pub(super) fn file(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = openat(&self.fd, name, flags, Mode::empty()) else { return Ok(None) };
        let file = File::from(file);
        Ok(file.metadata()?.is_file().then_some(file))
    }

    /// Returns how a file begins that is there and complete: so many bytes at most.
    pub(super) fn start_of(&self, name: &str, most: usize) -> io::Result<Option<Vec<u8>>> {
        // One that cannot be opened is replaced.
        let Some(file) = self.file(name)? else { return Ok(None) };
        let mut start = Vec::new();
        file.take(u64::try_from(most).unwrap_or(u64::MAX)).read_to_end(&mut start)?;
        Ok(Some(start))
    }

    /// Begins a file, and forgets what an earlier attempt left of it.
    pub(super) fn begin(&self, number: usize) -> io::Result<(Part, File)> {
        self.begin_as(format!(".{number}.part"))
    }

    /// Begins a file under a name that it has until it is complete.
    pub(super) fn begin_as(&self, name: String) -> io::Result<(Part, File)> {
        match unlinkat(&self.fd, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.fd, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let folder = self.fd.try_clone()?;
        Ok((Part { folder, name, is_kept: false }, file.into()))
    }
}

impl Part {
    /// Gives a complete file its name. A link of that name is replaced. What has the
    /// name is complete also after a power cut.
    pub(super) fn keep(mut self, file: &File, name: &str) -> io::Result<()> {
        file.sync_data()?;
        renameat(&self.folder, &self.name, &self.folder, name)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_kept {
            // If that fails, it goes with its folder.
            unlinkat(&self.folder, &self.name, AtFlags::empty()).ok();
        }
    }
}

/// Removes the folders of jobs in which nothing happened since a time; returns how
/// many. Blocks.
pub(crate) fn clear(root: &Path, since: Millis) -> io::Result<usize> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut n_removed = 0;
    for entry in entries {
        let entry = entry?;
        let is_of_job = entry.file_name().to_str().is_some_and(|it| it.parse::<JobId>().is_ok());
        // Of a link, what counts is the link.
        let Ok(metadata) = entry.metadata() else { continue };
        if !is_of_job || !metadata.is_dir() {
            continue;
        }
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        if Millis(0).after(changed) < since {
            fs::remove_dir_all(entry.path())?;
            n_removed += 1;
        }
    }
    Ok(n_removed)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_there_when_it_is_complete_and_only_for_its_owner() {
        let data = tempfile::tempdir().unwrap();
        let (root, job) = (data.path().join("new/media"), JobId::new());
        let folder = Folder::open(&root, job).unwrap();
        let (part, mut file) = folder.begin(1).unwrap();
        file.write_all(b"half").unwrap();
        drop(part);
        assert_eq!(fs::read_dir(root.join(job.to_string())).unwrap().count(), 0);
        let (part, mut file) = folder.begin(1).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(folder.start_of("1-a.txt", 1024).unwrap(), None);
        part.keep(&file, "1-a.txt").unwrap();
        let again = Folder::open(&root, job).unwrap();
        assert_eq!(again.start_of("1-a.txt", 1024).unwrap().as_deref(), Some(&b"whole"[..]));
        let path = again.path("1-a.txt");
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!((mode(&path), mode(path.parent().unwrap()), mode(&root)), (0o600, 0o700, 0o700));
    }

    #[test]
    fn a_link_in_the_way_is_not_followed() {
        let data = tempfile::tempdir().unwrap();
        let (root, job) = (data.path().join("media"), JobId::new());
        let aim = data.path().join("aim");
        fs::create_dir(&aim).unwrap();
        fs::write(aim.join("file"), "as it was").unwrap();
        let folder = Folder::open(&root, job).unwrap();
        for name in [".1.part", "1-a.txt"] {
            symlink(aim.join("file"), folder.path(name)).unwrap();
        }
        assert_eq!(folder.start_of("1-a.txt", 1024).unwrap(), None);
        let (part, mut file) = folder.begin(1).unwrap();
        file.write_all(b"new").unwrap();
        part.keep(&file, "1-a.txt").unwrap();
        assert_eq!(fs::read(folder.path("1-a.txt")).unwrap(), b"new");
        assert!(!fs::symlink_metadata(folder.path("1-a.txt")).unwrap().is_symlink());
        assert_eq!(fs::read(aim.join("file")).unwrap(), b"as it was");
        let other = JobId::new();
        symlink(&aim, root.join(other.to_string())).unwrap();
        assert!(Folder::open(&root, other).is_err());
        let linked = data.path().join("linked");
        symlink(&aim, &linked).unwrap();
        assert!(Folder::open(&linked, job).is_err());
        assert_eq!(fs::read_dir(&aim).unwrap().count(), 1);
    }

    #[test]
    fn what_is_old_is_removed_and_nothing_else() {
        let data = tempfile::tempdir().unwrap();
        let root = data.path().join("media");
        assert_eq!(clear(&root, Millis::now()).unwrap(), 0);
        let (old, linked) = (JobId::new(), JobId::new());
        let folder = Folder::open(&root, old).unwrap();
        let (part, file) = folder.begin(1).unwrap();
        part.keep(&file, "1-a").unwrap();
        let aim = data.path().join("aim");
        fs::create_dir(&aim).unwrap();
        symlink(&aim, root.join(linked.to_string())).unwrap();
        symlink(&aim, folder.path("out")).unwrap();
        fs::write(aim.join("file"), "").unwrap();
        fs::create_dir(root.join("notes")).unwrap();
        assert_eq!(clear(&root, Millis::now().before(KEPT)).unwrap(), 0);
        assert_eq!(clear(&root, Millis::now().after(KEPT)).unwrap(), 1);
        assert!(!root.join(old.to_string()).exists());
        assert!(root.join("notes").exists() && aim.join("file").exists());
    }
}
