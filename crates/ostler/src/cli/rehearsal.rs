//! A stage on which real CLIs run without a login: a throw-away folder, a host
//! that keeps everything in it, and the simulated model.
//!
//! What is played on it, and what is made of it, is the business of `demo` and
//! of `doctor --live`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_core::{
    Host, HostConfig, TurnRequest, agent::AgentSpec, environment::Variables, run_dir::RunDir,
};
use ostler_sim::model::{self, Sim};

use crate::config::Settings;

/// A prompt that makes the model read a file, which every agent may do without
/// being asked.
pub(crate) const READ: &str = "What does notes.txt say? sim:read=notes.txt";
/// A prompt that makes the model tell what it remembers.
pub(crate) const REMEMBER: &str = "How many prompts have I sent you so far? sim:history";
/// What the file says.
pub(crate) const NOTES: &str = "An ostler looks after the horses of an inn.";

/// How long running turns may take to end when the stage is left.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// The stage. Its folder is gone when it is dropped.
pub(crate) struct Stage {
    pub(crate) setting: Setting,
    pub(crate) sim: Sim,
    _folder: RunDir,
}

/// What those on the stage see of it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) host: Host,
    pub(crate) folder: PathBuf,
    model: String,
}

impl Stage {
    /// Sets the stage up.
    pub(crate) async fn set(settings: &Settings) -> io::Result<Self> {
        let mut config = HostConfig::from_environment(without_accounts(settings));
        let folder = folder(&config.run_root)?;
        config.data_dir = folder.path().join("data");
        let sim = Sim::start(model::Options::default()).await?;
        let model = sim.base_url();
        let setting = Setting { host: Host::new(config), folder: folder.path().to_owned(), model };
        Ok(Self { setting, sim, _folder: folder })
    }

    /// Ends what runs and clears the stage.
    pub(crate) async fn clear(self) {
        self.setting.host.shutdown(CLEAN_UP).await;
        self.sim.stop().await;
    }
}

impl Setting {
    /// Returns a request of an agent that has a home of its own here.
    pub(crate) fn request(&self, spec: &AgentSpec, prompt: &str) -> TurnRequest {
        let mut request = TurnRequest::new(prompt, self.folder.join("project"));
        request.timeout = Duration::from_secs(120);
        request.options.home = Some(self.host.isolated_home(&spec.name));
        request
    }

    /// The same, with the simulated model as the agent's model; `None` for an
    /// agent that cannot be told where that is.
    pub(crate) fn model_request(
        &self,
        spec: &AgentSpec,
        prompt: &str,
    ) -> io::Result<Option<TurnRequest>> {
        let Some(settings) = model::settings(&spec.name, &self.model) else {
            return Ok(None);
        };
        settings.write_files(&self.host.isolated_home(&spec.name))?;
        let mut request = self.request(spec, prompt);
        let set = settings.environment.into_iter();
        request.options.env = set.map(|(name, value)| (name.to_owned(), Some(value))).collect();
        request.options.extra_args = settings.arguments;
        request.options.model = settings.model.map(str::to_owned);
        Ok(Some(request))
    }
}

/// Leaves out what would lead a CLI to an account or an address of the user's:
/// the agents' own variables, and the proxies, behind which loopback is elsewhere.
fn without_accounts(settings: &Settings) -> Variables {
    let leads_away = |name: &str| {
        settings.roster.iter().any(|spec| spec.env.contains(name))
            || name.to_ascii_lowercase().ends_with("_proxy")
    };
    let kept =
        settings.environment.iter().filter(|(name, _)| !name.to_str().is_some_and(leads_away));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Makes the folder, removed at the end or, after a kill, by the next Ostler.
fn folder(root: &Path) -> io::Result<RunDir> {
    let make = || {
        let folder = RunDir::create(root)?;
        fs::create_dir(folder.path().join("project"))?;
        fs::write(folder.path().join("project/notes.txt"), format!("{NOTES}\n"))?;
        Ok(folder)
    };
    make().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("no folder in {}: {error}", root.display()))
    })
}

#[cfg(test)]
mod tests {
    use ostler_core::agent::AGENTS;

    use super::*;

    #[test]
    fn nothing_that_leads_to_an_account_gets_on_the_stage() {
        let mut environment: Variables =
            [("PATH", "/bin"), ("HOME", "/home/me"), ("LANG", "C"), ("HTTPS_PROXY", "x")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        environment.extend(
            AGENTS.iter().flat_map(|spec| spec.env.iter()).map(|name| (name.into(), "mine".into())),
        );
        let settings = Settings::from_environment(environment).unwrap();
        let names: Vec<_> = without_accounts(&settings).into_keys().collect();
        assert_eq!(names, ["HOME", "LANG", "PATH"]);
    }
}
