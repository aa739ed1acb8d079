//! The gateway as a program that runs all day: what is started in which order,
//! what is taken from a configuration that changes, and how it ends.
//!
//! Start: configuration, store (locked, brought up to date), the active agent,
//! what listens, hooks of the start, what was interrupted, work, ready, the
//! instructions of the start. Nothing is begun before everything that could stand
//! in the way was looked at. Stop: not ready, no more input, hooks of the stop, no
//! more turns (hooks and turns share a grace), hooks that run beside, the log is
//! written, replies leave, the archive is completed, kept processes end,
//! connections end, the store is closed.

mod bootstrap;
mod chats;
mod hooks;
pub(crate) mod http;
mod notify;
mod reload;
mod taken;

use std::{path::PathBuf, sync::Arc, time::Duration};

use ostler_core::{failure::chain, host::Host, registry::Agent as _};
use thiserror::Error;
use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{http::Http, notify::Notifier};
use crate::{
    api::{self, Phase, Service},
    archive::Archivist,
    channel::{Channels, notice::Notices},
    config::{Loaded, Loader, Problems, Settings, Watch, store_location},
    gateway::{
        Gateway,
        delivery::{Delivery, Pace},
        policy::Policy,
    },
    hooks::happening::Happening,
    logging,
    media::hosting::Hosting,
    outbound::folder,
    prompt,
    socket::{
        listen::{BindError, Listening},
        server::Server,
    },
    store::{Store, StoreError, Use},
};

/// How long replies may take to leave when the gateway stops.
const DELIVERY: Duration = Duration::from_secs(10);
/// How long connections may take to end.
const CONNECTIONS: Duration = Duration::from_secs(2);
/// How long the archive may take to be completed.
const ARCHIVE: Duration = Duration::from_secs(5);
/// How long kept processes may take to end.
const PROCESSES: Duration = Duration::from_secs(5);
/// How long the store may take to close.
const CLOSING: Duration = Duration::from_secs(10);
/// How many files may be open, where the system allows it: a turn has a few.
const FILES: u64 = 65_536;

/// Why a gateway did not start.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    #[error("the agent {agent} cannot be run: {why}")]
    Agent { agent: String, why: String },
    #[error("the store {place} cannot be used")]
    Store {
        place: String,
        #[source]
        source: StoreError,
    },
    #[error("the hook {hook} did not let it: {why}")]
    Hook { hook: String, why: String },
    #[error("no working directory: {0}")]
    Folder(std::io::Error),
    #[error("the bot on Discord cannot be used: {why}")]
    Discord { why: String },
    #[error("the account at Twilio cannot be used: {why}")]
    Twilio { why: String },
    #[error(transparent)]
    Listen(#[from] http::ListenError),
    #[error(transparent)]
    Socket(#[from] BindError),
}

/// What comes after a gateway has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    End,
    StartAgain,
}

/// A gateway with everything around it.
pub(crate) struct Daemon {
    gateway: Gateway,
    delivery: Delivery,
    chats: chats::Open,
    archivist: Archivist,
    store: Store,
    host: Host,
    http: Http,
    service: Service,
    socket: Server,
    phase: watch::Sender<Phase>,
    notifier: Arc<Notifier>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What a gateway is started with.
pub(crate) struct Parts {
    loaded: Loaded,
    watch: Watch,
    settings: Settings,
    location: crate::store::Location,
}

impl Parts {
    /// Reads the configuration, and starts to log as it says.
    pub(crate) async fn read(loader: Loader) -> Result<Self, Problems> {
        let (loaded, watch) = Watch::start(loader)?;
        let location = store_location(&loaded).await?;
        let settings = Settings::new(loaded.clone(), None).await?;
        logging::start(loaded.config.gateway.log_level, loaded.config.gateway.log_format);
        for warning in loaded.warnings.iter().chain(&loaded.notes) {
            tracing::warn!("{warning}");
        }
        for name in &loaded.unused {
            tracing::info!(name, "a variable is set that has no effect yet");
        }
        Ok(Self { loaded, watch, settings, location })
    }
}

impl Daemon {
    /// Starts everything. Returns when it is ready. Dropping the future ends what
    /// was begun: nothing works before the last thing that is waited for here.
    pub(crate) async fn start(parts: Parts) -> Result<Self, StartError> {
        raise_file_limit();
        let here = std::env::current_dir().map_err(StartError::Folder)?;
        let place = parts.location.to_string();
        let failed = |source| StartError::Store { place: place.clone(), source };
        let store = taken::wait_while(
            |error| matches!(error, StoreError::InUse { .. }),
            || Store::open(&parts.location, Use::Gateway),
        );
        let store = store.await.map_err(failed)?;
        let daemon = Box::pin(Self::start_on(&store, here, parts)).await;
        if daemon.is_err() {
            store.close().await;
        }
        daemon
    }

    async fn start_on(store: &Store, here: PathBuf, parts: Parts) -> Result<Self, StartError> {
        let Parts { loaded, watch, settings, .. } = parts;
        let failed = |source| StartError::Store { place: store.location().to_string(), source };
        if loaded.is_set("prompt.dir") {
            prompt::begin(loaded.prompt_dir()).await;
        }
        let file = loaded.file.map(|found| found.path);
        let config = loaded.config;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let notifier = Arc::new(Notifier::new(&settings.environment, std::process::id()));
        let host = Host::new(settings.host_config());
        let hosting = Hosting::new(host.data_dir().join("media"));
        let chats = chats::prepare(&config, &settings.environment, &hosting).await?;
        let mut policy = Policy::new(&config, settings, host.clone(), here.clone());
        chats.vouch(&mut policy.media);
        policy.media.private.extend(file);
        check_agent(&policy, &tasks).await?;
        let keys = bootstrap::look(store).await.map_err(failed)?;
        let listen = || http::bind(config.gateway.listen, keys.usable);
        let listener = taken::wait_while(http::ListenError::is_taken, listen);
        let listener = listener.await?;
        let address = listener.local_addr().unwrap_or(config.gateway.listen);
        let socket = taken::wait_while(
            |error| matches!(error, BindError::InUse(_)),
            || Listening::bind(host.data_dir()),
        );
        let socket = socket.await?;
        let started = hooks::before_start(&policy).await?;
        bootstrap::make(store, keys).await.map_err(failed)?;
        let policy = watch::Sender::new(Arc::new(policy));
        let gateway = Gateway::start(store.clone(), policy.subscribe(), config.gateway.lease);
        let gateway = gateway.await.map_err(failed)?;
        let pace = Pace::with_lease(config.gateway.lease);
        let notices = Notices::new(store.clone(), policy.subscribe());
        let channels = Channels::new().with_notices(notices);
        let (chats, channels) = chats.open(store, &policy.subscribe(), channels);
        let delivery = Delivery::start(store.clone(), channels, gateway.name(), pace);
        let archivist = Archivist::start(store.clone(), policy.subscribe(), gateway.name());
        let phase = watch::Sender::new(Phase::Starting);
        let service =
            Service::new(gateway.clone(), store.clone(), policy.subscribe(), phase.subscribe());
        let (chats, called) = chats.start(&gateway, store, &policy.subscribe());
        let called = api::called_by_others(&service, called);
        let http = Http::start(listener, api::router(&service).merge(called));
        let socket = Server::start(socket, gateway.clone());
        tasks.spawn(folder::watch(gateway.clone(), policy.subscribe(), stop.clone()));
        tasks.spawn(reload::follow(watch, policy, host.clone(), here, stop.clone()));
        tasks.spawn(watch_over(Arc::clone(&notifier), gateway.clone(), stop.clone()));
        phase.send_replace(Phase::Ready);
        notifier.ready(&format!("listening on http://{address}"));
        tracing::info!(http = %address, store = %store.location(), "ready");
        // Not waited for: what works already must be returned, so that it can be stopped.
        tasks.spawn(instruct(gateway.clone(), started, stop.clone()));
        let store = store.clone();
        Ok(Self {
            gateway,
            delivery,
            chats,
            archivist,
            store,
            host,
            http,
            service,
            socket,
            phase,
            notifier,
            tasks,
            stop,
        })
    }

    /// Waits until somebody who may wants it to start again.
    pub(crate) async fn restart_asked(&self) {
        self.gateway.restart_asked().await;
    }

    /// Stops everything, in order. Returns when nothing is left to be lost.
    pub(crate) async fn stop(self, then: Then) {
        self.phase.send_replace(Phase::Stopping);
        match then {
            Then::End => self.notifier.stopping("waiting for turns to end"),
            Then::StartAgain => self.notifier.reloading("waiting for turns to end"),
        }
        self.gateway.close();
        self.socket.close();
        let chats = self.chats.close().await;
        // Whatever runs has the same grace, hooks and turns alike.
        let deadline = Instant::now() + self.gateway.shutdown_grace();
        hooks::before_stop(&self.gateway, deadline).await;
        self.gateway.stop(deadline.saturating_duration_since(Instant::now())).await;
        self.delivery.stop(DELIVERY).await;
        chats.end().await;
        self.archivist.stop(ARCHIVE).await;
        if !self.host.shutdown(PROCESSES).await {
            tracing::warn!("some agents' processes did not end in time; they are killed");
        }
        self.socket.stop(CONNECTIONS).await;
        self.service.end_streams();
        self.http.stop(CONNECTIONS).await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        // Everything that was to be written was waited for before.
        let closed = async {
            self.service.settled().await;
            self.store.close().await;
        };
        if time::timeout(CLOSING, closed).await.is_err() {
            tracing::warn!("the store did not close in time");
        }
    }
}

/// Gives the instructions of the start, unless the gateway stops before.
async fn instruct(gateway: Gateway, started: Happening, stop: CancellationToken) {
    stop.run_until_cancelled(hooks::after_start(&gateway, &started)).await;
}

/// Tells the service manager that the gateway lives, for as long as it does.
async fn watch_over(notifier: Arc<Notifier>, gateway: Gateway, stop: CancellationToken) {
    stop.run_until_cancelled(notifier.feed_watchdog(|| gateway.is_well())).await;
}

/// Looks whether the agent can be run that answers. Its version is read behind
/// the scenes.
async fn check_agent(policy: &Policy, tasks: &TaskTracker) -> Result<(), StartError> {
    if policy.fixed_reply.is_some() {
        return Ok(());
    }
    let agent = policy
        .active_agent()
        .map_err(|why| StartError::Agent { agent: "that is configured".to_owned(), why })?;
    let name = agent.spec().name.to_string();
    let unusable = |why: String| StartError::Agent { agent: name.clone(), why };
    if agent.server().is_some() {
        agent.validate().await.map_err(|error| unusable(chain(&error)))?;
        return Ok(());
    }
    let path = agent.find().map_err(|error| unusable(chain(&error)))?;
    tasks.spawn(async move {
        match agent.validate().await {
            Ok(health) => {
                let version = health.version.as_deref().unwrap_or("unknown");
                tracing::info!(agent = name, path = %path.display(), version, "the agent is there");
                if let Some(warning) = health.warning {
                    tracing::warn!(agent = name, "{warning}");
                }
            }
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(agent = name, path = %path.display(), error, "the agent's version cannot be read");
            }
        }
    });
    Ok(())
}

/// Lets this process have more files open, as far as the system allows it.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(FILES, |maximum| maximum.min(FILES));
    if current.is_some_and(|current| current < wanted) {
        let limit = Rlimit { current: Some(wanted), maximum };
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the number of open files stays as it is");
        }
    }
}
