//! The events of a project as a stream that can be resumed (server-sent events).
//!
//! The id of an event is its number in the log. Whoever names the last one that he
//! has is sent everything after it, over connections and restarts of the gateway.

pub(crate) mod render;
#[cfg(test)]
mod tests;

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use hyper::body::Frame;
use serde::Deserialize;
use tokio::time::{self, Instant, Sleep};
use tokio_util::sync::ReusableBoxFuture;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Code, Service,
    caller::Caller,
    error::Errors,
    feed::{FRESH, Heard, Listener},
    take::{Named, Params},
};
use crate::{
    id::{KeyId, ProjectId},
    key::Scope,
    store::{
        StoreError,
        events::{self, Extent, Selection},
        projects,
    },
    telemetry::Subscribed,
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Keeps proxies from collecting what is to arrive at once.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
/// The longest name of a stream, in bytes.
const LONGEST: usize = 256;
/// How long to wait before asking a gateway that is about to be there again.
const PAUSE: Duration = Duration::from_secs(1);
/// Streams look after themselves no more often than this.
const SHORTEST: Duration = Duration::from_millis(10);

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// What is wanted of a project's events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Only the events of this stream, such as that of one command; from its
    /// beginning, unless an event is named.
    #[param(min_length = 1, max_length = 256)]
    stream_id: Option<String>,
    /// The id of the last event that is known, for clients that cannot send the
    /// header `Last-Event-ID`.
    #[param(minimum = 0)]
    last_event_id: Option<i64>,
}

/// Follow what happens in a project
///
/// Answers with server-sent events: `connected` first, then each event as it is
/// stored, and `heartbeat` from time to time. Without `stream_id` it begins with what
/// comes from now on; after `Last-Event-ID` it goes on.
#[utoipa::path(
    get, path = "/projects/{project}/events", tag = "events",
    params(
        ("project" = String, Path, description = "The id of the project"),
        Wanted,
        ("Last-Event-ID" = Option<i64>, Header, minimum = 0,
            description = "The id of the last event that is known"),
    ),
    security(("key" = ["projects:read"])),
    responses(
        (status = 200, description = "The events, for as long as the connection lasts",
            content_type = "text/event-stream", body = String),
        Errors,
    ),
)]
async fn stream(
    caller: Caller,
    State(service): State<Service>,
    Named(project): Named<ProjectId>,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.may_in(Scope::ProjectsRead, project)?;
    let known = known(&headers, wanted.last_event_id)?;
    let name = wanted.stream_id;
    if let Some(name) = &name {
        check(name)?;
    }
    let extent = service.store().read(project, |conn, project| {
        Box::pin(async move {
            let found = projects::find(conn, *project).await?;
            let extent = events::extent(conn).await?;
            Ok::<_, StoreError>(found.map(|_| extent))
        })
    });
    let missing = || ApiError::not_found(format!("there is no project {project}"));
    let extent = extent.await?.ok_or_else(missing)?;
    let position = start(known, name.is_some(), extent);
    let first = render::connected(project, name.as_deref(), position);
    let selection = match name {
        Some(name) => Selection::Stream(project, name.into()),
        None => Selection::Project(project),
    };
    let listener = service.shared.feed.listen(selection, position, extent.newest);
    let stopping = || {
        let error = ApiError::new(Code::ServiceUnavailable, "the gateway stops; try again");
        error.retry_after(PAUSE)
    };
    let listener = listener.ok_or_else(stopping)?;
    // Somebody else may have looked at the key a moment ago.
    let tick = service.policy().api.heartbeat;
    let tick = tick.saturating_sub(FRESH).max(tick / 2).max(SHORTEST);
    let tells = Tells {
        first: Some(first),
        listener,
        key: caller.key,
        project,
        tick,
        timer: Box::pin(time::sleep(tick)),
        _subscribed: service.gateway().telemetry().subscribed(),
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        UNBUFFERED,
    ];
    Ok((headers, Body::new(Streaming::new(tells))).into_response())
}

/// Returns the last event that the caller has, if he names one. The header is what
/// a client sends that connects again, with the address that it always had.
fn known(headers: &HeaderMap, param: Option<i64>) -> Result<Option<i64>, ApiError> {
    let wrong = || ApiError::bad_request("the last event id must be that of an event: a number");
    let header = match headers.get(LAST_EVENT_ID) {
        Some(value) if !value.is_empty() => {
            let text = value.to_str().map_err(|_| wrong())?;
            Some(text.parse::<i64>().map_err(|_| wrong())?)
        }
        Some(_) | None => None,
    };
    let known = header.or(param);
    if known.is_some_and(|known| known < 0) { Err(wrong()) } else { Ok(known) }
}

/// Returns an error unless this can be the name of a stream.
fn check(name: &str) -> Result<(), ApiError> {
    if (1..=LONGEST).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("a stream_id has 1 to {LONGEST} printable characters")))
}

/// Returns where a stream begins: behind what is known, else with everything there
/// is of one stream, else with what comes from now on. An id that is yet to come is
/// from another store: nothing is known of this one.
fn start(known: Option<i64>, is_one_stream: bool, extent: Extent) -> i64 {
    match known {
        Some(known) => known.min(extent.newest),
        None if is_one_stream => extent.removed,
        None => extent.newest,
    }
}

/// What is told on one connection.
struct Tells {
    first: Option<Bytes>,
    listener: Listener,
    key: KeyId,
    project: ProjectId,
    /// How often to show that the stream lives, and to look whether it may.
    tick: Duration,
    timer: Pin<Box<Sleep>>,
    /// Counts the reader for as long as there is one.
    _subscribed: Subscribed,
}

impl Tells {
    /// Returns what is sent next, and nothing at the end.
    async fn next(mut self) -> (Self, Option<Bytes>) {
        if let Some(first) = self.first.take() {
            return (self, Some(first));
        }
        loop {
            // Looked at also when there always is something to tell.
            if Instant::now() >= self.timer.deadline() {
                if !self.listener.may_go_on(self.key, self.project).await {
                    return (self, None);
                }
                self.timer.as_mut().reset(Instant::now() + self.tick);
                let heartbeat = render::heartbeat(self.listener.position());
                return (self, Some(heartbeat));
            }
            match self.listener.next(self.timer.as_mut()).await {
                Heard::Events(frames) => return (self, Some(frames)),
                Heard::Missed(removed, frames) => {
                    let told = [render::missed(removed), frames].concat();
                    return (self, Some(told.into()));
                }
                Heard::Nothing => {}
                Heard::Closed => return (self, None),
            }
        }
    }
}

/// The body of a stream. Nothing is made before the one before it was taken.
struct Streaming {
    next: Option<ReusableBoxFuture<'static, (Tells, Option<Bytes>)>>,
}

impl Streaming {
    fn new(tells: Tells) -> Self {
        Self { next: Some(ReusableBoxFuture::new(tells.next())) }
    }
}

impl hyper::body::Body for Streaming {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        match ready!(next.poll(cx)) {
            (tells, Some(bytes)) => {
                next.set(tells.next());
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            (_, None) => {
                self.next = None;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none()
    }
}
