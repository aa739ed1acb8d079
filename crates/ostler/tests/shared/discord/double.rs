//! A double of Discord on loopback, written from the published protocol: the HTTP
//! API v10 and the gateway v10, with their errors and limits. It does not know the
//! gateway that is tested; voice, stickers, polls and permissions are left out.
//!
//! Tests build a small world, act in it as people do, break things, and look at
//! what the bot did. The double runs on threads of its own and stops when dropped.

mod act;
mod answer;
mod api;
mod checks;
mod command;
mod fault;
mod form;
mod gateway;
mod interaction;
mod limits;
mod look;
mod mention;
mod message;
mod messages;
mod payload;
mod place;
mod routes;
mod session;
mod thread;
mod time;
mod trouble;
mod webhook;
mod world;

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;

pub(crate) use self::{
    act::Attached,
    fault::Fault,
    interaction::InteractionState,
    limits::Bucket,
    message::{Attachment, Change, ChangeKind, Content, Message},
    world::World,
};

/// Discord, as far as a bot can see it.
pub(crate) struct Discord {
    shared: Arc<Shared>,
    api: SocketAddr,
    gateway: SocketAddr,
    runtime: Option<Runtime>,
}

/// What the threads of the double share.
struct Shared {
    world: Mutex<World>,
    changed: Condvar,
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

impl Discord {
    /// Starts one with an application, its bot, and nobody else.
    pub(crate) fn start() -> Self {
        Self::start_behind(Duration::ZERO)
    }

    /// Starts one in which everything is said to have been made so long ago.
    pub(crate) fn start_behind(behind: Duration) -> Self {
        let api = TcpListener::bind("127.0.0.1:0").unwrap();
        let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
        let (api_address, gateway_address) =
            (api.local_addr().unwrap(), gateway.local_addr().unwrap());
        let world = World::new(api_address, gateway_address, behind);
        let shared = Arc::new(Shared { world: Mutex::new(world), changed: Condvar::new() });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("discord")
            .enable_all()
            .build()
            .unwrap();
        runtime.spawn(api::serve(listener(&runtime, api), Arc::clone(&shared)));
        runtime.spawn(gateway::serve(listener(&runtime, gateway), Arc::clone(&shared)));
        Self { shared, api: api_address, gateway: gateway_address, runtime: Some(runtime) }
    }

    /// Returns where the API is, without `/api/v10`.
    pub(crate) fn api_url(&self) -> String {
        format!("http://{}", self.api)
    }

    pub(crate) fn gateway_url(&self) -> String {
        format!("ws://{}", self.gateway)
    }

    pub(crate) fn token(&self) -> String {
        self.look(|world| world.token.clone())
    }

    pub(crate) fn bot_id(&self) -> u64 {
        self.look(|world| world.bot)
    }

    pub(crate) fn application_id(&self) -> u64 {
        self.look(|world| world.application)
    }

    /// Makes a guild that the bot is a member of.
    pub(crate) fn guild(&self, name: &str) -> u64 {
        self.shared.change(|world| world.add_guild(name))
    }

    /// Makes a text channel.
    pub(crate) fn channel(&self, guild: u64, name: &str) -> u64 {
        self.shared.change(|world| world.add_channel(guild, name))
    }

    /// Returns the channel of direct messages between the bot and a user.
    pub(crate) fn direct(&self, user: u64) -> u64 {
        self.shared.change(|world| world.direct(user))
    }

    pub(crate) fn user(&self, name: &str) -> u64 {
        self.shared.change(|world| world.add_user(name, false))
    }

    /// Makes a role and gives it to a user, who becomes a member.
    pub(crate) fn give_role(&self, guild: u64, user: u64) -> u64 {
        self.shared.change(|world| world.give_role(guild, user))
    }

    /// Gives a role that there is to another user, who becomes a member.
    pub(crate) fn lend_role(&self, guild: u64, user: u64, role: u64) {
        self.shared.change(|world| world.lend_role(guild, user, role));
    }

    /// Takes a role from a member.
    pub(crate) fn take_role(&self, guild: u64, user: u64, role: u64) {
        self.shared.change(|world| world.take_role(guild, user, role));
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

    /// Blocks until the bot is connected with a session.
    pub(crate) fn wait_until_ready(&self, timeout: Duration) {
        self.wait_for("the bot is connected", timeout, |world| {
            (world.connected_sessions() > 0).then_some(())
        });
    }

    /// Does something after a while, on the double's own threads.
    fn later(&self, delay: Duration, act: impl FnOnce(&mut World) + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        let runtime = self.runtime.as_ref().unwrap();
        runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            shared.change(act);
        });
    }
}

impl Drop for Discord {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn listener(runtime: &Runtime, listener: TcpListener) -> tokio::net::TcpListener {
    listener.set_nonblocking(true).unwrap();
    let _entered = runtime.enter();
    tokio::net::TcpListener::from_std(listener).unwrap()
}
