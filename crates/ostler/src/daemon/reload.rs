//! Takes what a changed configuration says, for as long as the gateway runs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ostler_core::{failure::chain, host::Host};
use tokio::{sync::watch, time};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{
        Loaded, Reload, Settings, Watch,
        view::{Change, Effect},
    },
    gateway::policy::Policy,
};

/// How soon a configuration is tried again that is right but cannot be taken yet.
const AGAIN: Duration = Duration::from_secs(10);

/// A configuration, and what is new in it.
type New = (Box<Loaded>, Vec<Change>);

/// Follows the file. Turns that begin go by the newest configuration; what is
/// wrong changes nothing and is told.
pub(crate) async fn follow(
    mut file: Watch,
    policy: watch::Sender<Arc<Policy>>,
    host: Host,
    here: PathBuf,
    stop: CancellationToken,
) {
    // An agent that is not there yet may come; a secret may be had later.
    let mut waiting: Option<New> = None;
    loop {
        let reload = tokio::select! {
            () = stop.cancelled() => return,
            reload = file.next() => Some(reload),
            () = time::sleep(AGAIN), if waiting.is_some() => None,
        };
        let is_new = reload.is_some();
        match reload {
            Some(Reload::Broken(problems)) => {
                for problem in problems.lines() {
                    tracing::error!("the configuration stays as it was: {problem}");
                }
                continue;
            }
            Some(Reload::Changed { loaded, mut changes }) => {
                changes.extend(waiting.take().map(|(_, earlier)| earlier).unwrap_or_default());
                waiting = Some((loaded, changes));
            }
            None => {}
        }
        let Some((loaded, changes)) = waiting.take() else { continue };
        match take(*loaded.clone(), &policy, &host, &here).await {
            Ok(()) => tell(changes),
            Err(why) => {
                if is_new {
                    tracing::error!("the configuration stays as it was for now: {why}");
                }
                waiting = Some((loaded, changes));
            }
        }
    }
}

/// Tells what has changed.
fn tell(changes: Vec<Change>) {
    for Change { key, effect } in changes {
        match effect {
            Effect::Live => tracing::info!(key, "changed, from the next turn on"),
            Effect::Restart => tracing::warn!(key, "changed; it needs a restart to take effect"),
        }
    }
}

async fn take(
    loaded: Loaded,
    policy: &watch::Sender<Arc<Policy>>,
    host: &Host,
    here: &Path,
) -> Result<(), String> {
    let config = loaded.config.clone();
    let file = loaded.file.clone().map(|found| found.path);
    let settings = Settings::new(loaded, None).await.map_err(|problems| problems.to_string())?;
    let mut new = Policy::new(&config, settings, host.clone(), here.to_owned());
    new.media.take_over(&policy.borrow().media);
    new.media.private.extend(file);
    let agent = new.active_agent()?;
    if agent.server().is_none() && new.fixed_reply.is_none() {
        agent.find().map_err(|error| chain(&error))?;
    }
    policy.send_replace(Arc::new(new));
    Ok(())
}
