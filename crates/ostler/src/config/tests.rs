//! Settings: what the variables mean, what is wrong with a file, and which layer wins.

mod any;
mod heartbeat;
mod hooks;
mod server;
mod wrong;

use std::path::Path;

use serde_json::json;

use super::{
    load::{Flag, Loader, Trust},
    *,
};
use crate::logging::{Form, Level};

pub(super) fn read(pairs: &[(&str, &str)]) -> Result<Settings, Problems> {
    Settings::from_environment(variables(pairs))
}

fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Reads a file with this text and nothing else.
pub(super) fn load(text: &str) -> Result<Loaded, String> {
    load_with(text, &[])
}

/// Reads a file with this text beside an environment. The folder in what is
/// said is left out.
pub(super) fn load_with(text: &str, pairs: &[(&str, &str)]) -> Result<Loaded, String> {
    load_files(&[("ostler.json5", text)], pairs, Trust::Everything)
}

fn load_files(
    files: &[(&str, &str)],
    pairs: &[(&str, &str)],
    trust: Trust,
) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let here = folder.path().to_owned();
    let loader =
        Loader { environment: variables(pairs), here, file: None, flags: Vec::new(), trust };
    let said = |problems: Problems| {
        problems.to_string().replace(&format!("{}/", folder.path().display()), "")
    };
    loader.load().map_err(said)
}

#[test]
fn unset_variables_mean_claude_and_the_agents_own_defaults() {
    let settings = read(&[]).unwrap();
    assert_eq!(settings.agent.name, "claude");
    assert_eq!((settings.program, settings.model, settings.max_turns), (None, None, None));
    assert!(settings.permissions.is_none() && settings.timeout == Duration::from_secs(600));
    assert!(!settings.is_agent_chosen);
}

#[test]
fn a_wrong_or_empty_backend_is_an_error_that_lists_the_valid_ones() {
    for name in ["", "Claude", "claudecode", "gpt"] {
        let error = read(&[("AGENT_BACKEND", name)]).unwrap_err().to_string();
        assert!(error.starts_with("AGENT_BACKEND: "), "{error}");
        assert!(error.contains("claude, codex, gemini, opencode, pi"), "{error}");
    }
    assert_eq!(read(&[("AGENT_BACKEND", "codex")]).unwrap().agent.name, "codex");
}

#[test]
fn the_agent_of_new_projects_may_have_its_older_name() {
    let project = |name| load_with("{}", &[("CODE_AGENT_DEFAULT", name)]);
    assert_eq!(project("claudecode").unwrap().config.agent.project_default, "claude");
    assert_eq!(project("pi").unwrap().config.agent.project_default, "pi");
    assert_eq!(project("").unwrap().config.agent.project_default, "claude");
    assert!(project("duck").unwrap_err().starts_with("CODE_AGENT_DEFAULT: invalid agent provider"));
}

#[test]
fn an_unreadable_turn_limit_is_25_and_a_warning() {
    for value in ["many", "0", "-3", "99999999999"] {
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
fn a_backend_without_a_permission_is_noted() {
    let notes = |pairs: &[(&str, &str)]| load_with("{}", pairs).unwrap().notes.len();
    assert_eq!(notes(&[("AGENT_BACKEND", "codex")]), 1);
    assert_eq!(notes(&[("AGENT_BACKEND", "codex"), ("PERMISSION_MODE", "bypassPermissions")]), 0);
    assert_eq!(notes(&[]), 0);
}

#[test]
fn tools_are_separated_by_commas_and_a_zero_timeout_is_refused() {
    let tools = read(&[("ALLOWED_TOOLS", "Bash, Read,,")]).unwrap().allowed_tools;
    assert_eq!(tools, Some(vec!["Bash".to_owned(), "Read".to_owned()]));
    assert_eq!(read(&[("ALLOWED_TOOLS", ",")]).unwrap().allowed_tools, None);
    let error = read(&[("QUERY_TIMEOUT_MS", "0")]).unwrap_err().to_string();
    assert!(error.contains("invalid timeout"), "{error}");
    let timeout = read(&[("QUERY_TIMEOUT_MS", "1500")]).unwrap().timeout;
    assert_eq!(timeout, Duration::from_millis(1500));
}

#[test]
fn all_wrong_variables_and_keys_are_told_at_once() {
    let pairs = [
        ("AGENT_BACKEND", ""),
        ("QUERY_TIMEOUT_MS", "soon"),
        ("MAX_QUEUE_DEPTH", "0"),
        ("OPENCODE_ENABLED", "maybe"),
    ];
    let said =
        load_with("{ buzy: 1, retry: { max: 'x' }, agent: { project_default: 'y' } }", &pairs);
    let said = said.unwrap_err();
    let lines: Vec<_> = said.lines().collect();
    let starts = [
        "ostler.json5:1:3: buzy: unknown key; did you mean `busy`?",
        "ostler.json5:1:26: retry.max: expected a number, found a text",
        "AGENT_BACKEND: ",
        "QUERY_TIMEOUT_MS: ",
        "MAX_QUEUE_DEPTH: ",
        "OPENCODE_ENABLED: ",
        "ostler.json5:1:59: agent.project_default: invalid agent provider \"y\"",
    ];
    assert_eq!(lines.len(), starts.len(), "{said}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn a_default_agent_that_is_there_but_wrong_is_told_once() {
    let said = load("{ agent: { default: 'own' }, agents: { own: { dialect: 'acp' } } }");
    assert_eq!(said.unwrap_err(), "ostler.json5:1:45: agents.own: missing key `command`");
}

#[test]
fn prompt_files_lie_where_config_dir_says_else_in_the_data_folder() {
    let dir = |file: &str, pairs: &[(&str, &str)]| load_with(file, pairs).unwrap().prompt_dir();
    let data = ("OSTLER_DATA_DIR", "/data");
    assert_eq!(dir("{}", &[data]), Path::new("/data/prompt"));
    assert_eq!(dir("{}", &[data, ("CONFIG_DIR", "")]), Path::new("/data/prompt"));
    assert_eq!(dir("{ prompt: { dir: '/a' } }", &[data]), Path::new("/a"));
    assert_eq!(dir("{ prompt: { dir: '/a' } }", &[("CONFIG_DIR", "/b")]), Path::new("/b"));
    assert!(dir("{}", &[("CONFIG_DIR", "b")]).is_absolute());
    let folder = load_files(&[(".env", "CONFIG_DIR=me\n")], &[], Trust::Everything).unwrap();
    assert!(folder.prompt_dir().ends_with("me") && folder.prompt_dir().is_absolute());
    let stranger = load_files(&[(".env", "CONFIG_DIR=me\n")], &[data], Trust::Named).unwrap();
    assert_eq!(stranger.prompt_dir(), Path::new("/data/prompt"));
}

#[test]
fn variables_of_parts_to_come_are_no_error() {
    let pairs = [("WOODPECKER_URL", "x"), ("WOODPECKER_API_TOKEN", "x")];
    let loaded = load_with("{}", &pairs).unwrap();
    assert_eq!(loaded.unused, ["WOODPECKER_URL", "WOODPECKER_API_TOKEN"]);
}

#[test]
fn a_log_level_that_another_program_was_given_is_a_warning() {
    for (text, level, n_warnings) in [
        ("DEBUG", Level::Debug, 0),
        ("trace", Level::Trace, 0),
        ("Warning", Level::Warn, 0),
        ("", Level::Error, 0),
        ("verbose", Level::Info, 1),
    ] {
        let file = "{ gateway: { log_level: 'error', log_format: 'json' } }";
        let loaded = load_with(file, &[("LOG_LEVEL", text)]).unwrap();
        let gateway = &loaded.config.gateway;
        assert_eq!((gateway.log_level, gateway.log_format), (level, Form::Json), "{text}");
        assert_eq!(loaded.warnings.len(), n_warnings, "{:?}", loaded.warnings);
    }
    assert!(load("{ gateway: { log_level: 'verbose' } }").unwrap_err().contains("none of error"));
}

#[test]
fn flags_come_before_variables_and_these_before_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{ gateway: { max_queue_depth: 1, max_concurrent_turns: 1, listen: '[::1]:1' } }";
    std::fs::write(folder.path().join("ostler.json5"), text).unwrap();
    let pairs = [("MAX_QUEUE_DEPTH", "2"), ("MAX_CONCURRENT_QUERIES", "2")];
    let flag = Flag { name: "--depth", key: "gateway.max_queue_depth", value: json!(3) };
    let mut loader = Loader {
        environment: variables(&pairs),
        here: folder.path().to_owned(),
        file: None,
        flags: vec![flag],
        trust: Trust::Everything,
    };
    let loaded = loader.load().unwrap();
    let gateway = &loaded.config.gateway;
    assert_eq!((gateway.max_queue_depth, gateway.max_concurrent_turns), (3, 2));
    assert_eq!(gateway.listen.port(), 1);
    assert_eq!(loaded.source("gateway.max_queue_depth").to_string(), "--depth");
    loader.flags[0].value = json!(0);
    let error = loader.load().unwrap_err().to_string();
    assert!(error.starts_with("--depth: 0 is not"), "{error}");
}

#[test]
fn a_dotenv_file_comes_after_real_variables_even_empty_ones() {
    let files = [(".env", "BACKEND_MODEL=from-file\nAGENT_BACKEND=codex\nnonsense\n")];
    let pairs = [("BACKEND_MODEL", "")];
    let loaded = load_files(&files, &pairs, Trust::Named).unwrap();
    assert_eq!(loaded.config.agent.model, None);
    assert_eq!(loaded.config.agent.default, "codex");
    assert!(loaded.source("agent.default").to_string().ends_with(".env:2: AGENT_BACKEND"));
    assert!(loaded.warnings[0].contains(".env:3: not a line"), "{:?}", loaded.warnings);
    let wrong = load_files(&[(".env", "\nAGENT_BACKEND=x")], &[], Trust::Named).unwrap_err();
    assert!(wrong.starts_with(".env:2: AGENT_BACKEND: unknown agent"), "{wrong}");
}

#[test]
fn a_strangers_directory_starts_no_program_and_allows_nothing() {
    let file = "{ agent: { path: './claude', model: 'm', permissions: 'bypass' },
                  opencode: { enabled: true, password: { command: ['./steal'] } } }";
    let files = [("ostler.json5", file), (".env", "ALLOWED_TOOLS=Bash\n")];
    let loaded = load_files(&files, &[], Trust::Named).unwrap();
    let agent = &loaded.config.agent;
    assert_eq!(agent.model.as_deref(), Some("m"));
    assert!(agent.path.is_none() && agent.permissions.is_none() && agent.allowed_tools.is_none());
    assert!(!loaded.config.opencode.enabled && loaded.config.opencode.password.is_none());
    assert_eq!(loaded.warnings.len(), 5, "{:?}", loaded.warnings);
    let trusted = load_files(&files, &[], Trust::Everything).unwrap();
    assert!(trusted.config.agent.path.is_some() && trusted.warnings.is_empty());
}

#[test]
fn a_variable_that_agents_get_may_come_from_the_dotenv_file_if_it_is_named() {
    let files =
        [("ostler.json5", "{ agent: { env: ['A', 'B'] } }"), (".env", "A=1\nB=2\nOTHER=3\n")];
    let loaded = load_files(&files, &[("B", "real")], Trust::Everything).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let settings = runtime.block_on(Settings::new(loaded, None)).unwrap();
    let expected = [("A".to_owned(), Some("1".to_owned())), ("B".to_owned(), None)];
    assert_eq!(settings.env, expected);
}

#[test]
fn the_reply_block_means_what_other_keys_mean() {
    let loaded = load(
        "{ inbound: { reply: { agent: { kind: 'claudecode', format: 'json', identityPrefix: '' },
             timeoutSeconds: 90, session: { scope: 'per-sender', idleMinutes: 5,
             resetTriggers: ['/reset'], sendSystemOnce: true } } } }",
    )
    .unwrap();
    let config = &loaded.config;
    assert_eq!((config.agent.default.as_str(), config.agent.timeout.as_secs()), ("claude", 90));
    assert_eq!(config.sessions.scope, section::Scope::PerSender);
    assert_eq!(config.sessions.idle, Some(Duration::from_secs(300)));
    assert_eq!(config.sessions.reset_words, ["/reset"]);
    let reply = config.inbound.reply.as_ref().unwrap();
    assert!(reply.session.send_system_once);
    assert_eq!(reply.agent.identity_prefix.as_deref(), Some(""));
    let bare = load("{ inbound: { reply: { agent: { kind: 'pi' } } } }").unwrap();
    assert!(bare.config.inbound.reply.is_some() && bare.config.agent.default == "pi");
    let over = load_with(
        "{ inbound: { reply: { agent: { kind: 'pi' } } } }",
        &[("AGENT_BACKEND", "codex")],
    );
    assert_eq!(over.unwrap().config.agent.default, "codex");
    let twice =
        load("{ agent: { default: 'pi' }, inbound: { reply: { agent: { kind: 'codex' } } } }");
    assert!(
        twice.unwrap_err().contains("inbound.reply.agent.kind: agent.default is there as well")
    );
}

#[test]
fn the_examples_of_the_page_about_replies_are_configurations() {
    let page = include_str!("../../../../docs/inbound-reply.md");
    let mut keys = Vec::new();
    for example in page.split("```json5\n").skip(1) {
        let (example, _) = example.split_once("```").unwrap();
        let loaded = load(example).unwrap_or_else(|said| panic!("{said}\n{example}"));
        assert!(loaded.config.inbound.reply.is_some(), "{example}");
        keys.push(example);
    }
    let all = keys.concat();
    for key in key::KEYS.iter().filter(|key| key.path.starts_with("inbound.reply.")) {
        let name = key.path.rsplit('.').next().unwrap();
        assert!(all.contains(&format!("{name}:")), "no example has {name}");
    }
}

#[test]
fn agents_of_ones_own_are_read_in_their_order() {
    let text = "
        // Comments and trailing commas are fine.
        { agents: {
            zed: { dialect: 'acp', command: ['zed'], },
            goose: { dialect: 'acp', command: ['goose', 'acp'], env: { A: 'b' },
                     pass_env: ['OPENAI_API_KEY'], version: ['goose', '--version'] },
        }, agent: { default: 'goose' } }";
    let names = |text: &str| -> Vec<String> {
        load(text).unwrap().config.agents.iter().map(|agent| agent.name.clone()).collect()
    };
    assert_eq!(names(text), ["zed", "goose"]);
    assert!(names("{}").is_empty());
    assert!(names("\u{feff}{ agents: {} }").is_empty());
    assert_eq!(load(text).unwrap().config.agent.default, "goose");
}

#[test]
fn a_relative_path_is_seen_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json5");
    let text = "{ agents: { a: { dialect: 'acp', command: ['bin/a', './b'], version: ['./v'] },
                            b: { dialect: 'acp', command: ['b'] } },
                  agent: { path: './own/claude' }, gateway: { data_dir: 'state' }, prompt: { dir: 'me' },
                  inbound: { reply: { agent: { kind: 'pi' }, cwd: '~/work' } },
                  opencode: { password: { file: 'secret' } } }";
    std::fs::write(&path, text).unwrap();
    let (environment, here) = (variables(&[("HOME", "/home/me")]), PathBuf::new());
    let trust = Trust::Named;
    let loader = Loader { environment, here, file: Some(path), flags: Vec::new(), trust };
    let loaded = loader.load().unwrap();
    let agents: Vec<_> = loaded.config.agents.iter().collect();
    let here = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(agents[0].command, [here("bin/a"), "./b".to_owned()]);
    assert_eq!(agents[0].version.as_ref().unwrap(), &[here("./v")]);
    assert_eq!(agents[1].command, ["b"]);
    assert_eq!(loaded.config.agent.path.as_deref(), Some(Path::new(&here("own/claude"))));
    assert_eq!(loaded.host_config().data_dir, folder.path().join("state"));
    assert_eq!(loaded.prompt_dir(), folder.path().join("me"));
    let cwd = loaded.config.inbound.reply.unwrap().cwd.unwrap();
    assert_eq!(cwd, Path::new("/home/me/work"));
    let password = json!(loaded.config.opencode.password);
    assert_eq!(password, json!({ "file": here("secret") }));
}
