//! The command line of a process that is kept.

use super::*;
use crate::{
    agent::Stdin,
    request::{Format, Permissions, PromptCommands},
};

fn line_of(options: &Options, open: &Open, version: Option<&str>) -> CommandLine {
    let launch = WarmLaunch {
        spec: &SPEC,
        options,
        open,
        new_id: "00000000-0000-0000-0000-000000000000",
        version,
        variables: &[],
        run_dir: std::path::Path::new("/run"),
    };
    (SPEC.warm.unwrap().launch)(&launch).unwrap()
}

#[test]
fn a_new_session_gets_the_protected_line_without_a_prompt() {
    let mut options = Options::new("/workspace");
    options.model = Some("stub/stub-model".to_owned());
    options.extra_args = vec!["--verbose".to_owned()];
    let line = line_of(&options, &Open::New, None);
    let expected = [
        "--mode",
        "rpc",
        "--verbose",
        "--provider",
        "stub",
        "--model",
        "stub-model",
        "--tools",
        "read,grep,find,ls",
        "--no-extensions",
        "--no-prompt-templates",
        "--no-skills",
        "--no-context-files",
        "--no-approve",
    ];
    assert_eq!(argv(&line), expected);
    assert_eq!(line.stdin, Stdin::Open);
    assert_eq!(variable(&line, "PI_OFFLINE"), Some("1"));
    assert!(line.warnings.is_empty());
}

#[test]
fn a_session_that_exists_is_named_and_all_else_is_as_for_a_new_one() {
    let mut options = Options::new("/workspace");
    options.permissions = Permissions::Bypass;
    let new = line_of(&options, &Open::New, None);
    let resumed = line_of(&options, &resume(SESSION), None);
    let mut words = argv(&resumed);
    let at = words.iter().position(|word| *word == "--session").unwrap();
    assert_eq!(words.drain(at..at + 2).collect::<Vec<_>>(), ["--session", SESSION]);
    assert_eq!(words, argv(&new));
    assert!(words.windows(2).any(|pair| pair == ["--tools", "read,bash,edit,write"]));
}

#[test]
fn the_line_is_the_same_before_and_after_the_version_is_known() {
    let options = Options::new("/workspace");
    let unknown = line_of(&options, &Open::New, None);
    for version in ["0.73.1", "0.87.1", "1.5.0"] {
        assert_eq!(line_of(&options, &Open::New, Some(version)), unknown, "{version}");
    }
}

#[test]
fn asking_for_permission_is_read_only_with_a_warning() {
    let mut options = Options::new("/workspace");
    options.permissions = Permissions::Ask;
    let line = line_of(&options, &Open::New, None);
    assert!(argv(&line).windows(2).any(|pair| pair == ["--tools", "read,grep,find,ls"]));
    assert_eq!(line.warnings, ["pi asks nobody before it runs a tool; running read-only"]);
}

#[test]
fn the_literal_form_is_for_one_turn_and_a_kept_process_stays_protected() {
    let mut options = Options::new("/workspace");
    options.permissions = Permissions::Bypass;
    options.format = Format::Json;
    assert!(options.is_literal());
    assert!(argv(&line_of(&options, &Open::New, None)).contains(&"--no-extensions"));
    options.prompt_commands = PromptCommands::On;
    assert!(!argv(&line_of(&options, &Open::New, None)).contains(&"--no-extensions"));
}

#[test]
fn a_spare_goes_on_with_a_session_whose_file_is_known() {
    let warm = SPEC.warm.unwrap();
    let mut memo = Memo::of_id("pi", SESSION);
    assert!(!(warm.adopts)(&memo));
    memo.file = Some("/sessions/x.jsonl".into());
    assert!((warm.adopts)(&memo));
}
