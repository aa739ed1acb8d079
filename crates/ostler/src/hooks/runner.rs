//! Runs hooks: those that somebody waits for, and those that run beside
//! everything else, which are owned here.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Hooks,
    act::{self, HookError},
    happening::Happening,
};
use crate::{
    clients::Clients,
    config::{Hook, HookAction, HookEvent},
};

/// How long it may take to get through to a URL.
const CONNECT: Duration = Duration::from_secs(5);
/// For how many happenings hooks run at once, beside everything else.
const AT_ONCE: usize = 8;
/// How many more may wait. What happens beyond that is not told.
const WAITING: usize = 100;
/// How long tasks may take to notice that they are to end.
const ENDING: Duration = Duration::from_secs(2);

/// Runs hooks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Runner {
    shared: Arc<Shared>,
}

struct Shared {
    clients: Clients,
    tasks: TaskTracker,
    /// A place for each happening that waits or whose hooks run.
    room: Arc<Semaphore>,
    at_once: Semaphore,
    stop: CancellationToken,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

impl Runner {
    pub(crate) fn new() -> Self {
        let shared = Shared {
            clients: Clients::new(CONNECT),
            tasks: TaskTracker::new(),
            room: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
            at_once: Semaphore::new(AT_ONCE),
            stop: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Runs a hook, for as long as it may take, and returns what it says.
    /// Dropping the future ends it. What goes wrong is logged here.
    pub(crate) async fn run(
        &self,
        hooks: &Hooks,
        hook: &Hook,
        happening: &Happening,
    ) -> Result<Option<String>, HookError> {
        let (name, event) = (hook.name.as_str(), happening.event.word());
        let done = match &hook.action {
            HookAction::Instruction(text) => Ok(Some(text.clone())),
            HookAction::Command(words) => {
                act::run(words, &hooks.environment, hook, happening).await
            }
            HookAction::Url(url) => act::post(&self.shared.clients, url, hook, happening).await,
        };
        match &done {
            Ok(Some(said)) if happening.event != HookEvent::BeforeTurn => {
                tracing::debug!(hook = name, event, said, "a hook said something");
            }
            Ok(_) => tracing::debug!(hook = name, event, "a hook was run"),
            Err(error) => {
                let said = error.complaint.as_deref().unwrap_or_default();
                tracing::warn!(hook = name, event, %error, said, "a hook failed");
            }
        }
        done
    }

    /// Does something about a happening that nobody waits for, unless too much
    /// of that waits already.
    pub(crate) fn beside(
        &self,
        happening: &Happening,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let Ok(place) = Arc::clone(&self.shared.room).try_acquire_owned() else {
            let (event, key) = (happening.event.word(), &happening.subject);
            tracing::warn!(event, key, waiting = WAITING, "hooks are behind; they are not told");
            return;
        };
        let shared = Arc::clone(&self.shared);
        self.shared.tasks.spawn(async move {
            let run = async {
                // Never closed.
                let _turn = shared.at_once.acquire().await;
                work.await;
            };
            shared.stop.run_until_cancelled(run).await;
            drop(place);
        });
    }

    /// Waits for what runs beside, for so long at most; the rest is ended.
    pub(crate) async fn stop(&self, limit: Duration) {
        let shared = &self.shared;
        shared.tasks.close();
        if time::timeout(limit, shared.tasks.wait()).await.is_err() {
            tracing::warn!(hooks = shared.tasks.len(), "hooks did not end in time; they are ended");
            shared.stop.cancel();
            time::timeout(ENDING, shared.tasks.wait()).await.ok();
        }
    }
}
