//! A gateway for tests: on a store of its own, with a shell script for an agent
//! that does what its prompt says and writes down how it was called.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ostler_core::{
    CliAgent, Host, HostConfig,
    agent::{self, AgentRef},
    request::{Permissions, TurnRequest},
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{sync::watch, time};

use super::{
    Gateway,
    follow::{Ending, Followed},
    gate::Rules,
    inbound::{Accepted, Details, Inbound, LOCAL, Origin, Payload, Refusal},
    policy::{Agents, Policy, RetryRules},
    text::Texts,
};
use crate::{
    archive::Keeping,
    config::{Api, Busy, Discord, Hook, Sessions, Twilio},
    hooks::Hooks,
    id::JobId,
    media, program,
    prompt::Folder,
    queue::{Capacity, Limits},
    schedule::heartbeat,
    store::{Store, conversations::Address},
    wishes::Wishes,
};

/// The longest that anything may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The gateway's own environment.
const ENVIRONMENT: [(&str, &str); 3] =
    [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent"), ("SECRET", "hidden")];

const LEASE: Duration = Duration::from_secs(30);

/// Plays Pi, or Gemini if it is called like that. `calls` gets a line for each call: the session and the prompt.
/// `system` gets the system prompt of the last call, if it had one, and `asked` a line for each model
/// and each level of thinking.
const SCRIPT: &str = r#"#!/bin/sh
here=$(dirname "$0")
prompt=$(cat)
session=new
form='{"type":"result","result":"%s","session_id":"%s"}\n'
rm -f "$here/system"
while [ $# -gt 0 ]; do
    if [ "$1" = --session ]; then session=$2; fi
    if [ "$1" = --resume ]; then session=$2; fi
    if [ "$1" = --approval-mode ]; then form='{"response":"%s","session_id":"%s"}\n'; fi
    if [ "$1" = --model ]; then echo "model $2" >> "$here/asked"; fi
    if [ "$1" = --thinking ]; then echo "thinking $2" >> "$here/asked"; fi
    if [ "$1" = --append-system-prompt ]; then cp "$2" "$here/system"; fi
    shift
done
printf '%s|%s\n' "$session" "$(printf %s "$prompt" | tr '\n' '/')" >> "$here/calls"
if [ "$session" = new ]; then
    echo x >> "$here/sessions"
    session=s$(wc -l < "$here/sessions" | tr -d ' ')
fi
answer() {
    printf "$form" "$1" "$session"
}
case "$prompt" in
    *hang*) echo > "$here/hanging"; exec sleep 1000 ;;
    *gate*) echo > "$here/hanging"; cat "$here/gate"; answer opened ;;
    *fail*) echo 'it broke' >&2; exit 7 ;;
    *stumble*) if [ ! -e "$here/up" ]; then : > "$here/up"; echo 'it broke' >&2; exit 7; fi; answer up ;;
    *lost*) if [ "$session" = s1 ]; then echo 'No session found matching s1' >&2; exit 1; fi; answer found ;;
    *) answer "$(printf %s "$prompt" | tr '\n"\\' '/..')" ;;
esac
"#;

/// A gateway and everything around it.
pub(crate) struct Rig {
    pub(crate) gateway: Gateway,
    pub(crate) policy: watch::Sender<Arc<Policy>>,
    pub(crate) store: Store,
    host: Host,
    folder: TempDir,
    knobs: Knobs,
}

/// What a test may choose.
#[derive(Clone, Debug)]
pub(crate) struct Knobs {
    pub(crate) busy: Busy,
    pub(crate) sessions: Sessions,
    pub(crate) retries: u32,
    pub(crate) depth: u32,
    pub(crate) at_once: usize,
    pub(crate) timeout: Duration,
    pub(crate) fixed_reply: Option<String>,
    pub(crate) heartbeat: heartbeat::Rules,
    /// Where agents speak that nobody asked.
    pub(crate) output: Option<Address>,
    pub(crate) texts: Texts,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) media: media::Rules,
    pub(crate) api: Api,
    pub(crate) discord: Discord,
    pub(crate) twilio: Box<Twilio>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            busy: Busy::Queue,
            sessions: Sessions::default(),
            retries: 0,
            depth: 100,
            at_once: 5,
            timeout: LIMIT,
            fixed_reply: None,
            heartbeat: heartbeat::Rules::default(),
            output: None,
            texts: Texts::default(),
            hooks: Vec::new(),
            media: media::Rules::default(),
            // Tests ask often, and from one address.
            discord: Discord::default(),
            twilio: Box::default(),
            api: Api {
                requests_per_key: 1_000_000,
                requests_per_address: 1_000_000,
                ..Api::default()
            },
        }
    }
}

/// The script, under the name of whichever agent is asked for.
struct Scripted {
    host: Host,
    folder: PathBuf,
    timeout: Duration,
}

impl Agents for Scripted {
    fn resolve(&self, name: Option<&str>) -> Result<AgentRef, String> {
        let name = name.unwrap_or("pi");
        agent::find(name).map(AgentRef::from).ok_or_else(|| format!("no agent {name:?}"))
    }

    fn availability(&self) -> Vec<(String, bool)> {
        vec![("pi".to_owned(), true)]
    }

    fn agent(&self, spec: &AgentRef) -> CliAgent {
        CliAgent::new(spec.clone(), self.host.clone()).with_program(self.folder.join("agent"))
    }

    fn prepare(&self, spec: &AgentRef, payload: &Payload) -> (CliAgent, TurnRequest) {
        let cwd = payload.wishes.cwd.as_ref().unwrap_or(&self.folder);
        let mut request = TurnRequest::new(String::new(), cwd);
        request.timeout = self.timeout;
        let permissions = payload.wishes.permissions;
        request.options.permissions = permissions.unwrap_or(Permissions::Bypass);
        request.options.model.clone_from(&payload.wishes.model);
        request.options.thinking = payload.wishes.thinking;
        request.options.allowed_tools.clone_from(&payload.wishes.allowed_tools);
        (self.agent(spec), request)
    }
}

impl Rig {
    pub(crate) async fn new(store: Store, knobs: Knobs) -> Self {
        let folder = tempfile::Builder::new().prefix("og").tempdir().unwrap();
        let script = folder.path().join("agent");
        fs::write(&script, SCRIPT).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        for pipe in ["hanging", "gate"] {
            let (kind, mode) = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
            mknodat(CWD, folder.path().join(pipe), kind, mode, 0).unwrap();
        }
        let host = host(folder.path());
        let policy = watch::Sender::new(Arc::new(policy(&knobs, &host, folder.path())));
        let gateway = Gateway::start(store.clone(), policy.subscribe(), LEASE).await.unwrap();
        Self { gateway, policy, store, host, folder, knobs }
    }

    /// Stops the gateway and starts another on the same store.
    pub(crate) async fn again(self) -> Self {
        self.stop_within(Duration::ZERO).await;
        let Self { policy, store, folder, knobs, .. } = self;
        let host = host(folder.path());
        policy.send_replace(Arc::new(self::policy(&knobs, &host, folder.path())));
        let gateway = Gateway::start(store.clone(), policy.subscribe(), LEASE).await.unwrap();
        Self { gateway, policy, store, host, folder, knobs }
    }

    /// Changes what the gateway goes by.
    pub(crate) fn change(&self, knobs: &Knobs) {
        self.policy.send_replace(Arc::new(policy(knobs, &self.host, self.folder.path())));
    }

    /// Has what is said written to a folder.
    pub(crate) fn archive_in(&self, dir: &Path) {
        let mut policy = policy(&self.knobs, &self.host, self.folder.path());
        policy.archive.dir = Some(dir.to_owned());
        self.policy.send_replace(Arc::new(policy));
    }

    pub(crate) async fn stop(self) {
        self.stop_within(LIMIT).await;
    }

    async fn stop_within(&self, grace: Duration) {
        self.gateway.stop(grace).await;
        assert!(self.host.shutdown(LIMIT).await);
    }

    pub(crate) async fn send(&self, conversation: &str, text: &str) -> Accepted {
        self.try_send(inbound(conversation, text)).await.unwrap()
    }

    pub(crate) async fn try_send(&self, inbound: Inbound) -> Result<Accepted, Refusal> {
        self.gateway.accept(inbound).await
    }

    /// Follows a job to its end; returns its events and how it ended.
    pub(crate) async fn end_of(&self, job: JobId) -> (Vec<Value>, Ending) {
        let mut follower = self.gateway.follow(job);
        let mut all = Vec::new();
        loop {
            match time::timeout(LIMIT, follower.next()).await.unwrap().unwrap() {
                Followed::Events(events) => {
                    let events = events.iter();
                    all.extend(
                        events.map(|event| serde_json::from_str(&event.event.body).unwrap()),
                    );
                }
                Followed::Ended(ending) => return (all, ending),
                Followed::Unknown => panic!("there is no such job"),
            }
        }
    }

    /// Sends a message and returns the text of its answer.
    pub(crate) async fn ask(&self, conversation: &str, text: &str) -> String {
        let Accepted { job, .. } = self.send(conversation, text).await;
        text_of(&self.end_of(job).await.1)
    }

    /// Returns how the agent was called: session and prompt.
    pub(crate) fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the agent works and will not end by itself.
    pub(crate) async fn until_hanging(&self) {
        // Its script waits for somebody who reads this.
        time::timeout(LIMIT, tokio::fs::read(self.path("hanging"))).await.unwrap().unwrap();
    }

    /// Waits until so many turns run. One gives its place up after its end was written.
    pub(crate) async fn until_running(&self, n_turns: usize) {
        time::timeout(LIMIT, self.gateway.until_running(n_turns)).await.unwrap();
    }

    /// Lets the one that waits at the gate go on.
    pub(crate) async fn open_gate(&self) {
        time::timeout(LIMIT, tokio::fs::write(self.path("gate"), "")).await.unwrap().unwrap();
    }
}

pub(crate) fn inbound(conversation: &str, text: &str) -> Inbound {
    Inbound {
        address: Address::new(LOCAL, conversation).unwrap(),
        sender: "me".to_owned(),
        message: None,
        text: text.to_owned(),
        wishes: Wishes::default(),
        origin: Origin::default(),
        details: Details::default(),
        belongs: None,
        words: None,
    }
}

/// Returns the text that a job was answered with.
pub(crate) fn text_of(ending: &Ending) -> String {
    let report: Value = serde_json::from_str(ending.report.as_ref().unwrap()).unwrap();
    report["response_text"].as_str().unwrap().to_owned()
}

fn host(folder: &Path) -> Host {
    let environment = ENVIRONMENT.map(|(name, value)| (name.into(), value.into())).into();
    let mut config = HostConfig::from_environment(environment);
    config.data_dir = folder.join("data");
    config.run_root = folder.to_owned();
    Host::new(config)
}

fn policy(knobs: &Knobs, host: &Host, folder: &Path) -> Policy {
    let limits = Limits { waiting: knobs.depth, waiting_in_lane: knobs.depth };
    let capacity = Capacity::new(limits);
    let agents = Scripted { host: host.clone(), folder: folder.to_owned(), timeout: knobs.timeout };
    Policy {
        rules: Rules {
            sessions: knobs.sessions.clone(),
            busy: knobs.busy,
            capacity,
            output: knobs.output.clone(),
        },
        retry: RetryRules { max: knobs.retries, first_delay: Duration::ZERO },
        max_concurrent_turns: knobs.at_once,
        shutdown_grace: LIMIT,
        event_retention: None,
        archive: Keeping::default(),
        outbound: None,
        fixed_reply: knobs.fixed_reply.clone(),
        heartbeat: knobs.heartbeat.clone(),
        api: knobs.api.clone(),
        discord: knobs.discord.clone(),
        twilio: knobs.twilio.clone(),
        program_environment: program::environment(
            &ENVIRONMENT.map(|(name, value)| (name.into(), value.into())).into(),
        ),
        project_agent: "pi".to_owned(),
        prompt_files: Some(Folder::new(folder.join("prompt"))),
        texts: knobs.texts.clone(),
        typing_every: None,
        hooks: Arc::new(Hooks::of(knobs.hooks.clone())),
        media: media::Rules { dir: Some(host.data_dir().join("media")), ..knobs.media.clone() },
        agents: Box::new(agents),
    }
}
