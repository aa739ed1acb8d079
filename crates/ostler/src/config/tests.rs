//! Settings: what the variables mean, and what is wrong with a file.

use super::*;

pub(super) fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
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

/// Reads a file with this text; the path in what is said is cut to its name.
fn read_file(text: &str) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ostler.json5");
    std::fs::write(&path, text).unwrap();
    let said = |error: file::FileError| {
        error.to_string().replace(&format!("{}/", folder.path().display()), "")
    };
    let file = file::read(&path).map_err(said)?;
    Ok(file.agents.into_vec().into_iter().map(|agent| agent.name).collect())
}

#[test]
fn agents_of_ones_own_are_read_in_their_order() {
    let text = "
        // Comments and trailing commas are fine.
        { agents: {
            zed: { dialect: 'acp', command: ['zed'], },
            goose: { dialect: 'acp', command: ['goose', 'acp'], env: { A: 'b' },
                     pass_env: ['OPENAI_API_KEY'], version: ['goose', '--version'] },
        } }";
    assert_eq!(read_file(text).unwrap(), ["zed", "goose"]);
    assert!(read_file("{}").unwrap().is_empty());
    assert!(read_file("{ agents: {} }").unwrap().is_empty());
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_key_and_place() {
    let agent = |rest: &str| format!("{{\n  agents: {{\n    own: {{ {rest} }}\n  }}\n}}");
    let whole = "dialect: 'acp', command: ['x']";
    for (text, place, words) in [
        (String::new(), "ostler.json5", "EOF"),
        ("{ agents: {".to_owned(), "ostler.json5", "EOF"),
        ("{ agents: }".to_owned(), "ostler.json5:1:11", "expected"),
        ("{} {}".to_owned(), "ostler.json5:1:4", "trailing"),
        ("[]".to_owned(), "ostler.json5:1:1", "expected"),
        ("{ agent: {} }".to_owned(), "ostler.json5:1:3", "unknown field `agent`"),
        ("{ agents: [] }".to_owned(), "ostler.json5:1:11: agents", "expected"),
        (agent("dialect: 'acp', comand: ['x']"), "ostler.json5:3:28: agents.own.comand", "unknown"),
        (agent("dialect: 'acp'"), "ostler.json5:3:10: agents.own", "missing field `command`"),
        (agent("command: ['x']"), "ostler.json5:3:10: agents.own", "missing field `dialect`"),
        (agent("dialect: 'mcp', command: ['x']"), "ostler.json5:3:", "`mcp`"),
        (
            agent("dialect: 'acp', command: 'x'"),
            "ostler.json5:3:37: agents.own.command",
            "expected",
        ),
        (
            agent("dialect: 'acp', command: []"),
            "ostler.json5:3:37: agents.own.command",
            "no program",
        ),
        (agent("dialect: 'acp', command: ['']"), "agents.own.command", "no program"),
        (agent("dialect: 'acp', command: ['x', 1]"), "agents.own.command[1]", "expected"),
        (agent(&format!("{whole}, version: []")), "agents.own.version", "no program"),
        (agent(&format!("{whole}, env: {{ A: 1 }}")), "agents.own.env.A", "expected"),
        (agent(&format!("{whole}, env: {{ 'A=B': '' }}")), "agents.own.env", "A=B"),
        (agent(&format!("{whole}, pass_env: ['OPENAI_*']")), "agents.own.pass_env[0]", "exact"),
        (agent(&format!("{whole}, command: ['y']")), "agents.own", "duplicate"),
        ("{ agents: { Own: {} } }".to_owned(), "ostler.json5:1:13: agents", "no name"),
        ("{ agents: { claude: {} } }".to_owned(), "ostler.json5:1:13: agents", "taken"),
        ("{ agents: { claudecode: {} } }".to_owned(), "ostler.json5:1:13: agents", "taken"),
        (
            format!("{{ agents: {{ a: {{ {whole} }}, a: {{ {whole} }} }} }}"),
            "agents",
            "there twice",
        ),
    ] {
        let said = read_file(&text).expect_err(&text);
        assert!(said.contains(place) && said.contains(words), "{text}\n  {said}");
        assert!(said.starts_with("ostler.json5"), "{said}");
    }
}

#[test]
fn what_is_no_file_of_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let say = |path: &Path| file::read(path).unwrap_err().to_string();
    assert!(say(folder.path()).contains("is a directory"));
    assert!(say(&folder.path().join("nothing")).contains("could not be read"));
    assert!(say(Path::new("/dev/zero")).contains("is not a regular file"));
    let path = folder.path().join("x");
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(say(&path).contains("UTF-8"));
    std::fs::write(&path, " ".repeat(1024 * 1024 + 1)).unwrap();
    assert!(say(&path).contains("larger than 1 MiB"));
    std::fs::write(&path, "[".repeat(100_000)).unwrap();
    assert!(file::read(&path).is_err(), "deep nesting does not end the program");
}

#[test]
fn the_flag_comes_before_the_variable_and_that_before_the_usual_places() {
    let variables = |pairs: &[(&str, &str)]| -> Variables {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    };
    let named = variables(&[("OSTLER_CONFIG", "/by/variable"), ("HOME", "/nowhere")]);
    let flag = Path::new("/by/flag");
    let path = |found: Option<file::Found>| found.map(|found| found.path);
    assert_eq!(path(file::find(Some(flag), &named)).as_deref(), Some(flag));
    assert_eq!(path(file::find(None, &named)), Some(PathBuf::from("/by/variable")));
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join(".config/ostler/ostler.json5");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    let empty = variables(&[("OSTLER_CONFIG", ""), ("HOME", home.path().to_str().unwrap())]);
    assert_eq!(path(file::find(None, &empty)), None);
    std::fs::write(&place, "{}").unwrap();
    assert_eq!(path(file::find(None, &empty)), Some(place));
}

#[test]
fn a_relative_program_is_seen_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json5");
    let text = "{ agents: { a: { dialect: 'acp', command: ['bin/a', './b'], version: ['./v'] },
                            b: { dialect: 'acp', command: ['b'] } } }";
    std::fs::write(&path, text).unwrap();
    let agents = file::read(&path).unwrap().agents.into_vec();
    let here = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(agents[0].command, [here("bin/a"), "./b".to_owned()]);
    assert_eq!(agents[0].version.as_ref().unwrap(), &[here("./v")]);
    assert_eq!(agents[1].command, ["b"]);
}
