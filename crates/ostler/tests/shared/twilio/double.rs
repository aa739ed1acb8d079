//! A double of Twilio on loopback, written from the published API: messages with
//! their status callbacks and media, senders, typing, Conversations and the media of
//! those, and signed webhooks. All hosts of Twilio are one address here. It does not
//! know the gateway that is tested; calls, billing and scheduling are left out.
//!
//! Tests set a webhook, act as people do, break things, and look at what was sent.
//! The double runs on threads of its own and stops when dropped.

mod account;
mod act;
mod answer;
mod api;
mod checks;
mod content;
mod conversation;
mod fault;
mod gather;
mod hooks;
mod inbound;
mod look;
mod media;
mod message;
mod messages;
mod routes;
mod sign;
mod status;
mod time;
mod trouble;
mod upload;
mod urlencoded;
mod webhook;
mod world;

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{runtime::Runtime, sync::watch};

use self::sign::Signer;

pub(crate) use self::{
    fault::Fault,
    inbound::{Attached, Inbound},
    media::{Fetch, Media},
    message::{Change, ChangeKind, Message, Status},
    sign::signature,
    urlencoded::encoded,
    webhook::{Answered, Post, Purpose},
    world::{Request, World},
};

/// Twilio, as far as an account can see it.
pub(crate) struct Twilio {
    shared: Arc<Shared>,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

/// What the threads of the double share.
struct Shared {
    world: Mutex<World>,
    changed: Condvar,
    signer: Signer,
    client: reqwest::Client,
    /// Whether answers are held back that are to be.
    held: watch::Sender<bool>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, World> {
        // A test that panicked while it looked did no harm.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the world and wakes whoever waits for that.
    fn change<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let result = act(&mut self.lock());
        self.changed.notify_all();
        result
    }
}

impl Twilio {
    /// Starts one with an account, a number for WhatsApp and one for SMS.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        let client = client.pool_max_idle_per_host(0).build().unwrap();
        let shared = Arc::new(Shared {
            world: Mutex::new(World::new(address)),
            changed: Condvar::new(),
            signer: Signer::from_environment(),
            client,
            held: watch::Sender::new(true),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("twilio")
            .enable_all()
            .build()
            .unwrap();
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).unwrap()
        };
        runtime.spawn(api::serve(listener, Arc::clone(&shared)));
        Self { shared, address, runtime: Some(runtime) }
    }

    /// Returns the address that stands for every host of Twilio.
    pub(crate) fn api_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn account_sid(&self) -> String {
        self.look(|world| world.account.clone())
    }

    pub(crate) fn auth_token(&self) -> String {
        self.look(|world| world.token.clone())
    }

    /// Returns the sid and the secret of a standard API key.
    pub(crate) fn api_key(&self) -> (String, String) {
        self.look(|world| world.api_key.clone())
    }

    /// Returns the number that is a WhatsApp sender, without `whatsapp:`.
    pub(crate) fn whatsapp_number(&self) -> String {
        self.look(|world| world.whatsapp.clone())
    }

    pub(crate) fn sms_number(&self) -> String {
        self.look(|world| world.sms.clone())
    }

    /// Returns the Messaging Service that has both numbers.
    pub(crate) fn messaging_service(&self) -> String {
        self.look(|world| world.messaging_service.clone())
    }

    /// Returns the service of all Conversations.
    pub(crate) fn chat_service(&self) -> String {
        self.look(|world| world.chat_service.clone())
    }

    /// Sets where messages to both numbers are posted. A fragment such as
    /// `#rc=1&rp=all&rt=500` overrides how that is done.
    pub(crate) fn set_webhook(&self, url: &str) {
        self.shared.change(|world| world.webhook = Some(url.to_owned()));
    }

    /// Sets where what is said in Conversations is posted, if not to the webhook.
    pub(crate) fn set_conversation_webhook(&self, url: &str) {
        self.shared.change(|world| world.conversation_webhook = Some(url.to_owned()));
    }

    /// Looks at the world as it stands. Who looks must not ask the double meanwhile.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.shared.lock())
    }

    /// Blocks until the world is as described, and panics when that takes too long.
    pub(crate) fn wait_for<T>(
        &self,
        description: &str,
        timeout: Duration,
        mut look: impl FnMut(&World) -> Option<T>,
    ) -> T {
        let start = Instant::now();
        let mut world = self.shared.lock();
        loop {
            if let Some(found) = look(&world) {
                return found;
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else {
                let report = world.report();
                drop(world);
                panic!("waited {timeout:?} in vain: {description}\n{report}");
            };
            let waited = self.shared.changed.wait_timeout(world, left);
            world = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }
}

impl Drop for Twilio {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
