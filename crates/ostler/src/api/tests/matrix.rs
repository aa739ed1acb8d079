//! Who may call what: every operation of the OpenAPI document with every sort of
//! key. What an operation asks for is read from the document, so that both the
//! document and the handler must be right.
//!
//! A new operation needs a line in [`CASES`]: what it is sent, and what becomes of
//! a key with the right scope that is for another project. Names in a path are
//! filled in by [`World::path`]; one that is new needs a line there.

use serde_json::{Value, json};

use crate::{
    api::{
        permissions::tests::asked,
        routes,
        testing::{Answer, Rig, TestKey, answer, make_key},
    },
    clock::Millis,
    config::Api,
    gateway::testing::Knobs,
    id::{CommandId, KeyId, PermissionId, ProjectId, TurnId, WebhookId},
    key::{KeyText, Scope},
    store::{
        Store, keys,
        projects::{self, Project},
        testing::on_both,
    },
};

/// What anybody may call.
const OPEN: &[&str] =
    &["GET /health", "GET /ready", "GET /openapi.json", "GET /docs", "GET /media/{token}"];

/// What becomes of a key with the right scope that is for another project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elsewhere {
    /// It has nothing to do with projects, or what is not seen is left out.
    Allowed,
    /// What it is asked for is not there for it.
    NotFound,
    /// It is about all projects.
    Forbidden,
}
use Elsewhere::{Allowed, Forbidden, NotFound};

/// An operation, what it is sent, and what becomes of a key for another project.
type Case = (&'static str, fn(&World) -> Value, Elsewhere);

const CASES: &[Case] = &[
    ("POST /keys", |_| json!({ "name": "new", "scopes": ["keys:write"] }), Allowed),
    ("GET /keys", nothing, Allowed),
    ("GET /keys/{key}", nothing, NotFound),
    ("DELETE /keys/{key}", nothing, NotFound),
    ("GET /audit", nothing, Forbidden),
    ("GET /metrics", nothing, Forbidden),
    ("GET /agents", nothing, Allowed),
    ("GET /agents/default", nothing, Allowed),
    ("PUT /agents/default", |_| json!({ "agent_provider": "pi" }), Forbidden),
    ("GET /agents/{agent}", nothing, Allowed),
    ("GET /agents/{agent}/health", nothing, Allowed),
    ("GET /projects", nothing, Allowed),
    ("POST /projects", |world| json!({ "name": "new", "directory": world.directory }), Forbidden),
    ("GET /projects/{project}", nothing, NotFound),
    ("PATCH /projects/{project}", |_| json!({ "name": "renamed" }), NotFound),
    ("DELETE /projects/{project}", nothing, NotFound),
    ("POST /projects/{project}/prompt", |_| json!({ "prompt": "hello" }), NotFound),
    ("POST /projects/{project}/claude", |_| json!({ "prompt": "hello" }), NotFound),
    ("POST /projects/{project}/shell", |_| json!({ "command": "true" }), NotFound),
    ("POST /projects/{project}/git", |_| json!({ "args": ["status"] }), NotFound),
    ("GET /projects/{project}/events", nothing, NotFound),
    ("GET /projects/{project}/commands", nothing, NotFound),
    ("GET /projects/{project}/commands/{command}", nothing, NotFound),
    ("GET /projects/{project}/commands/{command}/events", nothing, NotFound),
    ("POST /projects/{project}/commands/{command}/cancel", nothing, NotFound),
    ("GET /projects/{project}/turns", nothing, NotFound),
    ("GET /projects/{project}/turns/{turn}", nothing, NotFound),
    ("GET /projects/{project}/permissions", nothing, NotFound),
    (
        "POST /projects/{project}/permissions/{permission}",
        |_| json!({ "decision": "deny" }),
        NotFound,
    ),
    ("GET /webhooks", nothing, Allowed),
    ("POST /webhooks", webhook, NotFound),
    ("GET /webhooks/{webhook}", nothing, NotFound),
    ("DELETE /webhooks/{webhook}", nothing, NotFound),
    ("GET /webhooks/{webhook}/deliveries", nothing, NotFound),
];

fn nothing(_: &World) -> Value {
    Value::Null
}

fn webhook(world: &World) -> Value {
    let (url, events) = ("https://example.org/", ["command.completed"]);
    json!({ "url": url, "events": events, "project_id": world.project })
}

/// What there is for an operation: its own, for it may be the one that deletes it.
#[derive(Clone)]
struct World {
    project: ProjectId,
    other: ProjectId,
    key: KeyId,
    webhook: WebhookId,
    /// These cost the run of an agent: they are there if the operation names one.
    command: CommandId,
    turn: TurnId,
    permission: PermissionId,
    /// A folder that a project may lie in.
    directory: String,
}

impl World {
    /// Makes everything that an operation names.
    async fn new(rig: &Rig, name: &str, operation: &str) -> Self {
        let store = &rig.gateway.store;
        let directory = rig.folder(name).display().to_string();
        let mut world = Self {
            project: ProjectId::new(),
            other: ProjectId::new(),
            key: KeyId::new(),
            webhook: WebhookId::new(),
            command: CommandId::new(),
            turn: TurnId::new(),
            permission: PermissionId::new(),
            directory,
        };
        world.add(store, world.project, name).await;
        world.add(store, world.other, &format!("other-{name}")).await;
        let key = TestKey {
            scopes: vec![Scope::ProjectsRead],
            projects: Some(vec![world.project]),
            ..TestKey::default()
        };
        world.key = key_id(store, &make_key(store, key).await).await;
        world.webhook = id(&rig.post("/webhooks", webhook(&world)).await.data()["id"]);
        if ["{command}", "{turn}", "{permission}"].iter().any(|name| operation.contains(name)) {
            let path = format!("/projects/{}", world.project);
            let prompt = json!({ "prompt": "hello" });
            let over = rig.post(&format!("{path}/prompt?wait=60s"), prompt).await.data();
            world.command = id(&over["id"]);
            world.turn = id(&rig.get(&format!("{path}/turns")).await.data()[0]["id"]);
            world.permission = asked(rig, world.project, 1, 600).await;
        }
        world
    }

    async fn add(&self, store: &Store, id: ProjectId, name: &str) {
        let project = Project {
            id,
            name: name.to_owned(),
            directory: self.directory.clone(),
            agent: None,
            settings: projects::ProjectSettings::default(),
            created_at: Millis::now(),
            updated_at: Millis::now(),
        };
        let is_new = store.must(project, |conn, new| Box::pin(projects::add(conn, new))).await;
        assert!(is_new, "{name}");
    }

    /// Fills in the names.
    fn path(&self, template: &str) -> String {
        template
            .replace("{project}", &self.project.to_string())
            .replace("{key}", &self.key.to_string())
            .replace("{agent}", "pi")
            .replace("{command}", &self.command.to_string())
            .replace("{turn}", &self.turn.to_string())
            .replace("{permission}", &self.permission.to_string())
            .replace("{webhook}", &self.webhook.to_string())
    }
}

/// Reads an id that an answer has.
#[track_caller]
fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(told: &Value) -> T {
    told.as_str().unwrap_or_else(|| panic!("{told}")).parse().unwrap()
}

async fn key_id(store: &Store, word: &str) -> KeyId {
    let prefix = KeyText::read(word).unwrap().prefix().to_owned();
    let found = store.read(prefix, |conn, prefix| Box::pin(keys::find_by_prefix(conn, prefix)));
    let found: Result<_, crate::store::StoreError> = found.await;
    found.unwrap().unwrap().key.id
}

/// Returns the operations of the document, each with the scope that it asks for.
fn operations() -> Vec<(String, Option<Scope>)> {
    let (_, document) = routes().split_for_parts();
    let document = serde_json::to_value(document).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{} {path}", method.to_uppercase());
            let scopes = operation["security"][0]["key"].as_array();
            let scope = scopes.map(|scopes| {
                assert_eq!(scopes.len(), 1, "{name} asks for one scope");
                serde_json::from_value(scopes[0].clone()).unwrap()
            });
            let requirements = operation["security"].as_array().map_or(0, Vec::len);
            assert_eq!(requirements, usize::from(scope.is_some()), "{name}: {operation}");
            operations.push((name, scope));
        }
    }
    operations
}

/// A caller who comes from wherever he says, so that nobody is limited.
struct Asker<'a> {
    rig: &'a Rig,
    world: &'a World,
    name: &'a str,
    body: Value,
}

impl Asker<'_> {
    /// Calls with a key, or without. The body of an answer that was allowed is not
    /// read: it may never end.
    async fn ask(&self, key: Option<&str>, from: &str) -> Answer {
        let (method, template) = self.name.split_once(' ').unwrap();
        let request = self.rig.request(method, &self.world.path(template));
        let mut request = request.header("X-Forwarded-For", from);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if !self.body.is_null() {
            request = request.json(&self.body);
        }
        let response = request.send().await.unwrap();
        if response.status().is_success() {
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            return Answer { status, headers, body: Value::Null };
        }
        answer(response).await
    }

    async fn refused(&self, key: Option<&str>, from: &str, status: u16, code: &str) {
        let answer = self.ask(key, from).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{}: {answer:?}", self.name);
        assert!(answer.body["meta"]["request_id"].is_string(), "{answer:?}");
    }

    /// It gets as far as what it asks for, which is there.
    async fn allowed(&self, key: &str) {
        let answer = self.ask(Some(key), "10.0.0.1").await;
        let is_allowed = !matches!(answer.status, 400..=404 | 415 | 429 | 500..);
        assert!(is_allowed, "{}: {answer:?}", self.name);
    }
}

#[test]
fn every_operation_is_open_on_purpose_or_has_a_case() {
    let operations = operations();
    for (name, scope) in &operations {
        let has_case = CASES.iter().any(|(case, ..)| case == name);
        match scope {
            Some(_) => assert!(has_case, "add a line for `{name}` to CASES in {}", file!()),
            None => assert!(OPEN.contains(&name.as_str()), "anybody may call {name}"),
        }
    }
    for (case, ..) in CASES {
        let is_there = operations.iter().any(|(name, scope)| name == case && scope.is_some());
        assert!(is_there, "{case} is no operation with a key");
    }
}

on_both! {
    async fn only_the_right_keys_open_each_operation(store: Store) {
        let trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        let shell = vec!["true".to_owned()];
        let api = Api { trusted_proxies, shell, ..Knobs::default().api };
        let rig = Rig::with(store, Knobs { api, ..Knobs::default() }).await;
        for (number, (name, scope)) in operations().into_iter().enumerate() {
            let Some(scope) = scope else { continue };
            let (_, body, elsewhere) = CASES.iter().find(|(case, ..)| *case == name).unwrap();
            check(&rig, number, &name, scope, *body, *elsewhere).await;
        }
        rig.stop().await;
    }
}

async fn check(
    rig: &Rig,
    number: usize,
    name: &str,
    scope: Scope,
    body: fn(&World) -> Value,
    elsewhere: Elsewhere,
) {
    let world = World::new(rig, &format!("p{number}"), name).await;
    let asker = Asker { rig, world: &world, name, body: body(&world) };
    let store = &rig.gateway.store;
    // Where failures are counted: an address for each operation.
    let from = format!("10.1.0.{number}");
    let all = TestKey { scopes: Scope::ALL.to_vec(), ..TestKey::default() };
    asker.refused(None, &from, 401, "UNAUTHORIZED").await;
    for garbage in ["", "x", "ost_", KeyText::make().unwrap().reveal()] {
        asker.refused(Some(garbage), &from, 401, "UNAUTHORIZED").await;
    }
    let revoked = make_key(store, all.clone()).await;
    let found = key_id(store, &revoked).await;
    store
        .must(found, |conn, id| {
            Box::pin(async move {
                let key = keys::find(conn, *id).await?.unwrap();
                keys::revoke(conn, key, Millis::now()).await
            })
        })
        .await;
    asker.refused(Some(&revoked), &from, 401, "KEY_REVOKED").await;
    let expired = make_key(store, TestKey { expires_at: Some(Millis(1)), ..all.clone() }).await;
    asker.refused(Some(&expired), &from, 401, "KEY_EXPIRED").await;
    let networks = Some(vec!["10.2.0.0/16".parse().unwrap()]);
    let local = make_key(store, TestKey { networks, ..all }).await;
    asker.refused(Some(&local), &from, 403, "IP_NOT_ALLOWED").await;
    let single = |scope, projects| TestKey { scopes: vec![scope], projects, ..TestKey::default() };
    for wrong in Scope::ALL.into_iter().filter(|wrong| *wrong != scope && *wrong != Scope::Admin) {
        let key = make_key(store, single(wrong, None)).await;
        asker.refused(Some(&key), &from, 403, "FORBIDDEN").await;
    }
    let stranger = make_key(store, single(scope, Some(vec![world.other]))).await;
    match elsewhere {
        Allowed => asker.allowed(&stranger).await,
        NotFound => asker.refused(Some(&stranger), &from, 404, "NOT_FOUND").await,
        Forbidden => asker.refused(Some(&stranger), &from, 403, "FORBIDDEN").await,
    }
    // What is in one project is not there in another, for those who may ask there.
    if name.matches('{').count() > 1 {
        let moved = World { project: world.other, ..world.clone() };
        let asker = Asker { rig, world: &moved, name, body: body(&moved) };
        asker.refused(Some(&stranger), &from, 404, "NOT_FOUND").await;
    }
    // Each on its own, for it may be the operation that ends it all.
    for (nth, right) in [scope, Scope::Admin].into_iter().enumerate() {
        let world = World::new(rig, &format!("p{number}-{nth}"), name).await;
        let asker = Asker { rig, world: &world, name, body: body(&world) };
        asker.allowed(&make_key(store, single(right, None)).await).await;
    }
}
