//! A turn with a process of its own.

use std::ffi::OsString;

use crate::{
    agent::{Stdin, Stdout, sniff},
    driver::Drive,
    event::{EventBody, Status, Trigger},
    failure::chain,
    prepared::{Held, InFlight, Prepared, not_started},
    proc::{self, Spawn},
    run_dir::RunDir,
    verdict::{Evidence, Reason},
};

impl Prepared {
    /// Starts a process for the turn and follows it until it is gone.
    pub(crate) async fn run_once(&mut self, turn: &mut InFlight) -> Result<Evidence, Reason> {
        let limits = self.limits(turn.started);
        // A process of its own cannot be spoken to; whoever tries learns it now,
        // not at the end of the turn.
        turn.says.close();
        while turn.says.try_recv().is_ok() {}
        turn.session.lock = match self.lock_session(turn, limits.deadline, None).await? {
            Held::Lock(lock) => lock,
            // Nobody asked for one.
            Held::Place(_) => None,
        };
        self.recall()?;
        let run_dir = RunDir::create(self.host.run_root()).map_err(|error| {
            let root = self.host.run_root().display();
            not_started(format!("could not make a folder for the turn in {root}: {error}"))
        })?;
        let prompt = self.prompt();
        let launch = self.launch(&prompt, run_dir.path());
        let line = (self.spec.launch)(&launch).map_err(|error| not_started(error.to_string()))?;
        self.write_files(&line).map_err(not_started)?;
        let environment = self.environment(&line, run_dir.path(), turn.id.as_str());
        let program = self.program_of(&line);
        if let Some(transcript) = &mut turn.transcript {
            let argv: Vec<_> = std::iter::once(program.as_os_str())
                .chain(line.args.iter().map(OsString::as_os_str))
                .map(|word| word.to_string_lossy())
                .collect();
            transcript.write("argv", &serde_json::json!(argv));
        }
        let stdout = match line.stdout {
            Stdout::Pipe => None,
            Stdout::File => Some(run_dir.path().join("stdout")),
        };
        let is_spoken_to = line.stdin == Stdin::Open;
        let proc = proc::spawn(Spawn {
            program: &program,
            args: &line.args,
            env: &environment,
            cwd: &self.request.options.cwd,
            stdin: line.stdin,
            stdout: stdout.as_deref(),
        })
        .map_err(|error| not_started(chain(&error)))?;
        turn.outbox.push(None, EventBody::Started(self.started(Trigger::Prompt)));
        for text in line.warnings.into_iter().chain(self.notes()) {
            turn.outbox.push(None, EventBody::Status(Status::Warning { text }));
        }
        let drive = Drive {
            proc,
            dialect: sniff::dialect(&launch),
            stop_plan: self.spec.stop,
            is_spoken_to,
            outbox: &mut turn.outbox,
            control: &turn.control,
            limits,
            transcript: turn.transcript.take(),
            opened: &mut |session_id| {
                self.host.running().opened(&turn.id, session_id);
                self.session_opened(session_id, &mut turn.session);
            },
        };
        let evidence = drive.run().await;
        // Removing a folder that a CLI filled can take a while; the turn is over before.
        self.host.tasks().spawn_blocking(move || drop(run_dir));
        Ok(evidence)
    }
}
