//! The client's end of the socket.

use std::{
    io,
    os::unix::net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use thiserror::Error;
use tokio::{
    io::{AsyncWriteExt as _, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time,
};

use super::{
    LONGEST_PATH,
    lines::{LineError, LineReader},
    message::{
        Accepted, Ended, Event, Hello, MAX_LINE, MAX_PROMPT_LINE, PROTOCOL, Refused, Request,
    },
    stranger,
};

/// How long a gateway may take to say hello.
const CONNECT: Duration = Duration::from_secs(2);
/// How long an answer may take that waits for the store, but for nothing else.
const ANSWER: Duration = Duration::from_secs(60);
/// The longest line of a gateway: an event may have the whole output of a tool.
const MAX_REPLY: usize = 256 * 1024 * 1024;
/// How much is shown of what should have been an answer.
const MAX_SHOWN: usize = 200;

/// Why there is no connection. Says what to do about it.
#[derive(Debug, Error)]
pub(crate) enum ConnectError {
    #[error("no gateway is running: there is no {}; start one with `ostler serve`", .0.display())]
    Absent(PathBuf),
    #[error(
        "no gateway is running: nobody listens at {}, which one left behind that was killed; \
         start it again with `ostler serve`",
        .0.display()
    )]
    Stale(PathBuf),
    #[error("{} belongs to a gateway of another user (uid {uid})", path.display())]
    Stranger { path: PathBuf, uid: u32 },
    #[error(
        "the path {} is too long for a socket: {} bytes, and {LONGEST_PATH} are possible; \
         choose another OSTLER_DATA_DIR",
        .0.display(),
        .0.as_os_str().len()
    )]
    PathTooLong(PathBuf),
    #[error("could not connect to {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "what listens at {} said nothing for {} s; the gateway may be stuck",
        .0.display(),
        CONNECT.as_secs()
    )]
    Silent(PathBuf),
    #[error("what listens at {} is no gateway: it {did}", path.display())]
    NoGateway { path: PathBuf, did: String },
    #[error("the gateway does not take a connection: {0}")]
    Refused(String),
    #[error(
        "the gateway (version {}, process {}) is too old for this ostler; stop it, and start it \
         with this version",
        .0.version, .0.pid
    )]
    TooOld(Hello),
    #[error("this ostler is too old for the gateway, which has version {}", .0.version)]
    TooNew(Hello),
}

/// Why a conversation with the gateway ended.
#[derive(Debug, Error)]
pub(crate) enum TalkError {
    #[error("the gateway closed the connection; it was stopped, or killed")]
    Closed,
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("the gateway did not answer within {} s", ANSWER.as_secs())]
    Silent,
    #[error("the gateway said what this ostler does not understand: {0}")]
    Strange(String),
    #[error("the request cannot be written: {0}")]
    Unwritable(serde_json::Error),
    #[error(
        "the request has {bytes} bytes, and a gateway takes {} MiB at most",
        MAX_PROMPT_LINE / MAX_LINE
    )]
    TooLong { bytes: usize },
}

/// What the gateway says.
#[derive(Debug)]
pub(crate) enum Heard {
    Hello(Hello),
    Accepted(Accepted),
    Refused(Refused),
    Event(Event),
    Ended(Ended),
    /// Anything else. A newer gateway may say more than is known here.
    Other,
}

impl Heard {
    fn read(line: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "type")]
            kind: String,
        }
        let head: Head = serde_json::from_slice(line)?;
        Ok(match head.kind.as_str() {
            "hello" => Self::Hello(serde_json::from_slice(line)?),
            "accepted" => Self::Accepted(serde_json::from_slice(line)?),
            "refused" => Self::Refused(serde_json::from_slice(line)?),
            "event" => Self::Event(serde_json::from_slice(line)?),
            "ended" => Self::Ended(serde_json::from_slice(line)?),
            _ => Self::Other,
        })
    }
}

/// A connection to a gateway that speaks our protocol.
#[derive(Debug)]
pub(crate) struct Connection {
    lines: LineReader<BufReader<OwnedReadHalf>>,
    to: OwnedWriteHalf,
}

impl Connection {
    /// Connects, and waits until the gateway has said hello.
    pub(crate) async fn open(path: &Path) -> Result<Self, ConnectError> {
        let greeted = time::timeout(CONNECT, Self::greeted(path)).await;
        greeted.unwrap_or_else(|_| Err(ConnectError::Silent(path.to_owned())))
    }

    async fn greeted(path: &Path) -> Result<Self, ConnectError> {
        let stream = connect(path).await?;
        let here = || path.to_owned();
        match stranger(&stream) {
            Ok(None) => {}
            Ok(Some(uid)) => return Err(ConnectError::Stranger { path: here(), uid }),
            Err(source) => return Err(ConnectError::Io { path: here(), source }),
        }
        let (from, to) = stream.into_split();
        let mut connection = Self { lines: LineReader::new(BufReader::new(from), MAX_REPLY), to };
        let did = |did: String| ConnectError::NoGateway { path: here(), did };
        let hello = match connection.next().await {
            Ok(Heard::Hello(hello)) => hello,
            Ok(Heard::Refused(refused)) => return Err(ConnectError::Refused(refused.message)),
            Ok(_) => return Err(did("does not say hello".to_owned())),
            Err(TalkError::Closed) => return Err(did("closes the connection".to_owned())),
            Err(error) => return Err(did(format!("does not say hello ({error})"))),
        };
        match hello.protocol {
            PROTOCOL => Ok(connection),
            older if older < PROTOCOL => Err(ConnectError::TooOld(hello)),
            _ => Err(ConnectError::TooNew(hello)),
        }
    }

    /// Says something and waits for what the gateway says to it.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Heard, TalkError> {
        let answered = time::timeout(ANSWER, async {
            match self.write(request).await {
                // A gateway that hangs up says why.
                Err(TalkError::Line(LineError::Io(_))) | Ok(()) => self.next().await,
                Err(error) => Err(error),
            }
        });
        answered.await.unwrap_or(Err(TalkError::Silent))
    }

    /// Says something whose answer comes among others.
    pub(crate) async fn say(&mut self, request: &Request) -> Result<(), TalkError> {
        let said = time::timeout(ANSWER, self.write(request));
        said.await.unwrap_or(Err(TalkError::Silent))
    }

    async fn write(&mut self, request: &Request) -> Result<(), TalkError> {
        let mut line = request.to_line().map_err(TalkError::Unwritable)?;
        if line.len() > MAX_PROMPT_LINE {
            return Err(TalkError::TooLong { bytes: line.len() });
        }
        line.push('\n');
        Ok(self.to.write_all(line.as_bytes()).await.map_err(LineError::Io)?)
    }

    /// Waits for the next thing that the gateway says. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Heard, TalkError> {
        let Some(line) = self.lines.next().await? else { return Err(TalkError::Closed) };
        Heard::read(&line).map_err(|error| {
            let text: String = String::from_utf8_lossy(&line).chars().take(MAX_SHOWN).collect();
            TalkError::Strange(format!("{error}: {text:?}"))
        })
    }
}

async fn connect(path: &Path) -> Result<UnixStream, ConnectError> {
    let here = || path.to_owned();
    if SocketAddr::from_pathname(path).is_err() {
        return Err(ConnectError::PathTooLong(here()));
    }
    UnixStream::connect(path).await.map_err(|source| {
        let kind = source.kind();
        if kind == io::ErrorKind::NotFound {
            ConnectError::Absent(here())
        } else if kind == io::ErrorKind::ConnectionRefused {
            ConnectError::Stale(here())
        } else {
            ConnectError::Io { path: here(), source }
        }
    })
}

/// Tells a running gateway that the store was changed beside it. If none runs
/// there is nobody to tell, and one that does not understand looks by itself soon.
pub(crate) async fn tell_to_look(path: &Path) {
    let Ok(mut connection) = Connection::open(path).await else { return };
    connection.ask(&Request::Look).await.ok();
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tokio::{io::AsyncReadExt as _, net::UnixListener, task::JoinSet};

    use super::*;
    use crate::socket;

    const HELLO: &str = r#"{"type":"hello","version":"0.1.0","protocol":1,"pid":7,"more":true}"#;

    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = socket::path(folder.path());
        (folder, path)
    }

    /// Says this to the first who connects, listens to what that has to say, and hangs up.
    fn speaking(path: &Path, text: String) -> JoinSet<Vec<u8>> {
        let listener = UnixListener::bind(path).unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(text.as_bytes()).await.ok();
            stream.shutdown().await.ok();
            let mut heard = Vec::new();
            stream.read_to_end(&mut heard).await.ok();
            heard
        });
        task
    }

    async fn error_of(text: &str) -> String {
        let (_folder, path) = folder();
        let _speaker = speaking(&path, text.to_owned());
        Connection::open(&path).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn where_no_gateway_runs_it_says_how_to_start_one() {
        let (_folder, path) = folder();
        let error = Connection::open(&path).await.unwrap_err();
        assert!(matches!(error, ConnectError::Absent(_)), "{error}");
        assert!(error.to_string().contains("ostler serve"), "{error}");
        drop(UnixListener::bind(&path).unwrap());
        let error = Connection::open(&path).await.unwrap_err();
        assert!(matches!(error, ConnectError::Stale(_)), "{error}");
        assert!(error.to_string().contains("ostler serve"), "{error}");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "no socket").unwrap();
        assert!(matches!(Connection::open(&path).await, Err(ConnectError::Stale(_))));
        tell_to_look(&path).await;
    }

    #[tokio::test]
    async fn a_path_that_no_socket_can_have_is_told_with_the_limit() {
        let path = Path::new("/").join("x".repeat(LONGEST_PATH));
        let error = Connection::open(&path).await.unwrap_err().to_string();
        assert!(error.contains(&LONGEST_PATH.to_string()), "{error}");
        let path = Path::new("/").join("x".repeat(LONGEST_PATH - 1));
        assert!(matches!(Connection::open(&path).await, Err(ConnectError::Absent(_))));
    }

    #[tokio::test]
    async fn another_protocol_is_told_with_who_is_too_old() {
        let older = HELLO.replace(r#""protocol":1"#, r#""protocol":0"#);
        let error = error_of(&format!("{older}\n")).await;
        assert!(error.contains("process 7") && error.contains("too old"), "{error}");
        let newer = HELLO.replace(r#""protocol":1"#, r#""protocol":2"#);
        let error = error_of(&format!("{newer}\n")).await;
        assert!(error.contains("this ostler is too old"), "{error}");
    }

    #[tokio::test]
    async fn what_is_no_gateway_is_told() {
        for (text, says) in [
            ("", "closes the connection"),
            (&HELLO[..20], "does not say hello"),
            ("HTTP/1.1 400 Bad Request\r\n\r\n", "does not say hello"),
            ("{\"type\":\"event\",\"number\":1,\"event\":{}}\n", "does not say hello"),
            ("{\"type\":\"refused\",\"code\":\"busy\",\"message\":\"too many\"}\n", "too many"),
        ] {
            let error = error_of(text).await;
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_says_nothing_is_not_waited_for() {
        let (_folder, path) = folder();
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(matches!(Connection::open(&path).await, Err(ConnectError::Silent(_))));
    }

    #[tokio::test]
    async fn what_is_said_is_heard_and_what_is_unknown_passes() {
        let (_folder, path) = folder();
        let text = format!(
            "{HELLO}\n{}\n{}\n{}\n",
            r#"{"type":"of_tomorrow","x":1}"#,
            r#"{"type":"refused","code":"queue_full","message":"later","more":1}"#,
            r#"{"type":"event","number":3,"event":{"b":1, "a":2}}"#,
        );
        let mut speaker = speaking(&path, text);
        let mut connection = Connection::open(&path).await.unwrap();
        let heard = connection.ask(&Request::Status).await.unwrap();
        assert!(matches!(heard, Heard::Other));
        let Heard::Refused(refused) = connection.next().await.unwrap() else { panic!() };
        assert_eq!(refused.code, "queue_full");
        let Heard::Event(event) = connection.next().await.unwrap() else { panic!() };
        assert_eq!((event.number, event.event.get()), (3, r#"{"b":1, "a":2}"#));
        assert!(matches!(connection.next().await, Err(TalkError::Closed)));
        drop(connection);
        let heard = speaker.join_next().await.unwrap().unwrap();
        assert_eq!(heard, b"{\"type\":\"status\"}\n");
    }
}
