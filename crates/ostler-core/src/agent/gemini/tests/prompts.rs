//! What reaches the model of a prompt.

use super::*;
use crate::{
    agent::gemini::prompt::as_plain_text,
    request::{PromptCommands, Thinking},
};

fn sent(options: &Options, open: &Open, prompt: &str) -> String {
    stdin(&command_line(options, open, prompt)).unwrap().to_owned()
}

#[test]
fn trap_a_slash_command_becomes_text_by_one_blank() {
    for prompt in ["/quit", "/init", "/etc/passwd", "//", "/"] {
        assert_eq!(sent(&options(), &Open::New, prompt), format!(" {prompt}"));
    }
    for prompt in ["say /quit", " /quit", "", "\n/quit"] {
        assert_eq!(sent(&options(), &Open::New, prompt), prompt);
    }
}

#[test]
fn trap_a_reference_to_a_file_becomes_text_by_one_backslash() {
    for (prompt, expected) in [
        ("see @hello.txt", "see \\@hello.txt"),
        ("@/etc/passwd", "\\@/etc/passwd"),
        ("mail a@b.c", "mail a\\@b.c"),
        ("@@x", "\\@\\@x"),
        ("@\"my file\"", "\\@\"my file\""),
        ("@.env", "\\@.env"),
        ("already \\@x", "already \\@x"),
        ("é@ü", "é\\@ü"),
    ] {
        assert_eq!(as_plain_text(prompt), expected);
    }
    for prompt in ["a @ b", "@", "@.", "@. x", "@, (@) @! @?\n@", "#note", "!ls", "$HOME"] {
        assert_eq!(as_plain_text(prompt), prompt);
    }
}

#[test]
fn commands_and_references_work_when_they_are_wanted() {
    let options = Options { prompt_commands: PromptCommands::On, ..options() };
    assert_eq!(sent(&options, &Open::New, "/init @a"), "/init @a");
}

#[test]
fn a_system_prompt_goes_before_the_prompt_once_per_session() {
    let options = Options { system_prompt: Some("Be brief.".into()), ..options() };
    assert_eq!(sent(&options, &Open::New, "hi"), "Be brief.\n\nhi");
    assert_eq!(sent(&options, &resume(SESSION), "hi"), "Be brief.\n\nhi");
    let memo = Memo { system_sent: true, ..Memo::of_id("gemini", SESSION) };
    assert_eq!(sent(&options, &Open::Resume(Box::new(memo)), "hi"), "hi");
    let options = Options { system_prompt: Some(String::new()), ..options };
    assert_eq!(sent(&options, &Open::New, "/hi"), " /hi");
}

#[test]
fn a_thinking_level_is_a_cue_after_the_prompt() {
    for (level, cue) in [
        (Thinking::Off, ""),
        (Thinking::Minimal, ""),
        (Thinking::Low, "\n\nThink before you answer."),
        (Thinking::Medium, "\n\nThink hard before you answer."),
        (Thinking::High, "\n\nThink very hard before you answer."),
    ] {
        let options = Options { thinking: Some(level), ..options() };
        assert_eq!(sent(&options, &Open::New, "hi"), format!("hi{cue}"));
    }
}

#[test]
fn trap_a_prompt_that_would_be_misread_as_an_argument_goes_to_standard_input() {
    let long = "x".repeat(64 * 1024 + 1);
    let misread =
        ["--help", "-", "0x10", "16", "1e3", "mcp", "skills", "'q'", "\"q\"", ".5", &long];
    for prompt in misread {
        let line = command_line(&literal(), &Open::New, prompt);
        assert_eq!(stdin(&line), Some(prompt));
        assert_eq!(argv(&line)[0], "--output-format", "{prompt:?}");
    }
    for prompt in ["mcp list", "é\n🚀", "x"] {
        let line = command_line(&literal(), &Open::New, prompt);
        assert_eq!((argv(&line)[0], stdin(&line)), (prompt, None));
    }
}
