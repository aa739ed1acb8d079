//! How the turns of a project are run: what may be set, how a change is merged into
//! what is set, and how it is shown. The field names are part of the contract.

use std::time::Duration;

use ostler_core::request::{Permissions, Thinking};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::schema::{Object, ObjectBuilder, SchemaType, Type},
};

use crate::{
    config::{duration, word},
    wishes::{Wishes, millis},
};

/// The longest name of a model or a tool, in characters.
const LONGEST_NAME: usize = 200;
const MOST_TOOLS: usize = 100;
/// The longest system prompt, in bytes.
const LONGEST_PROMPT: usize = 64 * 1024;
/// No turn may take longer.
const LONGEST_TURN: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const PERMISSIONS: [&str; 3] = ["bypass", "ask", "read-only"];
const THINKING: [&str; 5] = ["off", "minimal", "low", "medium", "high"];

/// What is changed of the settings. What is left out stays; null clears.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsChange {
    /// The model, by the agent's name for it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
    pub(crate) model: Option<Option<String>>,
    /// What the agent may do without asking.
    #[serde(default, deserialize_with = "given_permissions")]
    #[schema(schema_with = permissions_schema)]
    pub(crate) permissions: Option<Option<Permissions>>,
    /// How much the model thinks before it answers.
    #[serde(default, deserialize_with = "given_thinking")]
    #[schema(schema_with = thinking_schema)]
    pub(crate) thinking: Option<Option<Thinking>>,
    /// How long a turn may take, such as `90s` or `1h30m`; a number is seconds.
    #[serde(default, deserialize_with = "given_timeout")]
    #[schema(schema_with = timeout_schema)]
    pub(crate) timeout: Option<Option<Duration>>,
    /// How often the model may be asked in a turn.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub(crate) max_turns: Option<Option<u32>>,
    /// The tools that the agent may use; it may use no others.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    pub(crate) allowed_tools: Option<Option<Vec<String>>>,
    /// What the agent is told before everything else.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 65536)]
    pub(crate) system_prompt: Option<Option<String>>,
}

/// Takes a field that is there, null too.
fn given<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

fn given_permissions<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<Permissions>>, D::Error> {
    word::permissions::deserialize(from).map(Some)
}

fn given_thinking<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<Thinking>>, D::Error> {
    word::thinking::deserialize(from).map(Some)
}

fn given_timeout<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Duration>>, D::Error> {
    let value = Value::deserialize(from)?;
    if value.is_null() {
        return Ok(Some(None));
    }
    let timeout = duration::from_value(&value).ok_or_else(|| D::Error::custom(duration::HINT))?;
    Ok(Some(Some(timeout)))
}

fn permissions_schema() -> Object {
    words_schema(&PERMISSIONS)
}

fn thinking_schema() -> Object {
    words_schema(&THINKING)
}

fn words_schema(words: &[&str]) -> Object {
    let all = words.iter().map(|word| Value::from(*word)).chain([Value::Null]);
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(all.collect::<Vec<_>>()))
        .build()
}

fn timeout_schema() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Number, Type::Null]))
        .pattern(Some("^([0-9]+(d|h|m|s|ms))+$"))
        .exclusive_minimum(Some(0))
        .examples([Value::from("90s"), Value::from(90)])
        .build()
}

impl SettingsChange {
    /// Says what is wrong with it, if anything is: as agents would, but now.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(Some(model)) = &self.model {
            check_name("model", model)?;
        }
        if let Some(Some(timeout)) = self.timeout
            && timeout > LONGEST_TURN
        {
            return Err("timeout: a turn may take 365d at most".to_owned());
        }
        if self.max_turns == Some(Some(0)) {
            return Err("max_turns: there must be one turn at least".to_owned());
        }
        if let Some(Some(tools)) = &self.allowed_tools {
            if tools.len() > MOST_TOOLS {
                return Err(format!("allowed_tools: there can be {MOST_TOOLS} at most"));
            }
            tools.iter().try_for_each(|tool| check_name("allowed_tools", tool))?;
        }
        let Some(Some(prompt)) = &self.system_prompt else { return Ok(()) };
        let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if prompt.trim().is_empty() {
            return Err("system_prompt: it is blank; null takes it away".to_owned());
        }
        if prompt.len() > LONGEST_PROMPT {
            return Err(format!("system_prompt: it can have {LONGEST_PROMPT} bytes at most"));
        }
        if prompt.chars().any(is_control) {
            return Err("system_prompt: it must not have control characters".to_owned());
        }
        Ok(())
    }

    /// Merges the change into what is set.
    pub(crate) fn apply(self, wishes: &mut Wishes) {
        let Self { model, permissions, thinking, timeout, max_turns, .. } = self;
        let timeout_ms = timeout.map(|timeout| timeout.map(millis));
        merge(model, &mut wishes.model);
        merge(permissions, &mut wishes.permissions);
        merge(thinking, &mut wishes.thinking);
        merge(timeout_ms, &mut wishes.timeout_ms);
        merge(max_turns, &mut wishes.max_turns);
        merge(self.allowed_tools, &mut wishes.allowed_tools);
        merge(self.system_prompt, &mut wishes.system);
    }

    /// Returns the names of what is changed.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let is_given = [
            ("model", self.model.is_some()),
            ("permissions", self.permissions.is_some()),
            ("thinking", self.thinking.is_some()),
            ("timeout", self.timeout.is_some()),
            ("max_turns", self.max_turns.is_some()),
            ("allowed_tools", self.allowed_tools.is_some()),
            ("system_prompt", self.system_prompt.is_some()),
        ];
        is_given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

fn merge<T>(change: Option<Option<T>>, value: &mut Option<T>) {
    if let Some(new) = change {
        *value = new;
    }
}

/// Checks what becomes a word of a command line.
fn check_name(field: &str, name: &str) -> Result<(), String> {
    let why = if name.trim().is_empty() {
        "is blank"
    } else if name.starts_with('-') {
        "starts with a dash"
    } else if name.chars().any(char::is_control) {
        "has control characters"
    } else if name.chars().count() > LONGEST_NAME {
        "is too long"
    } else {
        return Ok(());
    };
    Err(format!("{field}: {name:?} {why}"))
}

/// The settings as they are shown. What is not set is null.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SettingsView {
    pub(crate) model: Option<String>,
    #[serde(with = "word::permissions")]
    #[schema(schema_with = permissions_schema)]
    pub(crate) permissions: Option<Permissions>,
    #[serde(with = "word::thinking")]
    #[schema(schema_with = thinking_schema)]
    pub(crate) thinking: Option<Thinking>,
    /// How long a turn may take.
    #[schema(example = "10m")]
    pub(crate) timeout: Option<String>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) system_prompt: Option<String>,
}

impl From<&Wishes> for SettingsView {
    fn from(wishes: &Wishes) -> Self {
        let timeout = wishes.timeout_ms.map(Duration::from_millis);
        Self {
            model: wishes.model.clone(),
            permissions: wishes.permissions,
            thinking: wishes.thinking,
            timeout: timeout.map(duration::text),
            max_turns: wishes.max_turns,
            allowed_tools: wishes.allowed_tools.clone(),
            system_prompt: wishes.system.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<SettingsChange, String> {
        let change: SettingsChange =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        change.check().map(|()| change)
    }

    fn shown(wishes: &Wishes) -> Value {
        serde_json::to_value(SettingsView::from(wishes)).unwrap()
    }

    #[test]
    fn what_is_left_out_stays_and_null_clears() {
        let mut wishes = Wishes::default();
        let none = shown(&wishes);
        assert!(none.as_object().unwrap().values().all(Value::is_null), "{none}");
        let all = json!({
            "model": "opus", "permissions": "read-only", "thinking": "high", "timeout": "1h30m",
            "max_turns": 3, "allowed_tools": ["Read", "Bash(git *)"], "system_prompt": "Be\nbrief.",
        });
        let change = read(all.clone()).unwrap();
        assert_eq!(change.names().len(), none.as_object().unwrap().len());
        change.apply(&mut wishes);
        let mut expected = all;
        expected["timeout"] = json!("90m");
        assert_eq!(shown(&wishes), expected);
        read(json!({ "model": null, "timeout": 5, "allowed_tools": [] }))
            .unwrap()
            .apply(&mut wishes);
        expected["model"] = json!(null);
        expected["timeout"] = json!("5s");
        expected["allowed_tools"] = json!([]);
        assert_eq!(shown(&wishes), expected);
        read(json!({})).unwrap().apply(&mut wishes);
        assert_eq!(shown(&wishes), expected);
        let nothing: Value =
            expected.as_object().unwrap().keys().map(|key| (key.clone(), json!(null))).collect();
        read(nothing).unwrap().apply(&mut wishes);
        assert_eq!(wishes, Wishes::default());
    }

    #[test]
    fn what_no_agent_could_use_is_refused() {
        let (long, tools) = ("x".repeat(201), vec!["x"; 101]);
        for wrong in [
            json!({ "modle": "x" }),
            json!({ "model": "" }),
            json!({ "model": "--dangerous" }),
            json!({ "model": "a\u{0}" }),
            json!({ "model": long }),
            json!({ "model": 1 }),
            json!({ "permissions": "all" }),
            json!({ "thinking": "much" }),
            json!({ "timeout": 0 }),
            json!({ "timeout": "-5s" }),
            json!({ "timeout": "366d" }),
            json!({ "timeout": [] }),
            json!({ "max_turns": 0 }),
            json!({ "max_turns": -1 }),
            json!({ "allowed_tools": "Read" }),
            json!({ "allowed_tools": ["-x"] }),
            json!({ "allowed_tools": tools }),
            json!({ "system_prompt": " " }),
            json!({ "system_prompt": "a\u{1b}" }),
            json!({ "system_prompt": "x".repeat(64 * 1024 + 1) }),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_documented_words_are_those_that_are_read() {
        for (field, words) in [("permissions", &PERMISSIONS[..]), ("thinking", &THINKING)] {
            for word in words {
                let mut wishes = Wishes::default();
                read(json!({ field: word })).unwrap().apply(&mut wishes);
                assert_eq!(shown(&wishes)[field], *word);
            }
        }
    }
}
