//! What people set for a conversation: a JSON object, of which each program
//! reads what it knows and leaves the rest as it is.

use ostler_core::request::Thinking;
use serde_json::{Map, Value};

use super::{Conn, Conversation, StoreError, values};
use crate::{config::word, id::ConversationId};

const THINKING: &str = "thinking";
const VERBOSE: &str = "verbose";

/// What was set for a conversation; what was not is as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConversationSettings {
    pub(crate) thinking: Option<Thinking>,
    /// Whether a turn is shown in more detail, or in less.
    pub(crate) verbose: Option<bool>,
}

/// A change of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    Thinking(Option<Thinking>),
    Verbose(bool),
}

impl Conversation {
    /// Returns what was set. What cannot be read was not.
    pub(crate) fn settings(&self) -> ConversationSettings {
        let all = read(&self.settings);
        let thinking = all.get(THINKING).and_then(Value::as_str);
        ConversationSettings {
            thinking: thinking.and_then(word::thinking::read),
            verbose: all.get(VERBOSE).and_then(Value::as_bool),
        }
    }
}

/// Sets one of them.
pub(crate) async fn set(
    conn: &mut Conn,
    id: ConversationId,
    setting: Setting,
) -> Result<(), StoreError> {
    // Whoever sets another one at the same time waits for the end of this write.
    let sql = "UPDATE conversations SET settings = settings WHERE id = $1 RETURNING settings";
    let Some(row) = conn.fetch_optional(sql, values![id]).await? else { return Ok(()) };
    let mut all = read(&row.text("settings")?);
    let (name, value) = match setting {
        Setting::Thinking(level) => {
            (THINKING, level.map(|level| word::thinking::word(level).into()))
        }
        Setting::Verbose(is_on) => (VERBOSE, Some(Value::Bool(is_on))),
    };
    match value {
        Some(value) => all.insert(name.to_owned(), value),
        None => all.remove(name),
    };
    let text = Value::Object(all).to_string();
    let sql = "UPDATE conversations SET settings = $2 WHERE id = $1";
    conn.execute(sql, values![id, &text]).await.map(drop)
}

/// Sets the model that an agent uses there, who is the conversation's from then
/// on: a model belongs to its agent.
pub(crate) async fn set_model(
    conn: &mut Conn,
    id: ConversationId,
    agent: &str,
    model: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE conversations SET agent = $2, model = $3 WHERE id = $1";
    conn.execute(sql, values![id, agent, model]).await.map(drop)
}

fn read(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Millis,
        store::{
            conversations::{self, Address},
            testing::on_both,
        },
    };

    fn conversation(settings: &str) -> Conversation {
        Conversation {
            id: ConversationId::new(),
            address: Address::new("local", "main").unwrap(),
            agent: None,
            model: None,
            settings: settings.to_owned(),
            created_at: Millis(1),
            last_user_at: None,
        }
    }

    #[test]
    fn what_cannot_be_read_was_not_set() {
        for text in ["", "{}", "[1]", r#"{"thinking":"hard","verbose":"on","later":1}"#] {
            assert_eq!(conversation(text).settings(), ConversationSettings::default(), "{text}");
        }
        let set = conversation(r#"{"thinking":"low","verbose":false,"later":1}"#).settings();
        assert_eq!((set.thinking, set.verbose), (Some(Thinking::Low), Some(false)));
    }

    on_both! {
        async fn a_setting_leaves_the_others_as_they_are(store: Store) {
            let found = store.must((), |conn, ()| Box::pin(async move {
                let address = Address::new("test", "here").unwrap();
                let id = conversations::find_or_begin(conn, &address, Millis(1)).await?.id;
                let sql = r#"UPDATE conversations SET settings = '{"later":1}' WHERE id = $1"#;
                conn.execute(sql, values![id]).await?;
                set(conn, id, Setting::Thinking(Some(Thinking::High))).await?;
                set(conn, id, Setting::Verbose(true)).await?;
                set(conn, id, Setting::Thinking(None)).await?;
                set_model(conn, id, "pi", Some("large")).await?;
                conversations::find(conn, id).await
            }));
            let found = found.await.unwrap();
            assert_eq!(found.settings, r#"{"later":1,"verbose":true}"#);
            assert_eq!((found.agent.as_deref(), found.model.as_deref()), (Some("pi"), Some("large")));
        }
    }
}
