//! What is done in Discord over HTTP. One call at a time is made here, within a
//! time limit that the waits for Discord's rate limits are part of: `bucket` keeps
//! those of single places, `rate` that of all calls. What a refusal means is said by
//! `verdict`, what is sent by `payload`.

mod bucket;
mod chat;
mod interact;
mod lookup;
mod lull;
mod payload;
mod rate;
mod standing;
mod verdict;

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use reqwest::Url;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::{self, Instant};
use twilight_http::{
    Client,
    request::{Request, RequestBuilder},
    response::Response as Answer,
    routing::Route,
};
use twilight_http_ratelimiting::RateLimiter;

use self::{
    bucket::{Buckets, Calling},
    lull::Lull,
    rate::Rate,
};
pub(crate) use self::{
    chat::LIMITS,
    interact::{Given, Response},
    lookup::{Application, Seat, Starts},
    verdict::Trouble,
};
use super::{CertificateError, prepare_encryption};

/// How long a call may take in all, beside what its files take.
const LIMIT: Duration = Duration::from_secs(20);
/// How many bytes of files a slow line carries in a second.
const LINE: u64 = 100_000;
/// The longest that files may take.
const LONGEST: Duration = Duration::from_secs(300);
/// How often a call is sent that Discord has no time for. Without a bound, one
/// that is refused without a word on when to come again would be sent without end.
const TRIES: u32 = 4;

/// Discord's HTTP interface, as one bot.
pub(crate) struct Api {
    client: Client,
    limit: Duration,
    lull: Lull,
    rate: Rate,
    buckets: Buckets,
    /// How far our clock is ahead of Discord's, by the newest answer.
    skew: Mutex<Option<SignedDuration>>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Why nothing can be called.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum ApiError {
    #[error("the token of the bot is empty, or has characters in it that no token has")]
    Token,
    #[error("the address of Discord's API is not a URL such as https://discord.com")]
    Url,
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

impl Api {
    /// Makes one. It is to be made where tasks can run.
    pub(crate) fn new(token: &str, base_url: Option<&str>) -> Result<Self, ApiError> {
        Self::with_limit(token, base_url, LIMIT)
    }

    fn with_limit(token: &str, base_url: Option<&str>, limit: Duration) -> Result<Self, ApiError> {
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(ApiError::Token);
        }
        let base = base_url.map(base).transpose()?;
        prepare_encryption()?;
        let client = Client::builder()
            .token(token.to_owned())
            // One refusal by mistake would otherwise be the end of every call.
            .remember_invalid_token(false)
            // What all calls may do together is kept by `rate`.
            .ratelimiter(Some(RateLimiter::new(u16::MAX)))
            // That of a call is kept here, by what it carries.
            .timeout(limit + LONGEST);
        let client = match base {
            Some(Base { place, is_http }) => client.proxy(place, is_http),
            None => client,
        };
        let (rate, buckets) = (Rate::new(rate::USUAL), Buckets::default());
        let (client, lull) = (client.build(), Lull::default());
        Ok(Self { client, limit, lull, rate, buckets, skew: Mutex::new(None) })
    }

    /// Makes it call up to this often in a second.
    pub(crate) fn with_rate(self, per_second: u32) -> Self {
        Self { rate: Rate::new(per_second), ..self }
    }

    /// Returns how far this machine's clock is ahead of Discord's, to the second;
    /// nothing as long as there was no answer.
    pub(crate) fn clock_skew(&self) -> Option<SignedDuration> {
        *self.skew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for something, and reads the answer.
    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Trouble> {
        read(&self.call(request).await?)
    }

    /// Makes a call, and returns the body of the answer.
    async fn call(&self, request: RequestBuilder) -> Result<Vec<u8>, Trouble> {
        self.call_as(request, Manner::default()).await
    }

    async fn call_as(&self, request: RequestBuilder, manner: Manner) -> Result<Vec<u8>, Trouble> {
        let request = request.build().map_err(|_| Trouble::Unmade("it cannot be written"))?;
        // What answers a button or a command is not bound to the limits of all calls.
        let is_bound = request.use_authorization_token();
        let most = if manner.takes_no { 1 } else { TRIES };
        let tries = Arc::new(Tries { is_bound, most, ..Tries::default() });
        let limit = self.limit + time_of(manner.bytes);
        let by = Instant::now() + limit;
        let call = async {
            loop {
                let mut calling = None;
                if is_bound {
                    self.lull.over().await;
                    calling = Some(self.buckets.enter(bucket::place(&request)).await);
                    if !self.rate.pass(by).await {
                        return Err(Trouble::Late { was_sent: false });
                    }
                }
                let made = Instant::now();
                match self.attempt(request.clone(), Arc::clone(&tries), calling).await {
                    Err(Trouble::Limited) if is_bound && !manner.takes_no => self.lull.begin(made),
                    answered => return answered,
                }
                if tries.count() >= TRIES {
                    return Err(Trouble::Limited);
                }
            }
        };
        match time::timeout(limit, Box::pin(call)).await {
            Ok(answered) => answered,
            Err(_) => Err(Trouble::Late { was_sent: tries.count() > 0 }),
        }
    }

    /// Makes a call, and makes it again as long as Discord says when.
    async fn attempt(
        &self,
        request: Request,
        tries: Arc<Tries>,
        calling: Option<Calling>,
    ) -> Result<Vec<u8>, Trouble> {
        let mut call = self.client.request::<()>(request);
        let begun = Instant::now();
        call.set_pre_flight(move || tries.take(begun));
        let answer = call.await.map_err(Trouble::from_http)?;
        self.lull.end();
        self.note_date(&answer);
        if let Some(mut calling) = calling {
            calling.answered(answer.headers());
        }
        answer.bytes().await.map(|bytes| bytes.to_vec()).map_err(|_| Trouble::Cut)
    }

    fn note_date(&self, answer: &Answer<()>) {
        let date = answer.headers().find(|(name, _)| name.eq_ignore_ascii_case("date"));
        let date = date.and_then(|(_, date)| std::str::from_utf8(date).ok());
        let date = date.and_then(|date| rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
        if let Some(date) = date {
            let skew = Timestamp::now().duration_since(date);
            *self.skew.lock().unwrap_or_else(PoisonError::into_inner) = Some(skew);
        }
    }
}

/// How a call is made.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    /// How many bytes of files it carries.
    bytes: u64,
    /// Whether it is not made again if Discord has no time for it, and no other call
    /// waits because of that: it is this one alone that Discord does not want.
    takes_no: bool,
}

/// Returns how long files may take.
fn time_of(bytes: u64) -> Duration {
    LONGEST.min(Duration::from_secs(bytes.div_ceil(LINE)))
}

fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Trouble> {
    serde_json::from_slice(answer).map_err(|_| Trouble::Garbled)
}

/// How often a call was sent.
#[derive(Debug, Default)]
struct Tries {
    /// How often it may be.
    most: u32,
    /// Whether those that follow each other at once are held back.
    is_bound: bool,
    n: AtomicU32,
    last: Mutex<Option<Instant>>,
}

impl Tries {
    fn count(&self) -> u32 {
        self.n.load(Ordering::Relaxed)
    }

    /// Counts one more, if it may be sent now. One that follows the one before at once
    /// was not told when to come again.
    fn take(&self, begun: Instant) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_at_once = last.is_some_and(|at| at >= begun && at.elapsed() < lull::FIRST);
        if (self.is_bound && is_at_once) || self.count() >= self.most {
            return false;
        }
        *last = Some(Instant::now());
        self.n.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Begins a request.
fn to(route: &Route<'_>) -> RequestBuilder {
    Request::builder(route)
}

/// Reads an id of Discord.
fn id(text: &str) -> Result<u64, Trouble> {
    // Zero is no id, and what sends the request relies on it.
    let id = text.parse().ok().filter(|id| *id != 0);
    id.ok_or(Trouble::Unmade("that is not an id of Discord"))
}

/// Where the API is, in the words of what calls it.
#[derive(Debug, PartialEq, Eq)]
struct Base {
    place: String,
    is_http: bool,
}

fn base(url: &str) -> Result<Base, ApiError> {
    let url = Url::parse(url).map_err(|_| ApiError::Url)?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_short = url.query().is_none() && url.fragment().is_none();
    let is_http = match url.scheme() {
        "http" => true,
        "https" => false,
        _ => return Err(ApiError::Url),
    };
    let host = url.host_str().filter(|_| is_plain && is_short).ok_or(ApiError::Url)?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    // This part is added to every call.
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/api/v10").unwrap_or(path);
    Ok(Base { place: format!("{host}{port}{path}"), is_http })
}

#[cfg(test)]
mod tests;
