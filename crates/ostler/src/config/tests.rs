//! Settings: what the variables mean, and what is wrong with a file.

use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    Settings::from_environment(pairs.iter().map(|(k, v)| (k.into(), v.into())).collect())
}

#[test]
fn unset_variables_mean_claude_and_the_agents_own_defaults() {
    let settings = read(&[]).unwrap();
    assert_eq!(settings.agent.name, "claude");
    assert_eq!((settings.program, settings.model, settings.max_turns), (None, None, None));
    assert!(settings.permissions.is_none() && settings.timeout.is_none());
}

#[test]
fn a_wrong_or_empty_backend_is_an_error_that_lists_the_valid_ones() {
    for name in ["", "Claude", "claudecode", "gpt"] {
        let error = read(&[("AGENT_BACKEND", name)]).unwrap_err().to_string();
        assert!(error.contains("claude, codex, gemini, opencode, pi"), "{error}");
    }
    assert_eq!(read(&[("AGENT_BACKEND", "codex")]).unwrap().agent.name, "codex");
}

#[test]
fn an_unreadable_turn_limit_is_25_and_a_warning() {
    for value in ["many", "0", "-3"] {
        let settings = read(&[("BACKEND_MAX_TURNS", value)]).unwrap();
        assert_eq!(settings.max_turns, Some(25));
        assert_eq!(settings.warnings.len(), 1);
    }
    assert_eq!(read(&[("BACKEND_MAX_TURNS", "7")]).unwrap().max_turns, Some(7));
}

#[test]
fn the_older_permission_words_keep_their_meaning() {
    let mode = |value| read(&[("PERMISSION_MODE", value)]).unwrap().permissions;
    assert_eq!(mode("bypassPermissions"), Some(Permissions::Bypass));
    assert_eq!(mode("plan"), Some(Permissions::ReadOnly));
    assert!(read(&[("PERMISSION_MODE", "yes")]).is_err());
}

#[test]
fn tools_are_separated_by_commas_and_a_zero_timeout_is_refused() {
    let tools = read(&[("ALLOWED_TOOLS", "Bash, Read,,")]).unwrap().allowed_tools;
    assert_eq!(tools, Some(vec!["Bash".to_owned(), "Read".to_owned()]));
    assert_eq!(read(&[("ALLOWED_TOOLS", ",")]).unwrap().allowed_tools, None);
    let error = read(&[("QUERY_TIMEOUT_MS", "0")]).unwrap_err().to_string();
    assert!(error.contains("invalid timeout"), "{error}");
}
