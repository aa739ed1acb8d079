//! A configuration key by key: to show it, and to compare two.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use super::key::Effect;
use super::{
    agents::Values,
    key::{self, KEYS},
    kind::Kind,
    load::Loaded,
    secret::SecretSource,
    section::Config,
};

/// One key, as it is shown. The field names are part of the contract.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    pub(crate) key: String,
    /// Secrets are hidden.
    pub(crate) value: Value,
    /// A file with line and column, a variable, a flag, or `default`.
    pub(crate) source: String,
}

/// Returns every key, with its value and where that comes from.
pub(crate) fn shown(loaded: &Loaded) -> Vec<Shown> {
    let show = |(key, mut value): (String, Value)| {
        if key == "gateway.data_dir" {
            // Where the environment leads if nobody says it.
            value = json!(loaded.host_config().data_dir);
        }
        if key == "prompt.dir" {
            value = json!(loaded.prompt_dir());
        }
        let source = loaded.source(&key).to_string();
        Shown { key, value, source }
    };
    by_key(&loaded.config, Values::Hidden).into_iter().map(show).collect()
}

/// A key whose value is another than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    pub(crate) key: String,
    pub(crate) effect: Effect,
}

/// Returns the keys that differ, in the order of the table, and says of each when
/// a gateway that runs takes the new value.
pub(crate) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let before: BTreeMap<_, _> = by_key(old, Values::Real).into_iter().collect();
    let after = by_key(new, Values::Real);
    let is_new = |(key, value): &&(String, Value)| before.get(key) != Some(value);
    let mut changed: Vec<&str> = after.iter().filter(is_new).map(|(key, _)| key.as_str()).collect();
    let is_gone = |key: &&str| !after.iter().any(|(other, _)| other == key);
    changed.extend(before.keys().map(String::as_str).filter(is_gone));
    let effect = |key: &str| key::find(key).map_or(Effect::Restart, |key| key.effect);
    changed.iter().map(|key| Change { key: (*key).to_owned(), effect: effect(key) }).collect()
}

/// Returns all values by their keys, in the order of the table.
fn by_key(config: &Config, values: Values) -> Vec<(String, Value)> {
    let tree = json!(config);
    let mut all = Vec::new();
    for key in KEYS {
        if key.path == "agents.*.dialect" {
            all.extend(config.agents.by_key(values));
        }
        if key.path == "hooks.*.on" {
            all.extend(config.hooks.by_key(values));
        }
        let pointer = format!("/{}", key.path.replace('.', "/"));
        let value = match (key.kind, values) {
            (Kind::Secret, Values::Real) => Some(secret(config, key.path)),
            (_, _) => tree.pointer(&pointer).cloned(),
        };
        all.extend(value.map(|value| (key.path.to_owned(), value)));
    }
    all
}

/// Returns a secret as it is, to be compared and dropped.
fn secret(config: &Config, path: &str) -> Value {
    let source = match path {
        "gateway.database_url" => &config.gateway.database_url,
        "opencode.password" => &config.opencode.password,
        "discord.token" => &config.discord.token,
        "twilio.auth_token" => &config.twilio.auth_token,
        "twilio.api_secret" => &config.twilio.api_secret,
        _ => &None,
    };
    match source {
        None => Value::Null,
        Some(SecretSource::Given(secret)) => json!(secret.reveal()),
        Some(SecretSource::File(path)) => json!({ "file": path }),
        Some(SecretSource::Command(command)) => json!({ "command": command }),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{load, load_with},
        *,
    };

    #[test]
    fn every_secret_of_the_table_is_compared() {
        let given = Some(SecretSource::Given(super::super::secret::Secret::new("x".to_owned())));
        let mut config = Config::default();
        config.gateway.database_url.clone_from(&given);
        config.opencode.password.clone_from(&given);
        config.twilio.auth_token.clone_from(&given);
        config.twilio.api_secret.clone_from(&given);
        config.discord.token = given;
        for key in KEYS.iter().filter(|key| key.kind == Kind::Secret) {
            assert_eq!(secret(&config, key.path), json!("x"), "{}", key.path);
        }
    }

    #[test]
    fn a_change_is_told_with_when_it_takes_effect() {
        let old = load("{ gateway: { listen: '127.0.0.1:1' }, busy: 'queue' }").unwrap();
        let new = load(
            "{ gateway: { listen: '127.0.0.1:2', max_queue_depth: 7 }, busy: 'steer',
               agents: { own: { dialect: 'acp', command: ['x'] } } }",
        )
        .unwrap();
        let told: Vec<_> = changes(&old.config, &new.config)
            .into_iter()
            .map(|change| (change.key, change.effect))
            .collect();
        let live = |key: &str| (key.to_owned(), Effect::Live);
        assert_eq!(
            told,
            [
                ("gateway.listen".to_owned(), Effect::Restart),
                live("gateway.max_queue_depth"),
                live("agents.own.dialect"),
                live("agents.own.command"),
                live("agents.own.env"),
                live("agents.own.pass_env"),
                live("agents.own.version"),
                live("busy"),
            ]
        );
        assert!(changes(&new.config, &new.config).is_empty());
        let gone = changes(&new.config, &old.config);
        assert!(
            gone.contains(&Change { key: "agents.own.command".to_owned(), effect: Effect::Live })
        );
    }

    #[test]
    fn a_new_secret_is_a_change_and_is_shown_nowhere() {
        let file = |word: &str| {
            format!(
                "{{ opencode: {{ password: '{word}' }}, agents: {{ own: {{ dialect: 'acp',
                   command: ['x'], env: {{ KEY: '{word}' }} }} }} }}"
            )
        };
        let (old, new) = (load(&file("very-secret")).unwrap(), load(&file("hunter2")).unwrap());
        let changed = changes(&old.config, &new.config);
        let keys: Vec<_> = changed.iter().map(|change| change.key.as_str()).collect();
        assert_eq!(keys, ["agents.own.env", "opencode.password"]);
        let text = format!("{} {old:?} {changed:?}", json!(shown(&old)));
        assert!(!text.contains("very-secret") && text.contains("(hidden)"), "{text}");
    }

    #[test]
    fn the_source_of_each_value_is_shown() {
        let file = "{\n  agent: { model: 'from-file', max_turns: 3 },\n}";
        let loaded = load_with(file, &[("BACKEND_MODEL", "from-env")]).unwrap();
        let of = |key: &str| {
            let shown = shown(&loaded).into_iter().find(|shown| shown.key == key).unwrap();
            (shown.value, shown.source)
        };
        assert_eq!(of("agent.model"), (json!("from-env"), "BACKEND_MODEL".to_owned()));
        let (value, source) = of("agent.max_turns");
        assert_eq!(value, 3);
        assert!(source.ends_with("ostler.json5:2:43"), "{source}");
        assert_eq!(of("busy"), (json!("queue"), "default".to_owned()));
    }
}
