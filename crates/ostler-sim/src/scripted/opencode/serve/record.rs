//! What the server has written down of a session: the messages and their parts,
//! as they were told last.

use serde_json::{Value, json};

use super::super::super::session::Session;

/// The messages of a session, in order.
#[derive(Debug, Default)]
pub(super) struct Records(Vec<Record>);

#[derive(Debug)]
struct Record {
    info: Value,
    parts: Vec<Value>,
}

impl Records {
    /// Of a session of an earlier process only the prompts are left.
    pub(super) fn of_prompts(session: &Session) -> Self {
        let records = session.prompts.iter().enumerate().map(|(n, prompt)| {
            let id = format!("msg_{n:06}");
            let info = json!({ "id": id, "role": "user", "sessionID": session.id });
            let part = json!({ "id": format!("prt_{n:06}"), "messageID": id, "type": "text", "text": prompt });
            Record { info, parts: vec![part] }
        });
        Self(records.collect())
    }

    /// Writes a message down.
    pub(super) fn message(&mut self, info: &Value) {
        match self.0.iter_mut().find(|record| record.info.get("id") == info.get("id")) {
            Some(record) => record.info = info.clone(),
            None => self.0.push(Record { info: info.clone(), parts: Vec::new() }),
        }
    }

    /// Writes a part down.
    pub(super) fn part(&mut self, part: &Value) {
        let owner = |record: &&mut Record| record.info.get("id") == part.get("messageID");
        let Some(record) = self.0.iter_mut().find(owner) else { return };
        match record.parts.iter_mut().find(|known| known.get("id") == part.get("id")) {
            Some(known) => *known = part.clone(),
            None => record.parts.push(part.clone()),
        }
    }

    /// The newest messages, oldest first.
    pub(super) fn list(&self, limit: usize) -> Value {
        let skipped = self.0.len().saturating_sub(limit);
        self.0.iter().skip(skipped).map(Record::json).collect()
    }

    /// The message that was begun last.
    pub(super) fn last(&self) -> Value {
        self.0.last().map(Record::json).unwrap_or_default()
    }
}

impl Record {
    fn json(&self) -> Value {
        json!({ "info": self.info, "parts": self.parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_again_replaces_what_was_told_before() {
        let mut records = Records::default();
        records.message(&json!({ "id": "m1" }));
        records.message(&json!({ "id": "m2" }));
        records.part(&json!({ "id": "p1", "messageID": "m1", "text": "" }));
        records.part(&json!({ "id": "p1", "messageID": "m1", "text": "whole" }));
        records.message(&json!({ "id": "m1", "finish": "stop" }));
        records.part(&json!({ "id": "p2", "messageID": "nobody" }));
        let list = records.list(10);
        assert_eq!(list[0]["info"]["finish"], "stop");
        assert_eq!(list[0]["parts"], json!([{ "id": "p1", "messageID": "m1", "text": "whole" }]));
        assert_eq!(records.list(1)[0]["info"]["id"], "m2");
        assert_eq!(records.last()["info"]["id"], "m2");
    }
}
