//! Where files lie that came with messages: a folder for each job, which nobody
//! else may read. Nothing here follows a link, whoever may have put one there.

use std::{
    collections::BTreeSet,
    ffi::CStr,
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::{fd::OwnedFd, unix::fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, fchmod, fstatvfs, mkdirat, open, openat, renameat,
        statat, unlinkat,
    },
    io::Errno,
};

use crate::{clock::Millis, id::JobId};

/// For how long files are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How deep a folder of a job is looked into. What an agent puts below that is as good
/// as not there.
const DEPTH: usize = 64;
/// How a folder is opened, whatever may be in its place.
const OF_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

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

    /// Returns how much room is left where it lies, in bytes; all there can be, if
    /// nobody knows.
    pub(super) fn free(&self) -> io::Result<u64> {
        let disk = fstatvfs(&self.fd)?;
        let is_known = disk.f_blocks > 0;
        Ok(if is_known { disk.f_bavail.saturating_mul(disk.f_frsize) } else { u64::MAX })
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

    /// Returns which of some files that are there and complete was written first.
    pub(super) fn oldest(&self, names: Vec<String>) -> io::Result<Option<String>> {
        let mut there = Vec::new();
        for name in names {
            if let Some(file) = self.file(&name)? {
                there.push((file.metadata()?.modified()?, name));
            }
        }
        Ok(there.into_iter().min().map(|(_, name)| name))
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

/// What of the folders of jobs is kept.
#[derive(Clone, Debug)]
pub(crate) struct Keep {
    /// Those in which something happened since.
    pub(crate) since: Millis,
    /// So many bytes together; nothing for as much as there is.
    pub(crate) most: Option<u64>,
    /// Those of these jobs in any case: somebody needs them yet.
    pub(crate) needed: BTreeSet<JobId>,
}

/// The folder of a job, as far as removing it goes.
struct Candidate {
    changed: Millis,
    job: JobId,
    bytes: u64,
}

/// Removes the folders of jobs that are not kept, the oldest first; returns how many.
/// One that cannot be removed keeps no other from it, and is told of at the end. Blocks.
pub(crate) fn clear(root: &Path, keep: &Keep) -> io::Result<usize> {
    clear_with(root, keep, |folder| remove(root, folder))
}

fn clear_with(
    root: &Path,
    keep: &Keep,
    mut remove: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<usize> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in entries {
        all.extend(candidate(root, &entry?));
    }
    all.sort_unstable_by_key(|candidate| (candidate.changed, candidate.job));
    let mut bytes: u64 = all.iter().map(|candidate| candidate.bytes).sum();
    let (mut n_removed, mut trouble) = (0, None);
    for candidate in all.iter().filter(|candidate| !keep.needed.contains(&candidate.job)) {
        let is_too_much = keep.most.is_some_and(|most| bytes > most);
        if candidate.changed >= keep.since && !is_too_much {
            break;
        }
        match remove(&candidate.job.to_string()) {
            Ok(()) => {
                n_removed += 1;
                bytes = bytes.saturating_sub(candidate.bytes);
            }
            Err(error) => trouble = trouble.or(Some(error)),
        }
    }
    trouble.map_or(Ok(n_removed), Err)
}

/// Returns what is known of an entry, if it is the folder of a job. Somebody may be
/// removing it.
fn candidate(root: &Path, entry: &fs::DirEntry) -> Option<Candidate> {
    let name = entry.file_name();
    let job = name.to_str()?.parse().ok()?;
    // Of a link, what counts is the link.
    let metadata = entry.metadata().ok().filter(fs::Metadata::is_dir)?;
    let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let folder = open(root.join(name), OF_FOLDER, Mode::empty()).ok();
    let bytes = folder.map(|folder| size(&folder, DEPTH)).unwrap_or_default();
    Some(Candidate { changed: Millis(0).after(changed), job, bytes })
}

/// Returns how many bytes lie in a folder, as far as it can be read.
fn size(folder: &OwnedFd, depth: usize) -> u64 {
    let mut bytes = 0_u64;
    for entry in Dir::read_from(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let more = if kind == FileType::RegularFile {
            u64::try_from(stat.st_size).unwrap_or_default()
        } else if kind == FileType::Directory && depth > 0 && !is_dots(name) {
            let below = openat(folder, name, OF_FOLDER, Mode::empty());
            below.map(|below| size(&below, depth - 1)).unwrap_or_default()
        } else {
            0
        };
        bytes = bytes.saturating_add(more);
    }
    bytes
}

/// Removes the folder of a job. An agent may have unpacked something there that nobody
/// may write to: then that is changed first.
fn remove(root: &Path, folder: &str) -> io::Result<()> {
    let path = root.join(folder);
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unlock(&open(&path, OF_FOLDER, Mode::empty())?, DEPTH);
            fs::remove_dir_all(&path)
        }
        removed => removed,
    }
}

/// Lets the owner of a folder write to it and to those below it, as far as they are
/// his.
fn unlock(folder: &OwnedFd, depth: usize) {
    // If it is not enough, removing the folder says why.
    fchmod(folder, Mode::RWXU).ok();
    for entry in Dir::read_from(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if depth > 0
            && !is_dots(name)
            && let Ok(below) = openat(folder, name, OF_FOLDER, Mode::empty())
        {
            unlock(&below, depth - 1);
        }
    }
}

/// Whether a name stands for its own folder, or for that above it.
fn is_dots(name: &CStr) -> bool {
    [c".", c".."].contains(&name)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        os::unix::fs::{PermissionsExt as _, symlink},
        time::SystemTime,
    };

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn put(folder: &Folder, name: &str, bytes: &[u8]) {
        let (part, mut file) = folder.begin(1).unwrap();
        file.write_all(bytes).unwrap();
        part.keep(&file, name).unwrap();
    }

    fn since(since: Millis) -> Keep {
        Keep { since, most: None, needed: BTreeSet::new() }
    }

    /// Makes the folders of three jobs with ten bytes each, the oldest first.
    fn three(root: &Path) -> [JobId; 3] {
        let jobs = [JobId::new(), JobId::new(), JobId::new()];
        for (number, job) in (1..).zip(jobs) {
            let folder = Folder::open(root, job).unwrap();
            put(&folder, "1-a", b"oats ");
            let below = folder.path("below");
            fs::create_dir(&below).unwrap();
            fs::write(below.join("b"), "oats ").unwrap();
            let changed = SystemTime::now() - Duration::from_secs(600 - number * 60);
            File::open(&folder.path).unwrap().set_modified(changed).unwrap();
        }
        jobs
    }

    fn are_there(root: &Path, jobs: [JobId; 3]) -> [bool; 3] {
        jobs.map(|job| root.join(job.to_string()).exists())
    }

    #[test]
    fn of_too_much_the_oldest_is_removed_unless_somebody_needs_it() {
        let data = tempfile::tempdir().unwrap();
        let root = data.path().join("media");
        let jobs = three(&root);
        let keep = |most, needed: &[JobId]| Keep {
            most: Some(most),
            needed: needed.iter().copied().collect(),
            ..since(Millis::now().before(KEPT))
        };
        let [oldest, ..] = jobs;
        assert_eq!(clear(&root, &keep(30, &[])).unwrap(), 0);
        assert_eq!(clear(&root, &keep(20, &[oldest])).unwrap(), 1);
        assert_eq!(are_there(&root, jobs), [true, false, true]);
        assert_eq!(clear(&root, &keep(19, &[])).unwrap(), 1);
        assert_eq!(are_there(&root, jobs), [false, false, true]);
        // Nothing that is needed goes, however much there is and however old it is.
        let old = Keep { since: Millis::now().after(KEPT), ..keep(0, &jobs) };
        assert_eq!(clear(&root, &old).unwrap(), 0);
        assert_eq!(clear(&root, &keep(0, &[])).unwrap(), 1);
    }

    #[test]
    fn what_cannot_be_removed_keeps_nothing_else_from_it() {
        let data = tempfile::tempdir().unwrap();
        let root = data.path().join("media");
        let jobs = three(&root);
        let locked = jobs[0].to_string();
        let keep = since(Millis::now().after(KEPT));
        let cleared = clear_with(&root, &keep, |folder| {
            if folder == locked { Err(io::Error::other("locked")) } else { remove(&root, folder) }
        });
        assert_eq!(cleared.unwrap_err().to_string(), "locked");
        assert_eq!(are_there(&root, jobs), [true, false, false]);
    }

    #[test]
    fn what_nobody_may_write_to_is_removed_too() {
        let data = tempfile::tempdir().unwrap();
        let (root, aim) = (data.path().join("media"), data.path().join("aim"));
        let jobs = three(&root);
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::create_dir(&aim).unwrap();
        set(&aim, 0o555);
        for job in jobs {
            let folder = root.join(job.to_string());
            symlink(&aim, folder.join("below/out")).unwrap();
            set(&folder.join("below"), 0o555);
            unlock(&open(&folder, OF_FOLDER, Mode::empty()).unwrap(), DEPTH);
            assert_eq!((mode(&folder.join("below")), mode(&aim)), (0o700, 0o555));
            set(&folder.join("below"), 0o555);
            set(&folder, 0o555);
        }
        assert_eq!(clear(&root, &since(Millis::now().after(KEPT))).unwrap(), 3);
        assert_eq!(are_there(&root, jobs), [false; 3]);
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
        assert_eq!(clear(&root, &since(Millis::now())).unwrap(), 0);
        let (old, linked) = (JobId::new(), JobId::new());
        let folder = Folder::open(&root, old).unwrap();
        put(&folder, "1-a", b"");
        let aim = data.path().join("aim");
        fs::create_dir(&aim).unwrap();
        symlink(&aim, root.join(linked.to_string())).unwrap();
        symlink(&aim, folder.path("out")).unwrap();
        fs::write(aim.join("file"), "").unwrap();
        fs::create_dir(root.join("notes")).unwrap();
        assert_eq!(clear(&root, &since(Millis::now().before(KEPT))).unwrap(), 0);
        assert_eq!(clear(&root, &since(Millis::now().after(KEPT))).unwrap(), 1);
        assert!(!root.join(old.to_string()).exists());
        assert!(root.join("notes").exists() && aim.join("file").exists());
    }
}
