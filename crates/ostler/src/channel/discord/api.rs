//! What is done in Discord over HTTP. One call at a time is made here, within a
//! time limit that the waits for Discord's rate limits are part of: `bucket` keeps
//! those of single places, `rate` that of all calls, `lull` the pauses that Discord
//! asks for. What a refusal says is read by `refusal`, what comes of it is up to
//! `verdict`; what is sent is written by `payload`, and leaves through `wire`.

mod bucket;
mod chat;
mod interact;
mod lookup;
mod lull;
mod payload;
mod rate;
mod refusal;
mod standing;
mod verdict;
mod wire;

use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use reqwest::Url;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::{self, Instant};
use twilight_http::{
    request::{Request, RequestBuilder},
    routing::Route,
};

use self::{
    bucket::Buckets,
    lull::Lull,
    rate::Rate,
    refusal::Refusal,
    wire::{Answer, Wire},
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
/// How often a call is sent that Discord has no time for.
const TRIES: u32 = 4;
/// Where Discord is, if nothing else is configured.
const DISCORD: &str = "https://discord.com";

/// Discord's HTTP interface, as one bot.
pub(crate) struct Api {
    wire: Wire,
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
    #[error("this machine cannot encrypt connections to Discord")]
    Encryption,
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
        let base = base(base_url.unwrap_or(DISCORD))?;
        prepare_encryption()?;
        let wire = Wire::new(token, base)?;
        let (rate, buckets, lull) = (Rate::new(rate::USUAL), Buckets::default(), Lull::default());
        Ok(Self { wire, limit, lull, rate, buckets, skew: Mutex::new(None) })
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
        self.call_with(request, 0).await
    }

    /// Makes a call that carries so many bytes of files.
    async fn call_with(&self, request: RequestBuilder, bytes: u64) -> Result<Vec<u8>, Trouble> {
        let request = request.build().map_err(|_| Trouble::Unmade("it cannot be written"))?;
        let limit = self.limit + time_of(bytes);
        // Whether Discord may have done it without anybody having heard so.
        let is_out = AtomicBool::new(false);
        let call = Box::pin(self.call_until(&request, Instant::now() + limit, &is_out));
        match time::timeout(limit, call).await {
            Ok(answered) => answered,
            Err(_) => Err(Trouble::Late { was_sent: is_out.load(Ordering::Relaxed) }),
        }
    }

    /// Makes a call, and makes it again whenever Discord says when to.
    async fn call_until(
        &self,
        request: &Request,
        by: Instant,
        is_out: &AtomicBool,
    ) -> Result<Vec<u8>, Trouble> {
        let prepared = self.wire.prepare(request)?;
        // What answers a button or a command is not bound to the limits of all calls.
        let is_bound = request.use_authorization_token();
        let mut told = None;
        for _ in 0..TRIES {
            let mut calling = self.buckets.enter(bucket::place(request)).await;
            if is_bound {
                self.pass(by).await?;
            }
            let made = Instant::now();
            is_out.store(true, Ordering::Relaxed);
            let answer = self.wire.send(&prepared).await?;
            self.note_date(&answer);
            if (200..300).contains(&answer.status) {
                self.lull.end();
                calling.answered(&answer);
                return Ok(answer.body);
            }
            let (after, is_for_all) = match refusal::read(&answer) {
                Refusal::Busy { after, is_for_all } => (after, is_for_all),
                Refusal::Final(trouble) => {
                    // What is refused for its age says nothing of the place.
                    if !trouble.is_code(refusal::OLD) {
                        calling.answered(&answer);
                    }
                    return Err(trouble);
                }
            };
            is_out.store(false, Ordering::Relaxed);
            if is_for_all && is_bound {
                self.lull.begin(made, after);
            } else {
                calling.refused(after.unwrap_or(lull::FIRST));
            }
            told = after;
            if after.is_some_and(|after| Instant::now() + after > by) {
                break;
            }
        }
        Err(Trouble::Limited { after: told })
    }

    /// Waits until a call may leave that counts among all calls.
    async fn pass(&self, by: Instant) -> Result<(), Trouble> {
        loop {
            let over = self.lull.over(by).await;
            over.map_err(|left| Trouble::Limited { after: Some(left) })?;
            if !self.rate.pass(by).await {
                return Err(Trouble::Late { was_sent: false });
            }
            // Another call may have been refused meanwhile.
            if !self.lull.is_on() {
                return Ok(());
            }
        }
    }

    fn note_date(&self, answer: &Answer) {
        if let Some(date) = answer.date() {
            let skew = Timestamp::now().duration_since(date);
            *self.skew.lock().unwrap_or_else(PoisonError::into_inner) = Some(skew);
        }
    }
}

/// Returns how long files may take.
fn time_of(bytes: u64) -> Duration {
    LONGEST.min(Duration::from_secs(bytes.div_ceil(LINE)))
}

fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Trouble> {
    serde_json::from_slice(answer).map_err(|_| Trouble::Garbled)
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

/// Returns what the paths of all calls are put behind.
fn base(url: &str) -> Result<String, ApiError> {
    let url = Url::parse(url).map_err(|_| ApiError::Url)?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_short = url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !is_plain || !is_short {
        return Err(ApiError::Url);
    }
    let path = url.as_str().trim_end_matches('/');
    Ok(format!("{}/api/v10", path.strip_suffix("/api/v10").unwrap_or(path)))
}

#[cfg(test)]
mod tests;
