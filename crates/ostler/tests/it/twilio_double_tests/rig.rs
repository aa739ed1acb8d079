//! A double, a client of its API, and a server that it can post to and fetch from.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    http::{Request, Response},
};
use reqwest::{Method, redirect};
use serde_json::Value;
use tokio::{runtime::Runtime, task::JoinHandle};

use crate::{
    support::LIMIT,
    twilio_double::{Twilio, encoded},
};

pub(super) const ADA: &str = "whatsapp:+4915112345678";
pub(super) const BOB: &str = "+15005550006";

pub(super) struct Rig {
    pub(super) twilio: Twilio,
    pub(super) server: Server,
    client: reqwest::Client,
    runtime: Runtime,
}

/// What a request was answered with.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) bytes: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    /// Returns the status and the code of an error.
    pub(super) fn code(&self) -> (u16, u64) {
        let json = self.json();
        assert_eq!(json["status"], self.status);
        let code = json["code"].as_u64().unwrap();
        assert_eq!(json["more_info"], format!("https://www.twilio.com/docs/errors/{code}"));
        (self.status, code)
    }
}

impl Rig {
    pub(super) fn new() -> Self {
        let twilio = Twilio::start();
        let runtime = Runtime::new().unwrap();
        let server = Server::start(&runtime);
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .redirect(redirect::Policy::none())
            .timeout(LIMIT)
            .build()
            .unwrap();
        Self { twilio, server, client, runtime }
    }

    /// Sends a request as the owner of the account.
    pub(super) fn call(&self, method: Method, path: &str, form: &[(&str, &str)]) -> Answer {
        let (user, password) = (self.twilio.account_sid(), self.twilio.auth_token());
        self.call_as(&user, &password, method, path, form).unwrap()
    }

    pub(super) fn call_as(
        &self,
        user: &str,
        password: &str,
        method: Method,
        path: &str,
        form: &[(&str, &str)],
    ) -> reqwest::Result<Answer> {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{}{path}", self.twilio.api_url())
        };
        let mut request = self.client.request(method, url);
        if !user.is_empty() {
            request = request.basic_auth(user, Some(password));
        }
        if !form.is_empty() {
            let kind = "application/x-www-form-urlencoded";
            request = request.header("content-type", kind).body(encoded(&owned(form)));
        }
        self.runtime.block_on(answer(request))
    }

    /// Sends a form and asks for the webhook to be told.
    pub(super) fn call_telling(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let url = format!("{}{path}", self.twilio.api_url());
        let (user, password) = (self.twilio.account_sid(), self.twilio.auth_token());
        let request = self.client.post(url).basic_auth(user, Some(password));
        let request = request.header("x-twilio-webhook-enabled", "true");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        self.runtime.block_on(answer(request.body(encoded(&owned(form))))).unwrap()
    }

    /// Sends a request, and returns when it came, before its answer.
    pub(super) fn begin(&self, path: &str) -> JoinHandle<()> {
        let url = format!("{}{path}", self.twilio.api_url());
        let (user, password) = (self.twilio.account_sid(), self.twilio.auth_token());
        let request = self.client.get(url).basic_auth(user, Some(password));
        let asked = self.runtime.spawn(async move { drop(request.send().await) });
        self.twilio.wait_for("the request came", LIMIT, |world| {
            (!world.requests().is_empty()).then_some(())
        });
        asked
    }

    /// Sends a body as it is.
    pub(super) fn upload(&self, path: &str, kind: &str, bytes: &[u8]) -> Answer {
        let url = format!("{}{path}", self.twilio.api_url());
        let request = self.client.post(url).header("content-type", kind).body(bytes.to_vec());
        let (user, password) = (self.twilio.account_sid(), self.twilio.auth_token());
        self.runtime.block_on(answer(request.basic_auth(user, Some(password)))).unwrap()
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &[])
    }

    pub(super) fn send(&self, form: &[(&str, &str)]) -> Answer {
        self.call(Method::POST, &self.path("/Messages.json"), form)
    }

    /// Sends a message by the number that fits, and returns its id.
    pub(super) fn sent(&self, to: &str, more: &[(&str, &str)]) -> String {
        let from = self.ours(to);
        let form: Vec<(&str, &str)> =
            [("To", to), ("From", &from)].into_iter().chain(more.iter().copied()).collect();
        let answer = self.send(&form);
        assert_eq!(answer.status, 201, "{}", answer.json());
        answer.json()["sid"].as_str().unwrap().to_owned()
    }

    pub(super) fn ours(&self, to: &str) -> String {
        match to.starts_with("whatsapp:") {
            true => format!("whatsapp:{}", self.twilio.whatsapp_number()),
            false => self.twilio.sms_number(),
        }
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/2010-04-01/Accounts/{}{rest}", self.twilio.account_sid())
    }

    /// Waits until a message is at its end, and returns the status and the error.
    pub(super) fn ended(&self, sid: &str) -> (&'static str, Option<u32>) {
        self.twilio.wait_for("the message ended", LIMIT, |world| {
            let message = world.message(sid)?;
            let name = message.status.name();
            let is_end = matches!(name, "failed" | "undelivered" | "read")
                || name == "delivered" && !message.is_whatsapp();
            is_end.then_some((name, message.error))
        })
    }
}

async fn answer(request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let headers = response.headers().iter();
    let text = |value: &reqwest::header::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
    Ok(Answer { status, headers, bytes: response.bytes().await?.to_vec() })
}

pub(super) fn owned(form: &[(&str, &str)]) -> Vec<(String, String)> {
    form.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A server that keeps what it is asked.
pub(super) struct Server {
    url: String,
    state: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    heard: Vec<Heard>,
    /// The statuses that the next posts are answered with.
    statuses: VecDeque<u16>,
    /// Whether posts are never answered.
    is_silent: bool,
    files: BTreeMap<String, (String, Vec<u8>)>,
}

/// A request to the server.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Server {
    fn start(runtime: &Runtime) -> Self {
        let state = Arc::new(Mutex::new(Kept::default()));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(hear).with_state(Arc::clone(&state));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, state }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(super) fn heard(&self, method: &str) -> Vec<Heard> {
        let state = self.state.lock().unwrap();
        state.heard.iter().filter(|heard| heard.method == method).cloned().collect()
    }

    pub(super) fn answer_next(&self, statuses: &[u16]) {
        self.state.lock().unwrap().statuses.extend(statuses);
    }

    pub(super) fn never_answer(&self) {
        self.state.lock().unwrap().is_silent = true;
    }

    /// Serves a file, and returns its address.
    pub(super) fn file(&self, path: &str, kind: &str, bytes: &[u8]) -> String {
        let file = (kind.to_owned(), bytes.to_vec());
        self.state.lock().unwrap().files.insert(path.to_owned(), file);
        self.url(path)
    }
}

async fn hear(State(state): State<Arc<Mutex<Kept>>>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1024 * 1024).await.unwrap();
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    let heard = Heard {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: headers.collect(),
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    let is_post = heard.method == "POST";
    let (status, is_silent, file) = {
        let mut state = state.lock().unwrap();
        let file = state.files.get(head.uri.path()).cloned();
        state.heard.push(heard);
        (state.statuses.pop_front(), state.is_silent, file)
    };
    if is_post {
        if is_silent {
            std::future::pending::<()>().await;
        }
        let response = Response::builder().status(status.unwrap_or(200));
        return response.header("content-type", "text/xml").body("<Response/>".into()).unwrap();
    }
    match file {
        Some((kind, bytes)) => {
            let name = "inline; filename=\"horse.png\"";
            let response = Response::builder().header("content-type", kind);
            response.header("content-disposition", name).body(bytes.into()).unwrap()
        }
        None => Response::builder().status(404).body(Body::empty()).unwrap(),
    }
}
