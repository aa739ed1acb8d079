//! The settings that Ostler gives OpenCode for one turn.

use serde_json::{Value, json};

use super::*;

fn content(line: &CommandLine) -> Value {
    serde_json::from_str(&variable(line, "OPENCODE_CONFIG_CONTENT").unwrap()).unwrap()
}

fn rules(options: &Options) -> Value {
    let line = command_line(options, &Open::New, "hi");
    content(&line)["agent"]["ostler"]["permission"].clone()
}

fn with_tools(permissions: Permissions, tools: &[&str]) -> Options {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    Options { permissions, allowed_tools: Some(tools), ..Options::new("/w") }
}

#[test]
fn trap_read_only_is_an_agent_of_our_own_because_only_its_rules_come_last() {
    let options = Options::new("/w");
    let line = command_line(&options, &Open::New, "hi");
    let args = argv(&line);
    let at = args.iter().position(|arg| *arg == "--agent").unwrap();
    assert_eq!(args[at + 1], "ostler");
    assert!(!args.contains(&"--auto"));
    assert_eq!(content(&line)["agent"]["ostler"]["mode"], "primary");
    assert_eq!(
        rules(&options),
        json!({
            "*": "deny",
            "bash": "deny",
            "doom_loop": "deny",
            "edit": "deny",
            "external_directory": "deny",
            "glob": "allow",
            "grep": "allow",
            "list": "allow",
            "read": {"*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow"},
            "skill": "deny",
            "task": "deny",
            "todowrite": "allow",
            "webfetch": "deny",
            "websearch": "deny",
        })
    );
    // Agents that our agent starts have the same rules.
    let everywhere: Value =
        serde_json::from_str(&variable(&line, "OPENCODE_PERMISSION").unwrap()).unwrap();
    assert_eq!(everywhere, rules(&options));
}

#[test]
fn the_refusal_of_everything_is_written_first_because_the_last_rule_counts() {
    let line = command_line(&with_tools(Permissions::Bypass, &["Bash"]), &Open::New, "hi");
    let text = variable(&line, "OPENCODE_CONFIG_CONTENT").unwrap();
    let at = |word: &str| text.find(word).unwrap();
    assert!(at(r#""*":"deny""#) < at(r#""bash":"allow""#), "{text}");
    assert!(at(r#""*":"deny""#) < at(r#""edit":"deny""#), "{text}");
}

#[test]
fn everything_allowed_says_nothing_and_leaves_the_users_agent_alone() {
    let line = command_line(&bypass(Format::StreamJson), &Open::New, "hi");
    assert!(!argv(&line).contains(&"--agent"));
    for name in ["OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG", "OPENCODE_PERMISSION"] {
        assert_eq!(variable(&line, name), None);
    }
    assert!(line.files.is_empty());
}

/// The rules that are not refusals.
fn allowed(options: &Options) -> Value {
    let Value::Object(mut rules) = rules(options) else { panic!("no rules") };
    assert_eq!(rules["*"], "deny");
    rules.retain(|_, action| action != "deny");
    Value::Object(rules)
}

#[test]
fn allowed_tools_are_the_only_ones_by_whichever_name() {
    let aside = json!({"doom_loop": "allow", "external_directory": "allow"});
    let with = |more: Value| {
        let mut all = aside.clone();
        let fields = more.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(fields);
        all
    };
    assert_eq!(
        allowed(&with_tools(Permissions::Bypass, &["Bash", "Write", "LS", "my_server_tool"])),
        with(json!({"bash": "allow", "edit": "allow", "list": "allow", "my_server_tool": "allow"}))
    );
    assert_eq!(
        allowed(&with_tools(Permissions::Bypass, &["Bash(git:*)", "bash(ls *)", "Read(src/**)"])),
        with(json!({
            "bash": {"*": "deny", "git *": "allow", "ls *": "allow"},
            "read": {"*": "deny", "src/**": "allow"},
        }))
    );
    assert_eq!(
        allowed(&with_tools(Permissions::Bypass, &["Bash", "Bash(git:*)"])),
        with(json!({"bash": "allow"}))
    );
    assert_eq!(allowed(&with_tools(Permissions::Bypass, &[])), aside);
}

#[test]
fn read_only_refuses_tools_that_touch_and_says_so() {
    let options = with_tools(Permissions::ReadOnly, &["Grep", "Bash", "Write"]);
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(line.warnings, ["not allowed, because the turn is read-only: Bash, Write"]);
    let rules = rules(&options);
    assert_eq!((&rules["grep"], &rules["bash"]), (&json!("allow"), &json!("deny")));
}

#[test]
fn a_system_prompt_is_a_file_of_instructions_on_every_turn() {
    let mut options = bypass(Format::StreamJson);
    options.system_prompt = Some("Be \"brief\" 🐎.\n".into());
    let memo = Memo { system_sent: true, ..Memo::of_id("opencode", SESSION) };
    for open in [Open::New, Open::Resume(Box::new(memo))] {
        let line = command_line(&options, &open, "hi");
        assert_eq!(content(&line)["instructions"], json!(["/run/system-prompt.md"]));
        assert_eq!(file(&line, "/run/system-prompt.md").unwrap(), "Be \"brief\" 🐎.\n");
        assert_eq!(stdin(&line), "hi");
    }
}

#[test]
fn trap_an_isolated_run_never_falls_back_to_a_hosted_service() {
    let mut options = bypass(Format::StreamJson);
    options.home = Some("/iso".into());
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(content(&line)["disabled_providers"], json!(["opencode"]));
    options.model = Some("opencode/big-pickle".into());
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(variable(&line, "OPENCODE_CONFIG_CONTENT"), None);
    options.model = None;
    options.env = vec![("OPENCODE_API_KEY".into(), None)];
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(variable(&line, "OPENCODE_CONFIG_CONTENT"), None);
}

#[test]
fn trap_a_variable_that_the_operator_names_is_the_operators() {
    let mut options = Options::new("/w");
    options.system_prompt = Some("Be brief.".into());
    options.env = vec![("OPENCODE_CONFIG_CONTENT".into(), Some("{}".into()))];
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(variable(&line, "OPENCODE_CONFIG_CONTENT"), None);
    assert_eq!(variable(&line, "OPENCODE_CONFIG").as_deref(), Some("/run/opencode.json"));
    let content: Value = serde_json::from_str(&file(&line, "/run/opencode.json").unwrap()).unwrap();
    assert_eq!(content["agent"]["ostler"]["permission"]["*"], "deny");
    assert_eq!(content["instructions"], json!(["/run/system-prompt.md"]));
    assert!(content["$schema"].is_string());
    assert!(line.warnings.is_empty(), "{:?}", line.warnings);

    options.env.push(("OPENCODE_CONFIG".into(), None));
    let line = command_line(&options, &Open::New, "hi");
    assert!(!argv(&line).contains(&"--agent"));
    assert!(line.files.is_empty());
    assert_eq!(stdin(&line), "Be brief.\n\nhi");
    assert!(variable(&line, "OPENCODE_PERMISSION").unwrap().contains(r#""*":"deny""#));
    assert_eq!(line.warnings.len(), 2, "{:?}", line.warnings);

    options.env.push(("OPENCODE_PERMISSION".into(), None));
    let line = command_line(&options, &Open::New, "hi");
    assert!(line.warnings[1].contains("nothing of Ostler's restricts"), "{:?}", line.warnings);
}

#[test]
fn a_system_prompt_that_goes_before_the_prompt_goes_there_once() {
    let mut options = bypass(Format::StreamJson);
    options.system_prompt = Some("Be brief.".into());
    options.env = vec![("OPENCODE_CONFIG_CONTENT".into(), None), ("OPENCODE_CONFIG".into(), None)];
    let memo = Memo::of_id("opencode", SESSION);
    let line = command_line(&options, &Open::Resume(Box::new(memo.clone())), "hi");
    assert_eq!(stdin(&line), "Be brief.\n\nhi");
    let memo = Memo { system_sent: true, ..memo };
    let line = command_line(&options, &Open::Resume(Box::new(memo)), "hi");
    assert_eq!(stdin(&line), "hi");
}

#[test]
fn trap_the_cli_replaces_variables_and_files_in_its_settings_before_it_reads_them() {
    let options = with_tools(Permissions::Bypass, &["{file:/etc/passwd}", "{env:HOME}"]);
    let line = command_line(&options, &Open::New, "hi");
    let text = variable(&line, "OPENCODE_CONFIG_CONTENT").unwrap();
    assert!(!text.contains("{file:") && !text.contains("{env:"), "{text}");
    assert_eq!(content(&line)["agent"]["ostler"]["permission"]["{env:HOME}"], "allow");
}
