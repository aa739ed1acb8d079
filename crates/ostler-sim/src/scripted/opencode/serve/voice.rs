//! How a turn is told: under which names, to whom, and what is written down.

use serde_json::{Value, json};

use super::super::super::answer::Answer;
use super::event;
use super::shared::Speech;
use super::stream;
use super::turn::Player;

impl Player {
    pub(super) async fn pause(&self, piece: usize, answer: &Answer) {
        tokio::time::sleep(answer.faults.pace(piece, self.shared.pace)).await;
    }

    pub(super) fn id(&self, prefix: &str) -> String {
        self.shared.lock().id(prefix)
    }

    /// Tells what happened, under the names that are spoken.
    pub(super) fn say(&self, kind: &str, mut properties: Value) {
        let is_own = !matches!(
            kind,
            "message.created" | "tool.started" | "tool.completed" | "session.completed" | "error"
        ) && properties.get("content").is_none();
        if is_own != (self.shared.speech == Speech::Own) {
            return;
        }
        if let Value::Object(fields) = &mut properties {
            fields.entry("sessionID").or_insert_with(|| self.session.clone().into());
        }
        let mut state = self.shared.lock();
        if let Some(open) = state.open.get_mut(&self.session) {
            match kind {
                "message.updated" => properties.get("info").map(|it| open.records.message(it)),
                "message.part.updated" => properties.get("part").map(|it| open.records.part(it)),
                _ => None,
            };
        }
        let event = stream::event(&mut state, kind, properties);
        state.tell(&self.directory, &event);
    }

    pub(super) fn of_session(&self, mut properties: Value) -> Value {
        if let Value::Object(fields) = &mut properties {
            fields.insert("sessionID".to_owned(), self.session.clone().into());
        }
        properties
    }

    pub(super) fn tell_prompt(&self, id: &str, part: &str, prompt: &str) {
        self.say_message(&event::user(&self.session, id));
        let message = json!({ "id": id });
        self.say_part(&message, part, json!({ "type": "text", "text": prompt }));
    }

    fn say_message(&self, info: &Value) {
        self.say("message.updated", json!({ "info": info }));
    }

    pub(super) fn say_part(&self, message: &Value, id: &str, mut part: Value) {
        if let Value::Object(fields) = &mut part {
            fields.insert("id".to_owned(), id.into());
            fields.insert("messageID".to_owned(), message.get("id").cloned().unwrap_or_default());
            fields.insert("sessionID".to_owned(), self.session.clone().into());
        }
        self.say("message.part.updated", json!({ "part": part }));
    }

    pub(super) fn begin_message(&self, user: &str) -> Value {
        let message = event::assistant(&self.session, &self.id("msg_"), user);
        let mut state = self.shared.lock();
        let open = state.open.get_mut(&self.session);
        if let Some(running) = open.and_then(|open| open.turn.as_mut()) {
            running.message = Some(message.clone());
        }
        drop(state);
        self.say_message(&message);
        let id = self.id("prt_");
        self.say_part(&message, &id, json!({ "type": "step-start" }));
        message
    }

    pub(super) fn end_message(&self, message: Value, reason: &str) {
        let id = self.id("prt_");
        self.say_part(&message, &id, event::step_finish(reason));
        self.say_message(&event::completed(message, Some(reason), None));
    }

    /// A turn that failed: its end is told before and after that of its message.
    pub(super) fn fail(&self, message: Option<Value>, error: &Value) {
        if error.get("name") == event::aborted().get("name") {
            self.say("session.error", json!({ "error": error }));
            self.say("error", json!({ "message": "Aborted" }));
        }
        self.say_idle();
        if let Some(message) = message {
            self.say_message(&event::completed(message, None, Some(error)));
        }
        self.say_idle();
    }

    pub(super) fn say_idle(&self) {
        self.say("session.status", event::status(&self.session, "idle"));
        self.say("session.idle", json!({}));
    }

    /// Tells what nobody can make sense of.
    pub(super) fn say_strange(&self) {
        let mut state = self.shared.lock();
        for (kind, properties) in [
            ("message.part.delta", json!({ "partID": "prt_0", "field": "text", "delta": "lost" })),
            ("something.new", json!({ "sessionID": self.session, "colour": "blue" })),
            ("message.part.updated", json!({ "sessionID": 7, "part": [] })),
        ] {
            let event = stream::event(&mut state, kind, properties);
            state.tell(&self.directory, &event);
        }
    }
}
