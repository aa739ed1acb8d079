//! The place where the gateway listens: a socket that nobody but its user can
//! open, from its first moment on.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::{
        fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _},
        net::SocketAddr,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;
use tokio::{
    net::{UnixListener, UnixStream},
    time,
};

use super::LONGEST_PATH;

/// The file whose lock says who may put the socket there.
const LOCK: &str = "daemon.lock";
/// How long whoever has the socket may take to take a connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why nobody can connect.
#[derive(Debug, Error)]
pub(crate) enum BindError {
    #[error(
        "the path {} is too long for a socket: {} bytes, and {LONGEST_PATH} are possible; \
         choose another OSTLER_DATA_DIR",
        .0.display(),
        .0.as_os_str().len()
    )]
    PathTooLong(PathBuf),
    #[error("another gateway listens at {}; choose another OSTLER_DATA_DIR", .0.display())]
    InUse(PathBuf),
    #[error("{} is there and is no socket; move it away", .0.display())]
    NoSocket(PathBuf),
    #[error("could not {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl BindError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}

/// A socket that is listened at. Dropping it takes it away.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Held for as long as the socket is there.
    _lock: File,
}

impl Listening {
    /// Begins to listen. A socket that nobody listens at any more is replaced.
    pub(crate) async fn bind(data_dir: &Path) -> Result<Self, BindError> {
        let path = super::path(data_dir);
        if SocketAddr::from_pathname(&path).is_err() {
            return Err(BindError::PathTooLong(path));
        }
        private_folder(data_dir, Parents::Too)
            .map_err(BindError::io("make the folder", data_dir))?;
        let lock = lock(&data_dir.join(LOCK), &path)?;
        check_free(&path).await?;
        let listener = put(data_dir, &path)?;
        Ok(Self { listener, path, _lock: lock })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Somebody else may put theirs there only after this, when the lock is free.
        fs::remove_file(&self.path).ok();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Parents {
    Too,
    Exist,
}

fn private_folder(path: &Path, parents: Parents) -> io::Result<()> {
    fs::DirBuilder::new().recursive(parents == Parents::Too).mode(0o700).create(path)
}

/// Makes sure that nobody else puts a socket there at the same time.
fn lock(path: &Path, socket: &Path) -> Result<File, BindError> {
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(BindError::io("open the lock file", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BindError::InUse(socket.to_owned())),
        Err(TryLockError::Error(source)) => Err(BindError::io("lock", path)(source)),
    }
}

/// Looks at what is there already.
async fn check_free(path: &Path) -> Result<(), BindError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(BindError::io("look at", path)(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(BindError::NoSocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match time::timeout(PATIENCE, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Ok(Err(error)) => Err(BindError::io("connect to", path)(error)),
        Ok(Ok(_)) | Err(_) => Err(BindError::InUse(path.to_owned())),
    }
}

/// Makes the socket within a private folder, where it gets its permissions, and
/// moves it to its place.
fn put(data_dir: &Path, path: &Path) -> Result<UnixListener, BindError> {
    let name = uuid::Uuid::new_v4().simple().to_string();
    // No longer than the name that it will have.
    let folder = data_dir.join(format!(".{}", name.get(..8).unwrap_or_default()));
    private_folder(&folder, Parents::Exist).map_err(BindError::io("make the folder", &folder))?;
    let made = put_from(&folder.join("s"), path);
    // It is empty now, unless something failed that is told.
    fs::remove_file(folder.join("s")).ok();
    fs::remove_dir(&folder).ok();
    made
}

fn put_from(made: &Path, path: &Path) -> Result<UnixListener, BindError> {
    let listener = UnixListener::bind(made).map_err(BindError::io("make the socket", made))?;
    fs::set_permissions(made, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::rename(made, path))
        .map_err(BindError::io("put the socket at", path))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn folder() -> TempDir {
        tempfile::Builder::new().prefix("os").tempdir().unwrap()
    }

    #[tokio::test]
    async fn the_socket_is_its_users_alone_and_goes_away_with_its_gateway() {
        let folder = folder();
        let data = folder.path().join("new/data");
        let listening = Listening::bind(&data).await.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&listening.path), mode(&data)), (0o600, 0o700));
        UnixStream::connect(&listening.path).await.unwrap();
        let names = || fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names().count(), 2, "the socket and the lock");
        drop(listening);
        assert!(names().all(|name| name == LOCK));
    }

    #[tokio::test]
    async fn a_second_gateway_is_refused_and_what_a_killed_one_left_is_replaced() {
        let folder = folder();
        let path = super::super::path(folder.path());
        let first = Listening::bind(folder.path()).await.unwrap();
        let error = Listening::bind(folder.path()).await.unwrap_err();
        assert!(matches!(error, BindError::InUse(_)), "{error}");
        drop(first);
        let stranger = UnixListener::bind(&path).unwrap();
        let error = Listening::bind(folder.path()).await.unwrap_err();
        assert!(matches!(error, BindError::InUse(_)), "{error}");
        drop(stranger);
        assert!(path.exists());
        Listening::bind(folder.path()).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_no_socket_stays_where_it_is() {
        let folder = folder();
        let path = super::super::path(folder.path());
        fs::write(&path, "precious").unwrap();
        let error = Listening::bind(folder.path()).await.unwrap_err();
        assert!(matches!(error, BindError::NoSocket(_)), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_is_told_with_the_limit_and_the_longest_one_works() {
        let folder = folder();
        let rest = LONGEST_PATH - folder.path().as_os_str().len() - "//daemon.sock".len();
        let longest = folder.path().join("x".repeat(rest));
        let listening = Listening::bind(&longest).await.unwrap();
        assert_eq!(listening.path.as_os_str().len(), LONGEST_PATH);
        let error = Listening::bind(&folder.path().join("x".repeat(rest + 1))).await.unwrap_err();
        assert!(error.to_string().contains(&LONGEST_PATH.to_string()), "{error}");
    }
}
