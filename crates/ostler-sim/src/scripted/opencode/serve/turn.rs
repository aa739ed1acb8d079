//! One turn as it is played: what is told, when, and what is waited for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::super::super::agent::Agent;
use super::super::super::answer::{Answer, Tool, pieces};
use super::event::{self, Stage};
use super::fault::ServerFaults;
use super::shared::{Asked, Begin, Kind, Reply, Running, Shared, Speech};

/// How late the end is told a second time.
const LATE: Duration = Duration::from_millis(50);

/// Whoever plays the turns of one session.
pub(super) struct Player {
    pub(super) shared: Arc<Shared>,
    pub(super) session: String,
    pub(super) directory: String,
}

impl Player {
    /// Takes a prompt: into the turn that runs, or as a new one. Whoever wants to
    /// know gets told when it is over.
    pub(super) fn prompt(
        shared: &Arc<Shared>,
        session: &str,
        prompt: &str,
        done: Option<oneshot::Sender<()>>,
    ) {
        let mut state = shared.lock();
        let id = state.id("msg_");
        let part = state.id("prt_");
        let Some(open) = state.open.get_mut(session) else { return };
        let directory = open.session.cwd.to_string_lossy().into_owned();
        let prompt = prompt.to_owned();
        let player = Self { shared: Arc::clone(shared), session: session.to_owned(), directory };
        if let Some(running) = &mut open.turn {
            running.further.push((id.clone(), prompt.clone()));
            running.waiting.extend(done);
            drop(state);
            return player.tell_prompt(&id, &part, &prompt);
        }
        let task = {
            let prompt = prompt.clone();
            let id = id.clone();
            state.turns.spawn(async move {
                player.tell_prompt(&id, &part, &prompt);
                player.play(id, prompt).await;
            })
        };
        let waiting = done.into_iter().collect();
        let turn = Running { task, message: None, further: Vec::new(), waiting };
        if let Some(open) = state.open.get_mut(session) {
            open.turn = Some(turn);
        }
    }

    /// Ends the turn that runs, if any. The end is told twice, and between that
    /// what became of the message.
    pub(super) fn abort(shared: &Arc<Shared>, session: &str) {
        let mut state = shared.lock();
        let Some(open) = state.open.get_mut(session) else { return };
        let directory = open.session.cwd.to_string_lossy().into_owned();
        let Some(running) = open.turn.take() else { return };
        running.task.abort();
        state.asked.retain(|_, asked| asked.request.get("sessionID") != Some(&session.into()));
        drop(state);
        let player = Self { shared: Arc::clone(shared), session: session.to_owned(), directory };
        player.fail(running.message, &event::aborted());
        tell_all(running.waiting);
    }

    async fn play(&self, mut user: String, mut prompt: String) {
        self.say("session.status", event::status(&self.session, "busy"));
        loop {
            self.answer(&user, &prompt).await;
            let mut state = self.shared.lock();
            let Some(open) = state.open.get_mut(&self.session) else { return };
            let Some(running) = &mut open.turn else { return };
            if running.further.is_empty() {
                break;
            }
            (user, prompt) = running.further.remove(0);
        }
        let faults = ServerFaults::of(&prompt);
        if faults.never_idle {
            // Only an abort ends it.
            return std::future::pending().await;
        }
        let running = self.shared.lock().open.get_mut(&self.session).and_then(|it| it.turn.take());
        let waiting = running.map(|running| running.waiting).unwrap_or_default();
        if self.shared.speech == Speech::Own && !faults.error {
            self.say_idle();
        }
        tell_all(waiting);
        if faults.double_idle {
            tokio::time::sleep(LATE).await;
            self.say_idle();
        }
    }

    async fn answer(&self, user: &str, prompt: &str) {
        let faults = ServerFaults::of(prompt);
        let Some(answer) = self.take(prompt) else { return };
        let (done, begun) = oneshot::channel();
        let begin = Begin { faults: answer.faults.clone(), done };
        if self.shared.begins.send(begin).await.is_ok() {
            // The other end is only dropped when the process ends.
            begun.await.ok();
        }
        tokio::time::sleep(answer.faults.delay).await;
        if faults.no_session {
            self.say_strange();
        }
        if self.shared.speech == Speech::Flat {
            return self.play_flat(&answer, faults.error).await;
        }
        if faults.error {
            let message = self.begin_message(user);
            self.say("session.error", self.of_session(json!({ "error": event::api_error() })));
            return self.fail(Some(message), &event::api_error());
        }
        let mut text = answer.text.clone();
        if faults.question {
            text = format!("{text} {}", self.ask_question().await);
        }
        if let Some(tool) = answer.tool {
            match self.call_tool(user, tool).await {
                Called::Ran => {}
                Called::Denied => text = answer.denied_text(),
                Called::Stopped => return,
            }
        }
        self.write(user, &text, &answer, faults.cut).await;
    }

    /// Writes the prompt down; returns what is answered.
    fn take(&self, prompt: &str) -> Option<Answer> {
        let mut state = self.shared.lock();
        let open = state.open.get_mut(&self.session)?;
        let answer = open.session.ask(Agent::OpenCode.name(), prompt);
        // A session that cannot be kept is forgotten with the process.
        self.shared.sessions.save(&open.session).ok();
        Some(answer)
    }

    async fn write(&self, user: &str, text: &str, answer: &Answer, is_cut: bool) {
        let message = self.begin_message(user);
        let part = self.id("prt_");
        self.say_part(&message, &part, event::text("", false));
        for (n, piece) in pieces(text).into_iter().enumerate() {
            self.pause(n, answer).await;
            if answer.faults.middle().is_err() {
                return;
            }
            if is_cut && n == 1 {
                self.shared.lock().cut();
            }
            let delta = json!({
                "messageID": message.get("id"), "partID": part, "field": "text", "delta": piece,
            });
            self.say("message.part.delta", self.of_session(delta));
        }
        self.say_part(&message, &part, event::text(text, true));
        self.end_message(message, "stop");
    }

    async fn call_tool(&self, user: &str, tool: Tool) -> Called {
        let message = self.begin_message(user);
        let (part, call) = (self.id("prt_"), self.id("call_"));
        self.say_part(&message, &part, event::tool(&call, tool, &Stage::Pending));
        self.say_part(&message, &part, event::tool(&call, tool, &Stage::Running));
        let reply = if self.shared.asks {
            let id = self.id("per_");
            let of = message.get("id").and_then(Value::as_str).unwrap_or_default();
            let request = event::permission(&self.session, &id, (of, &call), tool);
            self.ask(Kind::Permission, &id, "permission", request).await
        } else {
            tokio::time::sleep(self.shared.pace).await;
            Reply::Yes(String::new())
        };
        let (stage, called) = match &reply {
            Reply::Yes(_) => (Stage::Completed, Called::Ran),
            Reply::No { message: Some(why) } => (Stage::Failed(why), Called::Denied),
            Reply::No { message: None } => {
                (Stage::Failed("The user rejected permission to use this tool."), Called::Stopped)
            }
        };
        self.say_part(&message, &part, event::tool(&call, tool, &stage));
        self.end_message(message, "tool-calls");
        called
    }

    async fn ask_question(&self) -> String {
        let id = self.id("que_");
        let request = event::question(&self.session, &id);
        match self.ask(Kind::Question, &id, "question", request).await {
            Reply::Yes(answer) => format!("You chose {answer}."),
            Reply::No { .. } => "You chose nothing.".to_owned(),
        }
    }

    async fn ask(&self, kind: Kind, id: &str, name: &str, request: Value) -> Reply {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { kind, request: request.clone(), answer };
        self.shared.lock().asked.insert(id.to_owned(), asked);
        self.say(&format!("{name}.asked"), request);
        let reply = answered.await.unwrap_or(Reply::No { message: None });
        self.say(&format!("{name}.replied"), self.of_session(json!({ "requestID": id })));
        reply
    }
}

/// Tells whoever waits that it is over.
fn tell_all(waiting: Vec<oneshot::Sender<()>>) {
    for done in waiting {
        // Some have gone.
        done.send(()).ok();
    }
}

/// What became of a call.
enum Called {
    Ran,
    Denied,
    /// And with it the turn.
    Stopped,
}
