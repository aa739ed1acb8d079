//! The front door of the HTTP API: who asks, what is planned to go wrong, which
//! limits are reached, and how an answer is written. What is done is in `routes`.

use std::{future, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Query, State},
    http::{HeaderMap, Request, Response, header},
};
use futures_util::stream;
use tokio::net::TcpListener;

use super::{
    Shared,
    answer::{Answer, Refusal, Reply},
    fault::Fault,
    form::Form,
    limits::{Bucket, Headers, Limited},
    message::{Attachment, Content},
    routes,
    world::World,
};

/// The largest body that is read at all.
const BODY: usize = 25 * 1024 * 1024;

/// Answers requests for as long as the double lives.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let router = Router::new().fallback(handle).with_state(shared);
    axum::serve(listener, router).await.ok();
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<Vec<(String, String)>>,
    request: Request<Body>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let (method, path) = (head.method.as_str().to_owned(), head.uri.path().to_owned());
    if let Some(attachment) = path.strip_prefix("/attachments/") {
        return download(&shared, attachment);
    }
    let body = to_bytes(body, BODY).await;
    let full = head.uri.path_and_query().map_or(path.as_str(), |full| full.as_str()).to_owned();
    let form = match body {
        Ok(body) => Form::read(text(&head.headers, header::CONTENT_TYPE), &body),
        Err(_) => Err(Refusal::too_large()),
    };
    let token = text(&head.headers, header::AUTHORIZATION).to_owned();
    let asked = Asked { method, path, full, query, form, token };
    let (response, afterwards) = shared.change(|world| world.serve(asked));
    match afterwards {
        Afterwards::Answer => {}
        Afterwards::Hang => future::pending().await,
    }
    response
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// A request as it came.
struct Asked {
    method: String,
    path: String,
    full: String,
    query: Vec<(String, String)>,
    form: Result<Form, Refusal>,
    token: String,
}

/// What happens after a request was done.
enum Afterwards {
    Answer,
    Hang,
}

impl World {
    fn serve(&mut self, asked: Asked) -> (Response<Body>, Afterwards) {
        let (method, full) = (asked.method.clone(), asked.full.clone());
        let (answer, headers, afterwards) = self.decide(asked);
        let (status, body) = match answer {
            Ok(Reply { status, body }) => (status, body),
            Err(Refusal { status, body }) => (status, Some(body)),
        };
        self.limited += usize::from(status == 429);
        self.requests.push((method, full, status));
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        if body.is_some() {
            response = response.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        (response.body(body).unwrap(), afterwards)
    }

    fn decide(&mut self, asked: Asked) -> (Answer, Headers, Afterwards) {
        let at_once = |answer| (answer, Headers::new(), Afterwards::Answer);
        let Some(path) = asked.path.strip_prefix("/api/") else {
            return at_once(Err(Refusal::not_found()));
        };
        let Some(path) = path.strip_prefix("v10/") else {
            return at_once(Err(Refusal::api_version()));
        };
        let decoded = decoded(path);
        let parts: Vec<&str> = decoded.split('/').collect();
        let is_bot = !self.token_rejected && asked.token == format!("Bot {}", self.token);
        if !is_bot && !routes::is_open(&parts) {
            return at_once(Err(Refusal::unauthorized()));
        }
        let counted = counted(&asked.method, &parts);
        for (bucket, of) in &counted {
            if let Err(too_early) = self.limits.heed(*bucket, of) {
                return limited(too_early);
            }
        }
        let fault = self.faults.take(&format!("{} /{path}", asked.method));
        match fault {
            Some(Fault::Limit { retry_after, global }) => {
                let told = counted.iter().find(|(bucket, _)| (*bucket == Bucket::Global) == global);
                if let Some((bucket, of)) = told {
                    self.limits.pause(*bucket, of, retry_after);
                }
                return limited(Limited::planned(retry_after, global));
            }
            Some(Fault::Fail(status)) => return at_once(Err(Refusal::server(status))),
            Some(Fault::DoneButFailed(_) | Fault::Hang) | None => {}
        }
        let mut headers = Headers::new();
        for (bucket, of) in counted {
            match self.limits.count(bucket, of) {
                Ok(told) => headers.extend(told),
                Err(too_many) => return limited(too_many),
            }
        }
        let answer = asked.form.and_then(|form| {
            let (method, path, query) = (asked.method.as_str(), &parts[..], &asked.query[..]);
            self.route(&routes::Request { method, path, query, form: &form })
        });
        match fault {
            Some(Fault::DoneButFailed(status)) => at_once(Err(Refusal::server(status))),
            Some(Fault::Hang) => (answer, headers, Afterwards::Hang),
            Some(Fault::Limit { .. } | Fault::Fail(_)) | None => {
                (answer, headers, Afterwards::Answer)
            }
        }
    }

    fn attachment(&self, channel: u64, id: u64) -> Option<&Attachment> {
        let messages = self.messages.get(&channel)?;
        messages.values().flat_map(|message| &message.attachments).find(|one| one.id == id)
    }
}

/// Returns among what a request counts, and whose that is.
fn counted<'a>(method: &str, path: &[&'a str]) -> Vec<(Bucket, &'a str)> {
    // What belongs to interactions is not bound to the limit of all requests.
    let is_free = matches!(path, ["interactions" | "webhooks", ..]);
    let all = (!is_free).then_some((Bucket::Global, ""));
    all.into_iter().chain(routes::bucket(method, path)).collect()
}

fn limited(too_many: Limited) -> (Answer, Headers, Afterwards) {
    (Err(too_many.refusal()), too_many.headers, Afterwards::Answer)
}

/// Serves an attachment by `channel/id/name`. The link is all that one needs.
fn download(shared: &Shared, path: &str) -> Response<Body> {
    let mut parts = path.split('/').map(|part| part.parse().unwrap_or(0));
    let (channel, id) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let world = shared.lock();
    let Some(attachment) = world.attachment(channel, id) else {
        return Response::builder().status(404).body(Body::empty()).unwrap();
    };
    let body = match &attachment.content {
        Content::Bytes(bytes) => Body::from(bytes.to_vec()),
        Content::Endless => {
            let zeros = axum::body::Bytes::from_static(&[0; 16 * 1024]);
            Body::from_stream(stream::repeat_with(move || Ok::<_, std::io::Error>(zeros.clone())))
        }
    };
    let content_type = attachment.content_type();
    Response::builder().header(header::CONTENT_TYPE, content_type).body(body).unwrap()
}

/// Takes the percent signs out of a path.
fn decoded(path: &str) -> String {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or("").as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let plain = if code.is_some() { &part[2..] } else { part };
        bytes.extend(code);
        bytes.extend(plain.bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
