//! The HTTP service for tests: a gateway with its scripted agent, and callers that
//! reach it over a real connection.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use reqwest::{Client, Method, Response, header::HeaderMap};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;

use super::{Phase, Service, router};
use crate::{
    clients::Clients,
    clock::Millis,
    daemon::http::{self, Http},
    gateway::testing::{self, Knobs},
    id::{KeyId, ProjectId},
    key::{KeyText, Scope},
    store::{
        Store,
        keys::{self, NewKey},
    },
};

/// The longest that anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A service and everything around it.
pub(crate) struct Rig {
    pub(crate) gateway: testing::Rig,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) service: Service,
    /// A key that may do everything.
    pub(crate) admin: String,
    pub(crate) address: SocketAddr,
    http: Http,
    client: Client,
    /// The folder that projects may lie in.
    roots: TempDir,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Null if it is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// Returns the code of the error that it is.
    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or("none")
    }

    /// Returns what was asked for, which there must be.
    #[track_caller]
    pub(crate) fn data(self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        assert!(self.body["meta"]["request_id"].is_string(), "{self:?}");
        self.body["data"].clone()
    }
}

/// A key for tests: everything that matters of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestKey {
    pub(crate) scopes: Vec<Scope>,
    pub(crate) projects: Option<Vec<ProjectId>>,
    pub(crate) networks: Option<Vec<ipnet::IpNet>>,
    pub(crate) expires_at: Option<Millis>,
}

/// Keeps a key, and returns its word.
pub(crate) async fn make_key(store: &Store, key: TestKey) -> String {
    let text = KeyText::make().unwrap();
    let TestKey { scopes, projects, networks, expires_at } = key;
    let key = NewKey {
        id: KeyId::new(),
        name: "of a test".to_owned(),
        prefix: text.prefix().to_owned(),
        hash: text.hash(),
        scopes,
        projects,
        networks,
        created_by: "a test".to_owned(),
        created_at: Millis::now(),
        expires_at,
    };
    store.must(key, |conn, key| Box::pin(keys::add(conn, key))).await;
    text.reveal().to_owned()
}

impl Rig {
    pub(crate) async fn new(store: Store) -> Self {
        Self::with(store, Knobs::default()).await
    }

    pub(crate) async fn with(store: Store, mut knobs: Knobs) -> Self {
        let roots = tempfile::Builder::new().prefix("oapi").tempdir().unwrap();
        knobs.api.roots = vec![roots.path().canonicalize().unwrap()];
        let gateway = testing::Rig::new(store, knobs).await;
        let admin = TestKey { scopes: vec![Scope::Admin], ..TestKey::default() };
        let admin = make_key(&gateway.store, admin).await;
        Self::on(gateway, admin, roots).await
    }

    /// Serves a gateway.
    async fn on(gateway: testing::Rig, admin: String, roots: TempDir) -> Self {
        let (phase, watched) = watch::channel(Phase::Ready);
        let (store, policy) = (gateway.store.clone(), gateway.policy.subscribe());
        let service = Service::new(gateway.gateway.clone(), store, policy, watched);
        let listener = http::bind("127.0.0.1:0".parse().unwrap(), http::Keys::Some).await.unwrap();
        let address = listener.local_addr().unwrap();
        let http = Http::start(listener, router(&service));
        let client = Clients::new(LIMIT).client("http://127.0.0.1/").unwrap().clone();
        Self { gateway, phase, service, admin, address, http, client, roots }
    }

    /// Stops server and gateway, and starts others on the same store.
    pub(crate) async fn again(self) -> Self {
        let Self { gateway, service, http, admin, roots, .. } = self;
        gateway.gateway.close();
        service.end_streams();
        http.stop(LIMIT).await;
        Self::on(gateway.again().await, admin, roots).await
    }

    /// Makes a folder that a project may lie in.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.roots.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Returns what the gateway was set up with, to change something of it.
    pub(crate) fn knobs(&self) -> Knobs {
        Knobs { api: self.gateway.policy.borrow().api.clone(), ..Knobs::default() }
    }

    /// Makes a key with these scopes.
    pub(crate) async fn key(&self, scopes: &[Scope]) -> String {
        let key = TestKey { scopes: scopes.to_vec(), ..TestKey::default() };
        make_key(&self.gateway.store, key).await
    }

    /// Begins a request.
    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), url).timeout(LIMIT)
    }

    /// Calls with the key that may do everything.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.call_with(&self.admin, method, path, body).await
    }

    pub(crate) async fn call_with(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let mut request = self.request(method, path).bearer_auth(key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        answer(request.send().await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, Some(body)).await
    }

    pub(crate) async fn stop(self) {
        self.gateway.gateway.close();
        self.service.end_streams();
        self.http.stop(LIMIT).await;
        self.gateway.stop().await;
    }
}

/// Reads an answer to its end.
pub(crate) async fn answer(response: Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await.unwrap();
    Answer { status, headers, body: serde_json::from_slice(&body).unwrap_or_default() }
}
