//! A turn under the flat names: the texts, the tools and the end. Nothing else
//! is told, and nothing is written down that could be read again.

use serde_json::{Value, json};

use super::super::super::answer::{Answer, pieces};
use super::turn::Player;

impl Player {
    /// Tells a whole turn.
    pub(super) async fn play_flat(&self, answer: &Answer, is_error: bool) {
        let message = self.id("msg_");
        if is_error {
            return self
                .say("error", json!({ "message": "The scripted model was asked to fail." }));
        }
        if let Some(tool) = answer.tool {
            let id = self.id("call_");
            let input = json!({ "command": tool.command });
            self.say("tool.started", json!({ "id": id, "tool": "bash", "input": input }));
            self.pause(0, answer).await;
            let output = format!("{}\n", tool.output);
            self.say("tool.completed", json!({ "id": id, "tool": "bash", "output": output }));
        }
        let mut text = String::new();
        for (n, piece) in pieces(&answer.text).into_iter().enumerate() {
            self.pause(n, answer).await;
            let name = if n == 0 { "message.created" } else { "message.updated" };
            text.push_str(piece);
            self.say(name, message_of(&message, &text));
        }
        self.say("session.completed", json!({}));
    }
}

fn message_of(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "assistant", "content": text })
}
