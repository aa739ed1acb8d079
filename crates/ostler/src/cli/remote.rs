//! A message in the hands of the gateway, watched from here: given to it,
//! followed to its end, and shown like a turn of our own.

use std::{collections::HashMap, io, path::PathBuf};

use ostler_core::{
    event::TurnId,
    failure::{Failure, FailureKind},
    permission::Answer,
};
use serde_json::{Map, Value, json, value::RawValue};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    Exit,
    asker::{Answers, Asker},
    asking,
    render::Renderer,
    run::exit_of,
    shown::{Complete, Shown, What},
    signals::Signals,
    turn_args::{self, OutputArg},
};
use crate::{
    id::{JobId, PermissionId},
    socket::{
        client::{Connection, Heard, TalkError},
        message::{Accepted, Cancel, Ended, Event, Follow, Message, Refused, Request},
    },
    ui::Ui,
};

/// Why a message was not given to the gateway.
pub(crate) struct NotSent {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl From<turn_args::Refused> for NotSent {
    fn from(refused: turn_args::Refused) -> Self {
        Self { exit: refused.exit, message: refused.message }
    }
}

/// Says what it means that a gateway does not take something.
pub(crate) fn refused(refused: Refused) -> NotSent {
    let is_wrong = refused.code == "invalid_request";
    let exit = if is_wrong { Exit::Usage } else { Exit::Failed };
    NotSent { exit, message: refused.message }
}

/// Gives a message to a gateway.
pub(crate) async fn send(
    connection: &mut Connection,
    message: Message,
) -> Result<Accepted, NotSent> {
    let failed = |message: String| NotSent { exit: Exit::Failed, message };
    match connection.ask(&Request::Send(Box::new(message))).await {
        Ok(Heard::Accepted(accepted)) => Ok(accepted),
        Ok(Heard::Refused(why)) => Err(refused(why)),
        Ok(heard) => {
            Err(failed(format!("the gateway did not take the message, but said {heard:?}")))
        }
        Err(error @ (TalkError::TooLong { .. } | TalkError::Unwritable(_))) => {
            Err(NotSent { exit: Exit::Usage, message: error.to_string() })
        }
        Err(error) => Err(failed(format!("{error}; the message may have been taken or not"))),
    }
}

/// What a signal does to the job that is being watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnSignal {
    /// It is cancelled.
    Cancel,
    /// It goes on without us.
    Leave,
}

/// A job of the gateway that is watched.
pub(crate) struct Watched {
    pub(crate) socket: PathBuf,
    pub(crate) job: JobId,
    /// Who answers, as far as is known here.
    pub(crate) agent: String,
    pub(crate) on_signal: OnSignal,
}

/// How a job ended, for whoever watched it.
pub(crate) struct Watching {
    pub(crate) exit: Exit,
    /// The report of the turn that answered it.
    pub(crate) report: Option<Value>,
}

impl From<Exit> for Watching {
    fn from(exit: Exit) -> Self {
        Self { exit, report: None }
    }
}

impl Watched {
    /// Shows the job's events until its end, and asks whoever can be asked.
    pub(crate) async fn follow(
        self,
        connection: &mut Connection,
        signals: Signals,
        mut asker: Option<Asker>,
        output: OutputArg,
        ui: &mut Ui,
    ) -> Watching {
        let mut view = View::new(output, ui);
        if let Err(error) = connection.say(&Request::Follow(Follow::Job(self.job))).await {
            return self.broken(&error, &mut view);
        }
        let (leave, mut left) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(control(signals, self.on_signal, self.socket.clone(), self.job, leave));
        let mut answers = Remote { socket: self.socket.clone(), requests: HashMap::new() };
        let mut is_read = true;
        loop {
            // All of these can be dropped half-way without losing anything.
            let heard = tokio::select! {
                heard = connection.next() => heard,
                reply = Asker::reply(asker.as_mut()) => {
                    if let Some(asker) = &mut asker {
                        asker.replied(reply, &mut answers, &mut view.renderer).await;
                    }
                    continue;
                }
                Some(()) = left.recv() => {
                    view.renderer.notice(&format!("ostler: {} goes on without you", self.job));
                    return Exit::Cancelled.into();
                }
            };
            match heard {
                Ok(Heard::Event(event)) => {
                    let shown = view.event(&event, &mut answers, asker.as_mut());
                    if shown.is_err() && std::mem::replace(&mut is_read, false) {
                        // Nobody reads any more.
                        match self.on_signal {
                            OnSignal::Cancel => cancel(&self.socket, self.job).await,
                            OnSignal::Leave => return Exit::Failed.into(),
                        }
                    }
                }
                Ok(Heard::Ended(ended)) => return self.ended(ended, &mut view),
                Ok(Heard::Refused(refused)) => {
                    view.renderer.notice(&format!("ostler: {}", refused.message));
                    return Exit::Failed.into();
                }
                Ok(_) => {}
                Err(error) => return self.broken(&error, &mut view),
            }
        }
    }

    fn broken(&self, error: &TalkError, view: &mut View<'_>) -> Watching {
        view.renderer.notice(&format!(
            "ostler: {error}; {} goes on when the gateway is back: `ostler queue show {}`",
            self.job, self.job
        ));
        Exit::Failed.into()
    }

    /// Shows how the job ended.
    fn ended(&self, ended: Ended, view: &mut View<'_>) -> Watching {
        let Some(raw) = &ended.complete else {
            return self.ended_without_a_turn(&ended, view).into();
        };
        let report: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let complete = Complete::read(&report);
        let exit = match &complete.failure {
            None => Exit::Answered,
            Some(failure) => failure.known_kind().map_or(Exit::Failed, |kind| exit_of(Some(kind))),
        };
        let exit = match view.end(raw, &report, &complete) {
            Ok(()) => exit,
            Err(error) => {
                let text = format!("ostler: the answer could not be printed: {error}");
                view.renderer.notice(&text);
                if exit == Exit::Answered { Exit::Failed } else { exit }
            }
        };
        Watching { exit, report: Some(report) }
    }

    fn ended_without_a_turn(&self, ended: &Ended, view: &mut View<'_>) -> Exit {
        let (kind, exit) = match ended.state.as_str() {
            // There was nothing to answer.
            "done" => {
                let shown = match view.output {
                    OutputArg::Json => view.print_object(ended),
                    OutputArg::Text | OutputArg::StreamJson => Ok(()),
                };
                return if shown.is_ok() { Exit::Answered } else { Exit::Failed };
            }
            "cancelled" => (FailureKind::Cancelled, Exit::Cancelled),
            _ => (FailureKind::Internal, Exit::Failed),
        };
        let reason = ended.reason.clone().unwrap_or_else(|| format!("the job is {}", ended.state));
        view.renderer.not_started(&self.agent, &Failure::new(kind, reason));
        exit
    }
}

/// What is shown of a job whose events come from the gateway.
struct View<'a> {
    output: OutputArg,
    renderer: Renderer<'a>,
    /// Whether a turn has ended. Its end is shown to people once it is known
    /// that no other try follows.
    has_complete: bool,
}

impl<'a> View<'a> {
    fn new(output: OutputArg, ui: &'a mut Ui) -> Self {
        let renderer = Renderer::new(output, ui);
        Self { output, renderer, has_complete: false }
    }

    /// Shows an event, and asks what it asks.
    fn event(
        &mut self,
        event: &Event,
        answers: &mut Remote,
        asker: Option<&mut Asker>,
    ) -> io::Result<()> {
        let Ok(value) = serde_json::from_str::<Value>(event.event.get()) else { return Ok(()) };
        let shown = Shown::read(&value);
        let is_complete = matches!(shown.what, What::Complete(_));
        let printed = match self.output {
            OutputArg::StreamJson => self.renderer.ui().line(event.event.get()),
            OutputArg::Json => Ok(()),
            OutputArg::Text if is_complete => Ok(()),
            OutputArg::Text => self.show(&shown),
        };
        answers.note(&shown);
        match (asker, &shown.what) {
            (Some(asker), _) => asker.event(&shown, &mut self.renderer),
            (None, What::Permission { permission, id }) if self.output == OutputArg::Text => {
                let (id, question) = (id.unwrap_or("-"), asking::question(permission));
                self.renderer.notice(&format!("{question}\n  … waiting for an answer to {id}"));
            }
            (None, _) => {}
        }
        self.has_complete |= is_complete;
        printed
    }

    fn show(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        if matches!(shown.what, What::Started { .. }) && self.has_complete {
            self.renderer.begin_again()?;
        }
        self.renderer.show(shown)
    }

    /// Shows the end.
    fn end(&mut self, raw: &RawValue, report: &Value, complete: &Complete<'_>) -> io::Result<()> {
        match self.output {
            OutputArg::Text => {
                let what = What::Complete(*complete);
                self.renderer.show(&Shown { turn: "", is_nested: false, what })
            }
            OutputArg::Json => self.renderer.ui().line(raw.get()),
            // One that was answered together with another has no events of its own.
            OutputArg::StreamJson if !self.has_complete => {
                let mut lines = unseen(report).into_iter();
                lines.try_for_each(|line| self.renderer.ui().line(&line))
            }
            OutputArg::StreamJson => Ok(()),
        }
    }

    fn print_object(&mut self, object: &impl serde::Serialize) -> io::Result<()> {
        let text = serde_json::to_string(object).map_err(io::Error::other)?;
        self.renderer.ui().line(&text)
    }
}

/// Makes the events of a turn of which there is only the report.
fn unseen(report: &Value) -> Vec<String> {
    let turn = TurnId::new();
    let at = format!("{:.3}", jiff::Timestamp::now());
    let error = report.get("error").filter(|error| error.is_object());
    let bodies = error.map(|error| ("error", error)).into_iter().chain([("complete", report)]);
    let event = |((kind, body), seq): ((&str, &Value), u64)| {
        let own = json!({ "seq": seq, "at": at, "type": kind, "turn": turn.as_str() });
        let mut fields = Map::new();
        for part in [&own, body] {
            fields.extend(part.as_object().cloned().unwrap_or_default());
        }
        Value::Object(fields).to_string()
    };
    bodies.zip(1..).map(event).collect()
}

/// The way to the requests of a turn in the gateway.
struct Remote {
    socket: PathBuf,
    /// What the gateway calls them, by turn and by the agent's own name.
    requests: HashMap<(String, String), PermissionId>,
}

impl Remote {
    fn note(&mut self, shown: &Shown<'_>) {
        let What::Permission { permission, id: Some(id) } = &shown.what else { return };
        if let Ok(id) = id.parse() {
            self.requests.insert((shown.turn.to_owned(), permission.request.clone()), id);
        }
    }
}

impl Answers for Remote {
    async fn answer(&mut self, turn: &str, request: &str, answer: Answer) {
        let Some(id) = self.requests.get(&(turn.to_owned(), request.to_owned())) else { return };
        // A connection of its own, for the other may be full of events.
        let Ok(mut connection) = Connection::open(&self.socket).await else { return };
        connection.ask(&Request::Answer { request: *id, answer }).await.ok();
    }
}

/// The first signal does what it is to do, the second ends the program.
///
/// A task of its own, because the one that prints may be stuck in a pipe that
/// nobody reads.
async fn control(
    mut signals: Signals,
    on_signal: OnSignal,
    socket: PathBuf,
    job: JobId,
    leave: mpsc::Sender<()>,
) {
    signals.next().await;
    let act = async {
        match on_signal {
            OnSignal::Cancel => cancel(&socket, job).await,
            // Nobody is there to leave when the end has come.
            OnSignal::Leave => drop(leave.send(()).await),
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = act => {}
        _ = signals.next() => {}
    }
    std::process::exit(Exit::Cancelled as i32);
}

/// Cancels a job. If that is not possible the gateway is gone, which is told
/// by the connection on which the job is followed.
async fn cancel(socket: &std::path::Path, job: JobId) {
    let Ok(mut connection) = Connection::open(socket).await else { return };
    connection.ask(&Request::Cancel(Cancel::Job(job))).await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_alone_is_shown_as_a_turn_with_one_end() {
        let report = json!({ "agent": "pi", "response_text": "x", "error": null });
        let lines = unseen(&report);
        let complete: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(
            (lines.len(), &complete["seq"], &complete["type"]),
            (1, &json!(1), &json!("complete"))
        );
        assert_eq!(complete["response_text"], "x");
        let report = json!({ "error": { "kind": "auth", "message": "no key" } });
        let lines = unseen(&report);
        let error: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(
            (lines.len(), &error["type"], &error["kind"]),
            (2, &json!("error"), &json!("auth"))
        );
    }
}
