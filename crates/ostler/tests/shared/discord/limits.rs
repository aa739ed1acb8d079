//! Rate limits: buckets per route and per channel or webhook, and one for all requests.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{answer::Refusal, time};

/// A bucket, of which every channel or webhook has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bucket {
    /// All requests but those of interactions together.
    Global,
    Create,
    Edit,
    Delete,
    Typing,
    /// What is sent with the token of an interaction.
    Webhook,
}

impl Bucket {
    /// Returns the name that is the same for all channels.
    fn name(self) -> &'static str {
        match self {
            Self::Global => "",
            Self::Create => "80c17d2f203122d936070c88c8d10f33",
            Self::Edit => "7f9a2c64b0d84f5eb1a3c92d55e8f041",
            Self::Delete => "1d4b6e0f92c8437aa5d7e3f16b08c294",
            Self::Typing => "d8e35a1c7b6f49208c4e0f9d217ab563",
            Self::Webhook => "3cd1f278bd0ecaf11e0d2391c374cb5d",
        }
    }
}

/// How many requests may be made in what time, and how many were.
#[derive(Debug)]
pub(super) struct Limits {
    sizes: BTreeMap<Bucket, (u32, Duration)>,
    windows: BTreeMap<(Bucket, String), (Instant, u32)>,
    /// What was told to wait by a refusal that was planned.
    pauses: BTreeMap<(Bucket, String), Pause>,
    /// How many requests came while they were to wait.
    pub(super) hurried: usize,
}

/// A time in which nothing is to be asked for.
#[derive(Clone, Copy, Debug)]
struct Pause {
    from: Instant,
    until: Instant,
}

/// The headers that go with an answer.
pub(super) type Headers = Vec<(&'static str, String)>;

impl Limits {
    pub(super) fn new() -> Self {
        let seconds = Duration::from_secs;
        let sizes = BTreeMap::from([
            (Bucket::Global, (50, seconds(1))),
            (Bucket::Create, (5, seconds(5))),
            (Bucket::Edit, (5, seconds(5))),
            (Bucket::Delete, (5, seconds(1))),
            (Bucket::Typing, (5, seconds(5))),
            (Bucket::Webhook, (5, seconds(2))),
        ]);
        Self { sizes, windows: BTreeMap::new(), pauses: BTreeMap::new(), hurried: 0 }
    }

    pub(super) fn set(&mut self, bucket: Bucket, requests: u32, per: Duration) {
        self.sizes.insert(bucket, (requests, per));
        self.windows.retain(|(of, _), _| *of != bucket);
    }

    /// Takes all limits away.
    pub(super) fn relax(&mut self) {
        self.sizes.clear();
        self.windows.clear();
        self.pauses.clear();
    }

    /// Has requests wait after one was refused, and refuses those that do not.
    pub(super) fn pause(&mut self, bucket: Bucket, of: &str, seconds: f64) {
        let from = Instant::now();
        let until = from + Duration::from_secs_f64(seconds);
        self.pauses.insert((bucket, of.to_owned()), Pause { from, until });
    }

    /// Refuses a request that was to wait. It is hurried if it comes in the second half
    /// of the pause: what was on its way when the pause began could not know of it.
    pub(super) fn heed(&mut self, bucket: Bucket, of: &str) -> Result<(), Limited> {
        let now = Instant::now();
        let pause = self.pauses.get(&(bucket, of.to_owned())).filter(|it| now < it.until);
        let Some(&Pause { from, until }) = pause else { return Ok(()) };
        self.hurried += usize::from(now - from > (until - from) / 2);
        let left = ((until - now).as_secs_f64() * 1000.0).ceil() / 1000.0;
        Err(Limited::planned(left, bucket == Bucket::Global))
    }

    /// Counts a request; returns the headers of its answer, or the answer of one too many.
    pub(super) fn count(&mut self, bucket: Bucket, of: &str) -> Result<Headers, Limited> {
        let Some(&(size, per)) = self.sizes.get(&bucket) else { return Ok(Headers::new()) };
        let now = Instant::now();
        let window = self.windows.entry((bucket, of.to_owned())).or_insert((now, 0));
        if now.duration_since(window.0) >= per {
            *window = (now, 0);
        }
        // Rounded up, or who obeys to the millisecond would be too early.
        let left = per.saturating_sub(now.duration_since(window.0)).as_secs_f64();
        let left = (left * 1000.0).ceil() / 1000.0;
        if window.1 >= size {
            let mut headers = headers(bucket, size, 0, left);
            let global = bucket == Bucket::Global;
            headers.extend(limited_headers(left, global));
            return Err(Limited { headers, retry_after: left, global });
        }
        window.1 += 1;
        Ok(headers(bucket, size, size - window.1, left))
    }
}

/// A request too many.
#[derive(Debug)]
pub(super) struct Limited {
    pub(super) headers: Headers,
    pub(super) retry_after: f64,
    pub(super) global: bool,
}

impl Limited {
    /// Returns one that is not of any bucket's count.
    pub(super) fn planned(retry_after: f64, global: bool) -> Self {
        let mut headers = limited_headers(retry_after, global);
        if !global {
            headers.extend(self::headers(Bucket::Create, 5, 0, retry_after));
        }
        Self { headers, retry_after, global }
    }

    pub(super) fn refusal(&self) -> Refusal {
        let body = json!({
            "message": "You are being rate limited.",
            "retry_after": self.retry_after,
            "global": self.global,
        });
        Refusal { status: 429, body }
    }
}

fn headers(bucket: Bucket, size: u32, remaining: u32, left: f64) -> Headers {
    if bucket == Bucket::Global {
        return Headers::new();
    }
    let since_1970 = Duration::from_millis(time::now()).as_secs_f64();
    vec![
        ("X-RateLimit-Limit", size.to_string()),
        ("X-RateLimit-Remaining", remaining.to_string()),
        ("X-RateLimit-Reset", format!("{:.3}", since_1970 + left)),
        ("X-RateLimit-Reset-After", format!("{left:.3}")),
        ("X-RateLimit-Bucket", bucket.name().to_owned()),
    ]
}

fn limited_headers(left: f64, global: bool) -> Headers {
    let scope = if global { "global" } else { "user" };
    let mut headers =
        vec![("Retry-After", format!("{}", left.ceil())), ("X-RateLimit-Scope", scope.to_owned())];
    if global {
        headers.push(("X-RateLimit-Global", "true".to_owned()));
    }
    headers
}
