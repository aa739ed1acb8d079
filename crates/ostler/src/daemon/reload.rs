//! Takes what a changed configuration says, for as long as the gateway runs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ostler_core::{failure::chain, host::Host};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{
        Loaded, Reload, Settings, Watch,
        view::{Change, Effect},
    },
    gateway::policy::Policy,
};

/// Follows the file. Turns that begin go by the newest configuration; what is
/// wrong changes nothing and is told.
pub(crate) async fn follow(
    mut file: Watch,
    policy: watch::Sender<Arc<Policy>>,
    host: Host,
    here: PathBuf,
    stop: CancellationToken,
) {
    while let Some(reload) = stop.run_until_cancelled(file.next()).await {
        match reload {
            Reload::Broken(problems) => {
                for problem in problems.lines() {
                    tracing::error!("the configuration stays as it was: {problem}");
                }
            }
            Reload::Changed { loaded, changes } => {
                if let Err(why) = take(*loaded, &policy, &host, &here).await {
                    tracing::error!("the configuration stays as it was: {why}");
                    continue;
                }
                for Change { key, effect } in changes {
                    match effect {
                        Effect::Live => tracing::info!(key, "changed, from the next turn on"),
                        Effect::Restart => {
                            tracing::warn!(key, "changed; it needs a restart to take effect");
                        }
                    }
                }
            }
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
    let settings = Settings::new(loaded, None).await.map_err(|problems| problems.to_string())?;
    let new = Policy::new(&config, settings, host.clone(), here.to_owned());
    let agent = new.active_agent()?;
    if agent.server().is_none() && new.fixed_reply.is_none() {
        agent.find().map_err(|error| chain(&error))?;
    }
    policy.send_replace(Arc::new(new));
    Ok(())
}
