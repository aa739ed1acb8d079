//! The front door of the API: who asks, what is planned to go wrong, and how an
//! answer is written. What is done is in `routes`.

use std::{convert::Infallible, fmt, future, sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, Request, Response, header},
};
use futures_util::stream;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    Shared,
    answer::{Answer, Refusal, Reply},
    conversation,
    fault::Fault,
    media::Content,
    routes, sign, status, time, urlencoded,
    world::{self, World},
};

/// The largest body that is read at all.
const BODY: usize = 200 * 1024 * 1024;

/// Answers requests for as long as the double lives.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| handle(Arc::clone(&shared), request));
        connections.spawn(async move {
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The end of a connection without an answer.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cut on purpose")
    }
}

impl std::error::Error for Cut {}

async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if let Some(media) = path.strip_prefix("/cdn/") {
        return Ok(download(&shared, media));
    }
    let body = to_bytes(Body::new(body), BODY).await.map_err(|_| Cut)?;
    let content_type = text(&head.headers, header::CONTENT_TYPE);
    let is_form = content_type.starts_with("application/x-www-form-urlencoded");
    let asked = Asked {
        method: head.method.as_str().to_owned(),
        path,
        full: head.uri.path_and_query().map_or("/", |full| full.as_str()).to_owned(),
        query: urlencoded::decoded(head.uri.query().unwrap_or("").as_bytes()),
        form: if is_form { urlencoded::decoded(&body) } else { Vec::new() },
        content_type: content_type.to_owned(),
        body: body.to_vec(),
        authorization: text(&head.headers, header::AUTHORIZATION).to_owned(),
        tells_webhook: head.headers.get("x-twilio-webhook-enabled").is_some_and(|on| on == "true"),
    };
    let under_way = UnderWay::begin(&shared);
    let (end, begun) = shared.change(|world| world.serve(&asked));
    for one in begun {
        let shared = Arc::clone(&shared);
        match one {
            Begun::Walk(sid) => drop(tokio::runtime::Handle::current().spawn(async move {
                status::walk(&shared, &sid).await;
            })),
            Begun::Tell(sid) => drop(tokio::runtime::Handle::current().spawn(async move {
                conversation::tell(&shared, &sid).await;
            })),
        }
    }
    let end = match end {
        End::Answer(response) => Ok(response),
        End::Hold(response) => {
            let mut held = shared.held.subscribe();
            held.wait_for(|held| !*held).await.ok();
            Ok(response)
        }
        End::Cut => Err(Cut),
        End::Hang => future::pending().await,
    };
    drop(under_way);
    end
}

/// A request that is under way until this is dropped, also by a client that left.
struct UnderWay<'a>(&'a Shared);

impl<'a> UnderWay<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.change(|world| world.under_way += 1);
        Self(shared)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.change(|world| world.under_way -= 1);
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// A request as it came.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    full: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) form: Vec<(String, String)>,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    authorization: String,
    pub(super) tells_webhook: bool,
}

/// What a request began that goes on by itself.
pub(super) enum Begun {
    /// A message is on its way.
    Walk(String),
    /// The webhook of a Conversation is to be told of a message.
    Tell(String),
}

/// How a request ends.
enum End {
    Answer(Response<Body>),
    /// The answer, once it is wanted.
    Hold(Response<Body>),
    Cut,
    Hang,
}

impl World {
    fn serve(&mut self, asked: &Asked) -> (End, Vec<Begun>) {
        let mut begun = Vec::new();
        let (status, end) = self.decide(asked, &mut begun);
        self.requests.push(world::Request {
            method: asked.method.clone(),
            path: asked.full.clone(),
            form: asked.form.clone(),
            status,
            at: std::time::Instant::now(),
        });
        (end, begun)
    }

    fn decide(&mut self, asked: &Asked, begun: &mut Vec<Begun>) -> (u16, End) {
        let Some(caller) = self.caller(&asked.authorization) else {
            return self.answer(Err(Refusal::unauthorized()), None);
        };
        if self.concurrency.is_some_and(|most| self.under_way > most) {
            return self.answer(Err(Refusal::too_many()), None);
        }
        let fault = self.faults.take(&format!("{} {}", asked.method, asked.path));
        let done = match fault {
            Some(fault) if !fault.is_done() => None,
            Some(_) | None => Some(routes::route(self, caller, asked, begun)),
        };
        let (answer, retry_after) = match fault {
            None | Some(Fault::Held | Fault::Hang | Fault::Pass) => (done.unwrap(), None),
            Some(Fault::DoneButFailed(status) | Fault::Fail(status)) => {
                (Err(Refusal::server(status)), None)
            }
            Some(Fault::Refuse(status, code)) => {
                (Err(Refusal::new(status, code, format!("Refused with {code}"))), None)
            }
            Some(Fault::Limit(seconds)) => (Err(Refusal::too_many()), seconds),
            Some(Fault::DoneButCut | Fault::Cut) => return (0, End::Cut),
        };
        let (status, end) = self.answer(answer, retry_after);
        match (fault, end) {
            (Some(Fault::Hang), _) => (0, End::Hang),
            (Some(Fault::Held), End::Answer(response)) => (status, End::Hold(response)),
            (_, end) => (status, end),
        }
    }

    fn caller(&self, authorization: &str) -> Option<Caller> {
        let basic = |user: &str, secret: &str| {
            format!("Basic {}", sign::base64(format!("{user}:{secret}").as_bytes()))
        };
        let is_owner = !self.is_key_only && authorization == basic(&self.account, &self.token);
        let is_key = authorization == basic(&self.api_key.0, &self.api_key.1);
        if self.token_rejected {
            return None;
        }
        if is_owner { Some(Caller::Owner) } else { is_key.then_some(Caller::Key) }
    }

    fn answer(&self, answer: Answer, retry_after: Option<u32>) -> (u16, End) {
        let now = time::rfc2822(self.now()).replace("+0000", "GMT");
        let mut response = Response::builder()
            .header(header::DATE, now)
            .header("Twilio-Concurrent-Requests", self.under_way)
            .header("Twilio-Request-Id", world::sid("RQ"));
        if let Some(seconds) = retry_after {
            response = response.header(header::RETRY_AFTER, seconds);
        }
        let json = |response: axum::http::response::Builder, status: u16, body: &Value| {
            let response = response.status(status);
            let response = response.header(header::CONTENT_TYPE, "application/json;charset=utf-8");
            response.body(Body::from(body.to_string())).unwrap()
        };
        let (status, response) = match answer {
            Ok(Reply::Json(status, body)) => (status, json(response, status, &body)),
            Ok(Reply::Redirect(to)) => {
                let response = response.status(307).header(header::LOCATION, to);
                (307, response.body(Body::empty()).unwrap())
            }
            // What stands before Twilio's servers does not speak JSON.
            Err(Refusal { status: status @ (502 | 504), .. }) => {
                let response = response.status(status).header(header::CONTENT_TYPE, "text/html");
                (status, response.body(Body::from("<html>Bad Gateway</html>")).unwrap())
            }
            Err(refusal) => (refusal.status, json(response, refusal.status, &refusal.body())),
        };
        (status, End::Answer(response))
    }
}

/// Whose credentials a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    Owner,
    /// A standard key, which cannot do all.
    Key,
}

/// Serves media. The link is all that one needs.
fn download(shared: &Shared, sid: &str) -> Response<Body> {
    let world = shared.lock();
    let Some(media) = world.media.get(sid) else {
        return Response::builder().status(404).body(Body::empty()).unwrap();
    };
    let response = Response::builder().header(header::CONTENT_TYPE, &media.content_type);
    let body = match &media.content {
        Content::Bytes(bytes) => Body::from(bytes.to_vec()),
        Content::Endless => {
            let zeros = axum::body::Bytes::from_static(&[0; 16 * 1024]);
            Body::from_stream(stream::repeat_with(move || Ok::<_, Infallible>(zeros.clone())))
        }
        Content::Elsewhere(_) => Body::empty(),
    };
    response.body(body).unwrap()
}
