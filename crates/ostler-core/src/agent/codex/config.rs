//! The values of `-c key=value`, which Codex parses as TOML.
//!
//! A value that is not valid TOML is taken as a bare string, so `true` would
//! become a boolean and break the start: every string is encoded.

use std::fmt::Write as _;

/// Encodes text as a basic TOML string, quotes included.
pub(super) fn toml_string(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + 2);
    encoded.push('"');
    for c in text.chars() {
        match c {
            '"' => encoded.push_str("\\\""),
            '\\' => encoded.push_str("\\\\"),
            '\n' => encoded.push_str("\\n"),
            '\r' => encoded.push_str("\\r"),
            '\t' => encoded.push_str("\\t"),
            // TOML has no other control characters in a string, DEL included.
            c if c.is_ascii_control() => {
                // Writing to a string cannot fail.
                write!(encoded, "\\u{:04X}", u32::from(c)).ok();
            }
            c => encoded.push(c),
        }
    }
    encoded.push('"');
    encoded
}

/// The provider that the operator both chooses and defines in extra arguments.
///
/// Retries can be bounded for such a one only. The CLI refuses to start when a
/// built-in provider is configured, or one that nobody gave a name, and what
/// the user's own configuration defines cannot be seen from here.
pub(super) fn defined_provider(extra_args: &[String]) -> Option<&str> {
    let overrides = || overrides(extra_args);
    let chosen = overrides()
        .filter(|(key, _)| *key == "model_provider")
        .last()
        .map(|(_, value)| value.trim_matches(['"', '\'']))?;
    let is_bare_key = !chosen.is_empty()
        && chosen.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let is_defined = overrides().any(|(key, _)| {
        key.strip_prefix("model_providers.")
            .and_then(|rest| rest.strip_prefix(chosen))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    (is_bare_key && is_defined).then_some(chosen)
}

/// The settings among the arguments, in any of the four ways to write them.
fn overrides(args: &[String]) -> impl Iterator<Item = (&str, &str)> {
    args.iter().enumerate().filter_map(|(at, arg)| {
        let setting = match arg.as_str() {
            "-c" | "--config" => args.get(at + 1)?.as_str(),
            arg => arg
                .strip_prefix("--config=")
                .or_else(|| arg.strip_prefix("-c").filter(|_| !arg.starts_with("--")))?,
        };
        let (key, value) = setting.split_once('=')?;
        Some((key.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes a basic TOML string by the rules of its specification, knowing
    /// nothing of how it was encoded.
    fn decode(encoded: &str) -> Option<String> {
        let body = encoded.strip_prefix('"')?.strip_suffix('"')?;
        let mut text = String::new();
        let mut chars = body.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => return None,
                '\\' => text.push(match chars.next()? {
                    'b' => '\u{8}',
                    't' => '\t',
                    'n' => '\n',
                    'f' => '\u{c}',
                    'r' => '\r',
                    '"' => '"',
                    '\\' => '\\',
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                    }
                    _ => return None,
                }),
                '\t' => text.push(c),
                c if c.is_ascii_control() => return None,
                c => text.push(c),
            }
        }
        Some(text)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn any_text_survives_as_a_toml_string(text in any::<String>()) {
            prop_assert_eq!(decode(&toml_string(&text)), Some(text));
        }
    }

    #[test]
    fn words_that_toml_would_take_for_something_else_stay_strings() {
        for (text, encoded) in [
            ("true", "\"true\""),
            ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("\u{0}\u{7f}\n/é🚀", "\"\\u0000\\u007F\\n/é🚀\""),
            ("", "\"\""),
        ] {
            assert_eq!(toml_string(text), encoded);
        }
    }

    #[test]
    fn a_provider_counts_only_when_it_is_chosen_and_defined_here() {
        let provider = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            defined_provider(&args).map(str::to_owned)
        };
        let table = "model_providers.sim={name=\"sim\"}";
        assert_eq!(provider(&["-c", "model_provider=sim", "-c", table]).as_deref(), Some("sim"));
        assert_eq!(
            provider(&["--config=model_provider=\"sim\"", "-cmodel_providers.sim.name=\"sim\""])
                .as_deref(),
            Some("sim")
        );
        assert_eq!(provider(&["-c", "model_provider=sim"]), None);
        assert_eq!(provider(&["-c", table]), None);
        assert_eq!(provider(&["-c", "model_provider=si", "-c", table]), None);
        assert_eq!(provider(&["-c", "model_provider=\"a b\"", "-c"]), None);
        assert_eq!(provider(&["-c"]), None);
    }
}
