//! What must hold for every agent in the table.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proptest::prelude::*;

use super::*;
use crate::{
    agent::play::{Recording, n_ends, play, transcript},
    lines::Lines,
    memo::Memo,
    request::{Format, Permissions, Template},
};

fn recordings(agent: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(agent);
    let mut found: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .flat_map(|version| fs::read_dir(version.unwrap().path()).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "stdout"))
        .collect();
    found.sort();
    assert!(found.len() > 50, "{agent} has recordings");
    found
}

/// Reads bytes in pieces, as a pipe would give them, and puts the lines together again.
fn through_lines(bytes: &[u8], pieces: &[usize]) -> Vec<u8> {
    let mut lines = Lines::default();
    let mut result = Vec::new();
    let mut add = |line: crate::lines::Line| {
        result.extend(line.bytes);
        result.push(b'\n');
    };
    let mut rest = bytes;
    let mut pieces = pieces.iter().cycle();
    while !rest.is_empty() {
        let size = pieces.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (mut piece, behind) = rest.split_at(size);
        while let Some(line) = lines.take(&mut piece) {
            add(line);
        }
        rest = behind;
    }
    lines.finish().into_iter().for_each(add);
    result
}

proptest! {
    #[test]
    fn any_split_of_any_recording_gives_the_same_events(
        agent in 0..AGENTS.len(),
        pick in any::<prop::sample::Index>(),
        pieces in prop::collection::vec(1..4000_usize, 1..20),
    ) {
        let spec = AGENTS[agent];
        let paths = recordings(&spec.name);
        let whole = Recording::read(pick.get::<PathBuf>(&paths));
        let split = Recording {
            stdout: through_lines(&whole.stdout, &pieces),
            stderr: through_lines(&whole.stderr, &pieces),
            exit: whole.exit.clone(),
        };
        let actions = play(spec, &split);
        prop_assert_eq!(transcript(&actions), transcript(&play(spec, &whole)));
        prop_assert_eq!(n_ends(&actions), 1);
    }

    #[test]
    fn a_recording_cut_anywhere_ends_once(
        agent in 0..AGENTS.len(),
        pick in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        code in prop::option::of(0..4_i32),
    ) {
        let spec = AGENTS[agent];
        let mut recording = Recording::read(pick.get::<PathBuf>(&recordings(&spec.name)));
        if !recording.stdout.is_empty() {
            recording.stdout.truncate(at.index(recording.stdout.len()));
        }
        recording.exit.code = code;
        recording.exit.signal = code.is_none().then_some(9);
        prop_assert_eq!(n_ends(&play(spec, &recording)), 1);
    }

    // Property 7: name resolution as the contract says.
    #[test]
    fn only_the_exact_names_are_names(name in "\\PC{0,12}|claude|codex|Claude|claudecode|CODEX") {
        let known = AGENTS.iter().any(|spec| spec.name == *name);
        prop_assert_eq!(resolve_backend(Some(&name)).is_ok(), known);
        prop_assert_eq!(resolve_provider(&name).is_ok(), known || name == "claudecode");
        if let Err(error) = resolve_backend(Some(&name)) {
            for spec in AGENTS {
                prop_assert!(error.to_string().contains(&*spec.name));
            }
        }
        if let Err(error) = resolve_provider(&name) {
            prop_assert!(error.to_string().starts_with("invalid agent provider"));
        }
    }

    #[test]
    fn no_prompt_and_no_setting_ever_becomes_an_option(
        agent in 0..AGENTS.len(),
        prompt in "\\PC{1,40}|--help|-x|@/etc/passwd|/clear|resume",
        format in prop::sample::select(vec![Format::StreamJson, Format::Json, Format::Text]),
        permissions in prop::sample::select(vec![Permissions::Bypass, Permissions::ReadOnly]),
        resumed in any::<bool>(),
    ) {
        let mut options = Options::new("/workspace");
        options.format = format;
        options.permissions = permissions;
        let open = if resumed { resume(&AGENTS[agent].name) } else { Open::New };
        let line = launch_of(AGENTS[agent], &options, &open, &prompt);
        let as_argument = line.args.iter().filter(|word| **word == *prompt).count();
        let plain = launch_of(AGENTS[agent], &options, &open, "0");
        let chance = plain.args.iter().filter(|word| **word == *prompt).count();
        if as_argument > chance {
            prop_assert_eq!(format, Format::Json);
            prop_assert!(!prompt.starts_with('-'), "{:?}", line.args);
        }
    }
}

fn resume(agent: &str) -> Open {
    Open::Resume(Box::new(Memo::of_id(agent, "11111111-2222-4333-8444-555555555555")))
}

fn launch_of(spec: &AgentSpec, options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (spec.launch)(&testing::launch_of(spec, options, open, prompt)).unwrap()
}

/// Fills in a template of two words, and returns its arguments.
fn from_template(spec: &AgentSpec, template: Template, open: &Open) -> String {
    let mut options = Options::new("/workspace");
    options.permissions = Permissions::Bypass;
    options.model = Some("m".to_owned());
    options.template = Some(template);
    let line = launch_of(spec, &options, open, "hello there");
    let words: Vec<_> = line.args.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn template(program: &str, format: Option<Format>) -> Template {
    let command = vec![program.to_owned(), "{{Body}}".to_owned()];
    let mut template = Template { command, format, ..Template::default() };
    template.variables.insert("SessionId".to_owned(), "new-id".to_owned());
    template
}

#[test]
fn a_template_gets_the_agents_own_flags_and_session_arguments() {
    let claude = |format, open| from_template(&claude::SPEC, template("claude", format), open);
    assert_eq!(
        claude(Some(Format::Json), &Open::New),
        "--output-format json --dangerously-skip-permissions --model m \
         --setting-sources user --strict-mcp-config -p --session-id new-id hello there"
    );
    assert_eq!(
        claude(None, &resume("claude")),
        "--dangerously-skip-permissions --model m --setting-sources user --strict-mcp-config -p \
         --resume 11111111-2222-4333-8444-555555555555 hello there"
    );
    let codex = |format, open| from_template(&codex::SPEC, template("codex", format), open);
    let safe = "--cd /workspace --model m -c features.unbounded_connection_retries=false \
                -c shell_environment_policy.ignore_default_excludes=false \
                -c analytics.enabled=false -c check_for_update_on_startup=false \
                -c project_root_markers=[] \
                -c projects={\"/workspace\"={trust_level=\"untrusted\"}}";
    assert_eq!(
        codex(Some(Format::Json), &Open::New),
        format!(
            "exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox {safe} \
             hello there"
        )
    );
    assert_eq!(
        codex(None, &resume("codex")),
        format!(
            "exec --color never --skip-git-repo-check \
             --dangerously-bypass-approvals-and-sandbox {safe} \
             resume 11111111-2222-4333-8444-555555555555 hello there"
        )
    );
    let pi = |format, open| from_template(&pi::SPEC, template("pi", format), open);
    assert_eq!(
        pi(Some(Format::Json), &Open::New),
        "-p --mode json --model m --no-extensions --no-prompt-templates --no-skills \
         --no-context-files --no-approve --session-id new-id hello there"
    );
    assert_eq!(
        pi(None, &resume("pi")),
        "-p --model m --tools read,bash,edit,write --no-extensions --no-prompt-templates \
         --no-skills --no-context-files --no-approve \
         --session 11111111-2222-4333-8444-555555555555 hello there"
    );
    // OpenCode would put quotes around a prompt with a space in it.
    let opencode =
        |format, open| from_template(&opencode::SPEC, template("opencode", format), open);
    assert_eq!(opencode(Some(Format::Json), &Open::New), "run --format json --auto --model m");
    assert_eq!(
        opencode(None, &resume("opencode")),
        "run --auto --model m --dir /workspace --session 11111111-2222-4333-8444-555555555555"
    );
    let gemini = |format, open| from_template(&gemini::SPEC, template("gemini", format), open);
    assert_eq!(
        gemini(Some(Format::Json), &Open::New),
        "--output-format json --approval-mode yolo --skip-trust --model m hello there"
    );
    assert_eq!(
        gemini(None, &resume("gemini")),
        "--approval-mode yolo --skip-trust --model m \
         --resume 11111111-2222-4333-8444-555555555555 hello there"
    );
}

#[test]
fn a_template_of_another_program_stays_as_it_is() {
    for spec in AGENTS {
        assert_eq!(
            from_template(spec, template("/usr/bin/wrapper", None), &Open::New),
            "hello there"
        );
    }
}

/// Fills in a template, and returns the words that are not the agent's own
/// flags, and what goes to standard input.
fn filled(spec: &AgentSpec, words: &[&str], prompt: &str, stripped: &str) -> (Vec<String>, String) {
    let mut options = Options::new("/workspace");
    options.permissions = Permissions::Bypass;
    let mut template = Template { format: Some(Format::Json), ..Template::default() };
    template.command = words.iter().map(|word| (*word).to_owned()).collect();
    template.variables.insert("BodyStripped".to_owned(), stripped.to_owned());
    template.session.new = Some(Vec::new());
    options.template = Some(template);
    let line = launch_of(spec, &options, &Open::New, prompt);
    let words = line.args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let stdin = match line.stdin {
        Stdin::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        Stdin::Null | Stdin::Open => String::new(),
    };
    (words, stdin)
}

#[test]
fn the_message_alone_is_as_little_an_option_or_a_command_as_the_whole_prompt() {
    for spec in AGENTS {
        let name: &str = &spec.program;
        for text in ["--hello", "-", "-hello"] {
            let (words, stdin) = filled(spec, &[name, "{{BodyStripped}}"], "other", text);
            assert_eq!(stdin, text, "{name}: {words:?}");
            assert!(!words.iter().any(|word| word == "other") && !stdin.contains("other"));
        }
    }
    let (words, stdin) = filled(&claude::SPEC, &["claude", "{{BodyStripped}}"], "x", "/clear");
    assert_eq!((words.last().unwrap().as_str(), stdin.as_str()), ("-p", "\n/clear"));
    let (words, _) = filled(&gemini::SPEC, &["gemini", "{{BodyStripped}}"], "x", "read @/etc/x");
    assert_eq!(words.last().unwrap(), "read \\@/etc/x");
}

#[test]
fn claudes_prompt_in_a_template_never_follows_a_flag_with_several_values() {
    let mut options = Options::new("/workspace");
    options.allowed_tools = Some(vec!["Read".to_owned()]);
    options.project_settings = crate::request::ProjectSettings::Trusted;
    let mut own = template("claude", None);
    own.session.new = Some(Vec::new());
    options.template = Some(own);
    let line = launch_of(&claude::SPEC, &options, &Open::New, "hello");
    let words: Vec<_> = line.args.iter().map(|word| word.to_string_lossy()).collect();
    assert!(words.join(" ").ends_with("--tools Read -p hello"), "{words:?}");
}

#[test]
fn a_very_long_prompt_of_a_template_goes_to_standard_input() {
    let long = "a".repeat(200 * 1024);
    for spec in AGENTS {
        let (words, stdin) = filled(spec, &[&spec.program, "{{Body}}"], &long, "");
        assert!(words.iter().all(|word| word.len() < 128 * 1024), "{}", spec.name);
        assert!(stdin.contains(&long), "{}", spec.name);
    }
}

#[test]
fn every_agent_says_how_to_get_it_and_which_versions_were_tested() {
    for spec in AGENTS {
        assert!(!spec.install_hint.is_empty() && !spec.tested_versions.is_empty());
        assert!(!spec.stop.is_empty() && !spec.identity.is_empty());
        let listed = |name: &&str| spec.env.contains(name);
        assert!(spec.home_env.iter().all(listed), "{}", spec.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1280))]

    // Property 8: a non-zero exit gives the fixed text
    #[test]
    fn a_non_zero_exit_is_a_failure_with_the_fixed_text(
        spec in prop::sample::select(AGENTS.to_vec()),
        code in 1..256_i32,
        stderr in any::<String>(),
    ) {
        let exit = testing::exit(code, &stderr);
        let actions = testing::play_any(spec, &Options::new("/workspace"), &Open::New, &[], &exit);
        let failure = testing::end_of(&actions).failure.clone().unwrap();
        let failure = failure.with_exit(&spec.title, code, &stderr);
        let shown: String = stderr.chars().take(500).collect();
        let shown = if stderr.is_empty() { "unknown error" } else { shown.as_str() };
        let expected = format!("{} CLI error (exit {code}): {shown}", spec.title);
        prop_assert_eq!(failure.response_text(), expected);
    }
}
