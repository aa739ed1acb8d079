//! Fetches what came with a message. Whatever is wrong with it, the turn begins:
//! the agent is told what is missing, and why.
//!
//! Files are fetched only from hosts that the message's channel vouches for, at
//! addresses that pass `reach`, up to a size and within a time. Nothing leads
//! elsewhere, but for one redirect to hosts for which the channel vouches as well;
//! and what the first is shown, the second never sees.

use std::{error::Error as _, io, path::Path, sync::Arc, time::Duration};

use ostler_core::failure::chain;
use reqwest::{Response, StatusCode, Url, header::LOCATION};
use thiserror::Error;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    task,
    time::{self, Instant},
};

use super::{
    MEGABYTE,
    caps::Caps,
    ending,
    folder::{Folder, Part},
    kind::{self, HEAD, Sort},
    megabytes, name,
    vouched::{Hosts, Login, Vouched},
};
use crate::{
    channel::reach::{self, Lookup, Private, PublicOnly},
    clients::Clients,
    gateway::inbound::Media,
    id::JobId,
};

/// How long it may take to get through.
const CONNECT: Duration = Duration::from_secs(10);
/// How long everything may take that a turn begins with.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// How much of the disk is left alone, in bytes: the store has to go on.
pub(crate) const SPARE: u64 = 100 * MEGABYTE;

/// What is to be fetched, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) job: JobId,
    pub(crate) media: &'a [Media],
    /// The folder of all jobs.
    pub(crate) root: &'a Path,
    pub(crate) vouched: &'a [Vouched],
    pub(crate) caps: Caps,
    /// How much of the disk is left alone, in bytes.
    pub(crate) spare: u64,
    /// When nothing more is waited for.
    pub(crate) until: Instant,
}

/// What became of a medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// There was nothing to fetch.
    AsItWas,
    File {
        path: String,
        kind: &'static str,
    },
    Missing(Trouble),
}

impl Fetched {
    /// Notes it with the medium.
    pub(crate) fn note(self, media: &mut Media) {
        match self {
            Self::AsItWas => {}
            Self::File { path, kind } => {
                media.path = Some(path);
                media.media_type = Some(kind.to_owned());
            }
            Self::Missing(trouble) => media.trouble = Some(trouble.to_string()),
        }
    }
}

/// Why something could not be fetched, for the agent and whoever asks it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Trouble {
    #[error("it is larger than {} MB", megabytes(*.0))]
    TooLarge(u64),
    #[error("it is gone")]
    Gone,
    #[error("it is at another address now")]
    Moved,
    #[error("its server answered with {0}")]
    Status(u16),
    #[error("its server could not be reached")]
    Unreachable,
    #[error("it broke off")]
    BrokenOff,
    #[error("it took too long")]
    TooSlow,
    #[error("its address leads to a private network")]
    Private,
    #[error("its address is none from which files of this chat come")]
    Strange,
    #[error("there is too little room on the disk")]
    NoRoom,
    #[error("the disk is full")]
    DiskFull,
    #[error("it could not be stored: {0}")]
    NotStored(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        let is_full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if is_full.contains(&error.kind()) {
            return Self::DiskFull;
        }
        Self::NotStored(error.to_string())
    }
}

/// What fetches.
#[derive(Debug)]
pub(crate) struct Fetcher {
    /// For addresses that may lead anywhere, and for those that may not.
    anywhere: Clients,
    public: Clients,
}

impl Fetcher {
    pub(crate) fn new() -> Self {
        Self::with(reach::system())
    }

    /// Makes one with an address book of its own.
    pub(crate) fn with(lookup: Lookup) -> Self {
        let public = Clients::new(CONNECT).with_names(Arc::new(PublicOnly(lookup)));
        Self { anywhere: Clients::new(CONNECT), public }
    }

    /// Fetches what has a URL and is not on this machine yet; says of each medium
    /// what became of it. Dropped, it leaves nothing half-done.
    pub(crate) async fn fetch(&self, wanted: Wanted<'_>) -> Vec<Fetched> {
        let mut all = Vec::with_capacity(wanted.media.len());
        for (number, media) in (1..).zip(wanted.media) {
            all.push(match media {
                Media { path: None, url: Some(url), media_type, .. } => {
                    let said = media_type.as_deref();
                    self.fetch_one(wanted, number, url, said).await.unwrap_or_else(|trouble| {
                        tracing::warn!(job = %wanted.job, number, %trouble, "an attachment is missing");
                        Fetched::Missing(trouble)
                    })
                }
                Media { .. } => Fetched::AsItWas,
            });
        }
        all
    }

    async fn fetch_one(
        &self,
        wanted: Wanted<'_>,
        number: usize,
        url: &str,
        said: Option<&str>,
    ) -> Result<Fetched, Trouble> {
        let url = Url::parse(url).map_err(|_| Trouble::Strange)?;
        let vouched = wanted.vouched.iter().find(|vouched| vouched.at.have(&url));
        let vouched = vouched.ok_or(Trouble::Strange)?;
        let came = Came { number, name: name::of_url(&url), said };
        let (root, job) = (wanted.root.to_owned(), wanted.job);
        let names = came.possible();
        let (folder, place, free) = blocking(move || {
            let folder = Folder::open(&root, job)?;
            let (place, free) = (Place::of(&folder, names, number)?, folder.free()?);
            Ok((folder, place, free))
        })
        .await?;
        let (name, kind) = match place {
            Place::There(name, start) => (name, came.kind(&start)),
            Place::Free(part, file) => {
                if free.saturating_sub(wanted.caps.most()) < wanted.spare {
                    return Err(Trouble::NoRoom);
                }
                let mut file = tokio::fs::File::from_std(file);
                let kind = |start: &[u8]| came.kind(start);
                let to = To { caps: wanted.caps, kind: &kind, file: &mut file };
                let download = self.download(vouched, &url, to);
                let downloaded = time::timeout_at(wanted.until, download).await;
                let start = downloaded.unwrap_or(Err(Trouble::TooSlow))?;
                let (kind, name) = (kind(&start), came.called(&start));
                let (file, kept) = (file.into_std().await, name.clone());
                blocking(move || part.keep(&file, &kept)).await?;
                (name, kind)
            }
        };
        let path = folder.path(&name);
        let Some(path) = path.to_str() else {
            return Err(Trouble::NotStored("its path is no text".to_owned()));
        };
        Ok(Fetched::File { path: path.to_owned(), kind })
    }

    /// Writes what is at a URL to a file, and returns how it begins.
    async fn download(
        &self,
        vouched: &Vouched,
        url: &Url,
        to: To<'_, impl AsyncWrite + Unpin>,
    ) -> Result<Vec<u8>, Trouble> {
        let mut waits = vouched.waits.iter();
        let response = loop {
            let response = self.ask(&vouched.at, url, vouched.login.as_ref()).await?;
            match waits.next() {
                Some(wait) if response.status() == StatusCode::NOT_FOUND => {
                    time::sleep(*wait).await;
                }
                Some(_) | None => break response,
            }
        };
        let response = match (&vouched.onward, onward(&response, url)) {
            (_, None) => response,
            (Some(hosts), Some(next)) if hosts.have(&next) => self.ask(hosts, &next, None).await?,
            (Some(_) | None, Some(_)) => return Err(Trouble::Moved),
        };
        match response.status() {
            StatusCode::OK => receive(response, to).await,
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::GONE => Err(Trouble::Gone),
            status if status.is_redirection() => Err(Trouble::Moved),
            status => Err(Trouble::Status(status.as_u16())),
        }
    }

    /// Asks one of some hosts for what is at a URL.
    async fn ask(
        &self,
        hosts: &Hosts,
        url: &Url,
        login: Option<&Login>,
    ) -> Result<Response, Trouble> {
        let clients = if hosts.may_be_private { &self.anywhere } else { &self.public };
        if !hosts.may_be_private {
            reach::check(url.as_str()).map_err(|Private| Trouble::Private)?;
        }
        let response = match clients.client(url.as_str()) {
            Ok(client) => {
                let request = client.get(url.clone());
                let request = match login {
                    Some(login) => request.basic_auth(&login.user, Some(login.password.reveal())),
                    None => request,
                };
                request.send().await
            }
            Err(error) => Err(error),
        };
        response.map_err(|error| unreachable(error.without_url()))
    }
}

/// Returns where an answer sends us on to, if it does.
fn onward(response: &Response, from: &Url) -> Option<Url> {
    let place = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    from.join(place.to_str().ok()?).ok()
}

/// A file as it came, and what was said of it.
struct Came<'a> {
    number: usize,
    name: String,
    said: Option<&'a str>,
}

impl Came<'_> {
    /// Returns what it is, by how it begins.
    fn kind(&self, start: &[u8]) -> &'static str {
        kind::of_received(start, &self.name, self.said)
    }

    /// Returns what it is called here, by how it begins.
    fn called(&self, start: &[u8]) -> String {
        self.numbered(&ending::named(&self.name, self.kind(start), self.said))
    }

    /// Returns everything that it may be called here.
    fn possible(&self) -> Vec<String> {
        ending::possible(&self.name).map(|name| self.numbered(&name)).collect()
    }

    fn numbered(&self, name: &str) -> String {
        format!("{}-{name}", self.number)
    }
}

/// What there is of a file when it is wanted.
enum Place {
    /// It was fetched before, under this name, and begins like this.
    There(String, Vec<u8>),
    Free(Part, std::fs::File),
}

impl Place {
    /// Looks for a file under everything that it may be called. What was made of it may
    /// lie beside it under another of these names.
    fn of(folder: &Folder, names: Vec<String>, number: usize) -> io::Result<Self> {
        if let Some(name) = folder.oldest(names)?
            && let Some(start) = folder.start_of(&name, HEAD)?
        {
            return Ok(Self::There(name, start));
        }
        folder.begin(number).map(|(part, file)| Self::Free(part, file))
    }
}

/// Where the body of an answer goes.
struct To<'a, F> {
    caps: Caps,
    /// What it is, by how it begins.
    kind: &'a (dyn Fn(&[u8]) -> &'static str + Sync),
    file: &'a mut F,
}

/// Writes the body of an answer to a file, and returns how it begins. A body that
/// has no end is cut, and so is one that turns out to be of a smaller sort.
async fn receive(
    mut response: Response,
    to: To<'_, impl AsyncWrite + Unpin>,
) -> Result<Vec<u8>, Trouble> {
    let To { caps, kind, file } = to;
    let within = |length: u64, most: u64| {
        if length > most { Err(Trouble::TooLarge(most)) } else { Ok(()) }
    };
    let promised = response.content_length().unwrap_or_default();
    within(promised, caps.most())?;
    let (mut start, mut length, mut most) = (Vec::new(), 0_u64, caps.most());
    while let Some(chunk) = response.chunk().await.map_err(|_| Trouble::BrokenOff)? {
        let missing = HEAD.saturating_sub(start.len()).min(chunk.len());
        start.extend_from_slice(chunk.get(..missing).unwrap_or_default());
        if missing > 0 && start.len() == HEAD {
            most = caps.of(Sort::of(kind(&start)));
            within(promised, most)?;
        }
        length = length.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        within(length, most)?;
        file.write_all(&chunk).await?;
    }
    // Of a short one it is known only now what it is.
    within(length, caps.of(Sort::of(kind(&start))))?;
    // And whether all of it was written.
    file.flush().await?;
    Ok(start)
}

fn unreachable(error: reqwest::Error) -> Trouble {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<Private>() {
            return Trouble::Private;
        }
        source = cause.source();
    }
    tracing::debug!(error = chain(&error), "an attachment's server could not be reached");
    Trouble::Unreachable
}

/// Does what waits for the disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests;
