//! Requests and the command lines of the processes that are kept for them.

use super::*;
use crate::{
    agent::{Stdin, testing::variable},
    request::{Format, Permissions, Thinking},
};

fn line(options: &Options, open: &Open) -> CommandLine {
    (SPEC.warm.unwrap().launch)(&warm_launch(options, open)).unwrap()
}

#[test]
fn a_kept_process_reads_and_prints_json_lines_in_a_session_that_we_name() {
    let line = line(&options(), &Open::New);
    let expected = format!(
        "-p --input-format stream-json --output-format stream-json --verbose \
         --include-partial-messages --tools Read,Grep,Glob --setting-sources user \
         --strict-mcp-config --session-id {NEW_ID}"
    );
    assert_eq!(argv(&line), expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(line.stdin, Stdin::Open);
    assert!(line.warnings.is_empty());
}

#[test]
fn a_session_that_exists_is_resumed_and_no_other_is_named() {
    let line = line(&options(), &resume("an-id"));
    assert!(argv(&line).ends_with(&["--resume", "an-id"]));
    assert!(!argv(&line).contains(&"--session-id"));
}

#[test]
fn what_can_change_in_a_running_process_is_not_in_its_line() {
    let other = Options { model: Some("opus".into()), format: Format::Json, ..options() };
    assert_eq!(line(&other, &Open::New), line(&options(), &Open::New));
    for other in [
        Options { max_turns: Some(3), ..options() },
        Options { system_prompt: Some("Be brief.".into()), ..options() },
        Options { thinking: Some(Thinking::High), ..options() },
        Options { permissions: Permissions::Ask, ..options() },
    ] {
        assert_ne!(line(&other, &Open::New), line(&options(), &Open::New));
    }
}

#[test]
fn asking_really_asks_and_approves_nothing_beforehand() {
    let ask = Options { permissions: Permissions::Ask, ..options() };
    let all = line(&ask, &Open::New);
    let has = |line: &CommandLine, args: [&str; 2]| argv(line).windows(2).any(|some| some == args);
    assert!(has(&all, ["--permission-prompt-tool", "stdio"]));
    assert!(!argv(&all).contains(&"--tools"));
    assert!(!argv(&all).contains(&"--dangerously-skip-permissions"));
    assert!(all.warnings.is_empty());
    let some = Options { allowed_tools: Some(vec!["Bash(git log:*)".into()]), ..ask };
    let some = line(&some, &Open::New);
    assert!(has(&some, ["--tools", "Bash"]));
    assert!(!argv(&some).contains(&"--allowedTools"), "each call is still asked about");
}

#[test]
fn bypass_and_read_only_are_as_in_a_process_of_one_turn() {
    let bypass = Options { permissions: Permissions::Bypass, ..options() };
    let bypass = line(&bypass, &Open::New);
    assert!(argv(&bypass).contains(&"--dangerously-skip-permissions"));
    assert!(!argv(&bypass).contains(&"--permission-prompt-tool"));
    let read_only = line(&options(), &Open::New);
    assert!(argv(&read_only).windows(2).any(|args| args == ["--tools", "Read,Grep,Glob"]));
    assert!(!argv(&read_only).contains(&"--permission-prompt-tool"));
}

#[test]
fn the_settings_of_a_repository_stay_ignored_whatever_the_format() {
    let literal = Options { permissions: Permissions::Bypass, format: Format::Json, ..options() };
    assert!(argv(&line(&literal, &Open::New)).contains(&"--strict-mcp-config"));
}

#[test]
fn background_tasks_work_where_the_process_outlives_the_turn() {
    let line = line(&options(), &Open::New);
    assert_eq!(variable(&line, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"), None);
    assert_eq!(variable(&line, "CLAUDE_CODE_MAX_RETRIES"), Some("3"));
    assert_eq!(variable(&line, "CLAUDE_CODE_DISABLE_FILE_MENTIONS"), Some("1"));
}
