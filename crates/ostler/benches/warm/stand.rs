//! One agent with everything it needs, to be run directly and through Ostler.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ostler_core::{
    CliAgent, EventBody, Host, HostConfig, Memo, TurnRequest,
    agent::{self, AgentSpec, CommandLine},
    cli_agent::ProcessPlan,
    event::Mode,
    registry::Agent as _,
    request::Permissions,
};
use ostler_sim::{model, scripted};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::figures::{Clock, PROMPT, Took};

pub(crate) const OSTLER: &str = env!("CARGO_BIN_EXE_ostler");

pub(crate) struct Stand<'a> {
    pub(crate) place: PathBuf,
    pub(crate) name: &'static str,
    pub(crate) request: TurnRequest,
    pub(crate) is_real: bool,
    runtime: &'a Runtime,
    agent: CliAgent,
    host: Host,
    /// The options of `ostler run` and `ostler chat` for the same turn.
    arguments: Vec<String>,
    base: Vec<(OsString, OsString)>,
}

impl<'a> Stand<'a> {
    pub(crate) fn scripted(place: &Path, spec: &'static AgentSpec, runtime: &'a Runtime) -> Self {
        let name: &str = &spec.name;
        let program = scripted_agent(place, name);
        Self::of(&place.join("scripted").join(name), name, runtime, &program)
    }

    /// One whose program is a scripted agent.
    pub(crate) fn of(
        place: &Path,
        name: &'static str,
        runtime: &'a Runtime,
        program: &Path,
    ) -> Self {
        Self::new(place, name, runtime, program, "/usr/bin:/bin", None)
    }

    pub(crate) fn real(
        place: &Path,
        spec: &'static AgentSpec,
        runtime: &'a Runtime,
        clis: &Path,
        sim: &model::Sim,
    ) -> Self {
        let folder = clis.join("node_modules/.bin");
        let path = format!("{}:/usr/bin:/bin", folder.display());
        let name: &str = &spec.name;
        let program = folder.join(&*spec.program);
        let settings = model::settings(name, &sim.base_url()).unwrap();
        let place = place.join("real").join(name);
        Self::new(&place, name, runtime, &program, &path, Some(settings))
    }

    fn new(
        place: &Path,
        name: &'static str,
        runtime: &'a Runtime,
        program: &Path,
        path: &str,
        settings: Option<model::Settings>,
    ) -> Self {
        let is_real = settings.is_some();
        let (work, data) = (place.join("work"), place.join("data"));
        let home = data.join("homes").join(name);
        for folder in [&work, &home, &place.join("tmp")] {
            fs::create_dir_all(folder).unwrap();
        }
        let base: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), path.into()),
            ("HOME".into(), home.clone().into()),
            ("OSTLER_DATA_DIR".into(), data.into()),
            ("TMPDIR".into(), place.join("tmp").into()),
        ];
        let mut request = TurnRequest::new(PROMPT, &work);
        request.options.home = Some(home.clone());
        request.options.permissions = Permissions::ReadOnly;
        let mut arguments: Vec<String> =
            ["--agent", name, "--permissions", "read-only", "--isolated", "--bin"]
                .map(Into::into)
                .to_vec();
        arguments.push(program.display().to_string());
        if let Some(settings) = settings {
            settings.write_files(&home).unwrap();
            for (variable, value) in settings.environment {
                arguments.extend(["--env".to_owned(), format!("{variable}={value}")]);
                request.options.env.push((variable.to_owned(), Some(value)));
            }
            for argument in settings.arguments {
                arguments.extend(["--agent-arg".to_owned(), argument.clone()]);
                request.options.extra_args.push(argument);
            }
            if let Some(model) = settings.model {
                arguments.extend(["--model".to_owned(), model.to_owned()]);
                request.options.model = Some(model.to_owned());
            }
        }
        let host = Host::new(HostConfig::from_environment(base.iter().cloned().collect()));
        let agent = CliAgent::new(agent::find(name).unwrap(), host.clone()).with_program(program);
        let place = place.to_owned();
        Self { place, runtime, name, agent, host, request, arguments, base, is_real }
    }

    pub(crate) fn plan(&self, mode: Mode) -> ProcessPlan {
        let request = TurnRequest { mode, ..self.request.clone() };
        let plan = self.agent.plan(&request).unwrap().process().unwrap();
        let CommandLine { files, home_files, .. } = &plan.line;
        let home = self.request.options.home.clone().unwrap();
        let of_home = home_files.iter().map(|(path, text)| (home.join(path), text));
        for (path, text) in files.iter().map(|(path, text)| (path.clone(), text)).chain(of_home) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        plan
    }

    /// Returns the CLI itself, as Ostler would start it.
    pub(crate) fn command(&self, plan: &ProcessPlan) -> Command {
        let mut command = Command::new(&plan.program);
        command
            .args(&plan.line.args)
            .env_clear()
            .envs(plan.environment.iter().map(|(name, value)| (name, value)))
            .env("TMPDIR", &self.place)
            .current_dir(self.place.join("work"));
        command
    }

    /// Returns `ostler run` or `ostler chat` for the same turn.
    pub(crate) fn ostler(&self, command: &str, output: &str) -> Command {
        let mut ostler = Command::new(OSTLER);
        ostler
            .arg(command)
            .args(&self.arguments)
            .args(["--output", output])
            .env_clear()
            .envs(self.base.iter().map(|(name, value)| (name, value)))
            .current_dir(self.place.join("work"));
        ostler
    }

    /// Runs a turn through the library, in the session of the one before.
    pub(crate) fn turn(&self, memo: &mut Option<Memo>) -> Took {
        let mut request = TurnRequest { mode: Mode::Warm, ..self.request.clone() };
        if let Some(memo) = memo.take() {
            request = request.resume(memo);
        }
        self.runtime.block_on(async {
            let mut clock = Clock::start();
            let mut turn = self.agent.start(request).await.unwrap();
            while let Some(event) = turn.next().await {
                match event.body {
                    EventBody::Output { .. } => clock.text(),
                    EventBody::Complete(report) => {
                        let took = clock.end();
                        assert_eq!(report.mode, Mode::Warm);
                        assert!(report.error.is_none(), "{:?}", report.error);
                        *memo = report.memo;
                        return took;
                    }
                    _ => {}
                }
            }
            panic!("a turn without an end")
        })
    }

    /// Ends the agents that are kept.
    pub(crate) fn shut_down(&self) {
        self.runtime.block_on(self.host.shutdown(Duration::from_secs(20)));
    }
}

/// Makes an executable that plays an agent.
pub(crate) fn scripted_agent(place: &Path, name: &str) -> PathBuf {
    let program = place.join(format!("{name}-agent"));
    let steps = json!([{ "do": "agent", "name": name }]);
    fs::write(&program, scripted::executable(&format!("{OSTLER} scripted"), &steps)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}
