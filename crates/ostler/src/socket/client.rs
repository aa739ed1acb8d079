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
        Accepted, Delivered, Ended, Event, Hello, MAX_LINE, MAX_PROMPT_LINE, PROTOCOL, Refused,
        Request, Skipped,
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
    Delivered(Delivered),
    Refused(Refused),
    Event(Event),
    Ended(Ended),
    Skipped(Skipped),
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
            "delivered" => Self::Delivered(serde_json::from_slice(line)?),
            "refused" => Self::Refused(serde_json::from_slice(line)?),
            "event" => Self::Event(serde_json::from_slice(line)?),
            "ended" => Self::Ended(serde_json::from_slice(line)?),
            "skipped" => Self::Skipped(serde_json::from_slice(line)?),
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
mod tests;
