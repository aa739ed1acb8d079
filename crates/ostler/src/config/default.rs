//! The default file: every key with what it is for, embedded in the program.

/// The text of the file. Lines that begin with `//:` are keys that are not set
/// unless somebody takes these three characters away.
pub(crate) const TEXT: &str = include_str!("../../config.default.json5");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{file::Found, key::KEYS, section::Config, tests::load, walk},
        *,
    };

    fn uncommented() -> String {
        TEXT.replace("//:", "")
    }

    #[test]
    fn the_file_says_exactly_what_the_defaults_are() {
        let loaded = load(TEXT).unwrap();
        assert_eq!(json!(loaded.config), json!(Config::default()));
        assert_eq!(loaded.config.agents.iter().count(), 0);
        assert_eq!(loaded.config.hooks.iter().count(), 0);
    }

    #[test]
    fn every_key_is_in_it_and_the_examples_can_be_read() {
        let text = uncommented();
        load(&text).unwrap();
        let node: serde_json::Value = json5::from_str(&text).unwrap();
        for key in KEYS {
            let names: Vec<&str> = key.path.split('.').collect();
            assert!(has(&node, &names), "{} is missing", key.path);
        }
    }

    /// Whether there is such a key, below any name where the table says so.
    fn has(node: &serde_json::Value, names: &[&str]) -> bool {
        match names {
            [] => true,
            ["*", rest @ ..] => node.as_object().unwrap().values().any(|node| has(node, rest)),
            [name, rest @ ..] => node.get(name).is_some_and(|node| has(node, rest)),
        }
    }

    #[test]
    fn a_key_has_a_comment() {
        let text = uncommented();
        let found = Found { path: "x".into(), is_local: false };
        assert!(walk::read(&found, &text).problems.is_empty());
        for line in
            TEXT.lines().filter(|line| line.trim_end().ends_with(',') && line.contains(": "))
        {
            assert!(line.contains("//"), "no comment on: {line}");
        }
    }
}
