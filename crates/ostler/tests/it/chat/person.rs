//! A person at a terminal.

use super::{Held, go, player};
use crate::{support::Place, terminal::Terminal};

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn talk(place: &Place, held: Held, args: &str) -> Terminal {
    let program = player(place, held);
    let mut terminal = Terminal::start(
        place,
        &format!("chat --cold --bin {program} --permissions read-only {args}"),
    );
    terminal.wait_for("Ctrl-D to leave.");
    terminal
}

#[test]
fn an_answer_streams_below_its_prompt_and_tools_beside_it() {
    let place = Place::new();
    let mut terminal = talk(&place, Held::No, "");
    terminal.wait_for("> ");
    terminal.enter("sim:tool");
    terminal.wait_for("→ Bash: echo hi");
    terminal.wait_for("This is Ostler's scripted agent");
    terminal.wait_for("> ");
    terminal.enter("sim:history");
    terminal.wait_for("so far: 2");
    terminal.wait_for("> ");
    terminal.press(CTRL_D);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0));
    assert!(shown.contains("to go on: ostler chat --agent claude --session"), "{shown:?}");
}

#[test]
fn commands_change_the_conversation() {
    let place = Place::new();
    let mut terminal = talk(&place, Held::No, "");
    for (line, says) in [
        ("one", "prompt has 3 characters"),
        ("/help", "/agent NAME"),
        ("/model", "model: the agent's own choice"),
        ("/model opus", "model from the next prompt on: opus"),
        ("/model", "model: opus"),
        ("/agent", "agent: claude; there are claude, codex"),
        ("/agent nobody", "invalid agent provider \"nobody\""),
        ("/agent codex", "program `codex` was not found"),
        ("/stop", "nothing is running"),
        ("/sotp", "/help lists the commands"),
        ("/new", "a new session begins"),
        ("sim:history", "so far: 1"),
    ] {
        terminal.wait_for("> ");
        terminal.enter(line);
        terminal.wait_for(says);
    }
    terminal.wait_for("> ");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn ctrl_c_ends_the_answer_and_then_the_conversation() {
    let place = Place::new();
    let mut terminal = talk(&place, Held::UntilGo, "");
    terminal.wait_for("> ");
    terminal.enter("hello");
    // What is typed before the line is done belongs to the next one.
    terminal.wait_for("\n");
    terminal.enter("this waits");
    terminal.wait_for("this prompt waits as number 1");
    terminal.press(CTRL_C);
    terminal.wait_for("the prompt that waited is forgotten");
    terminal.wait_for("Query cancelled");
    terminal.wait_for("> ");
    terminal.press("half a line");
    terminal.press(CTRL_C);
    terminal.wait_for("> ");
    go(&place);
    terminal.enter("again");
    terminal.wait_for("prompt has 5 characters");
    terminal.wait_for("> ");
    terminal.press(CTRL_C);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown:?}");
}

#[test]
fn stop_ends_the_answer() {
    let place = Place::new();
    let mut terminal = talk(&place, Held::UntilGo, "hello");
    terminal.enter("/stop");
    terminal.wait_for("Query cancelled");
    terminal.wait_for("> ");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn several_pasted_lines_are_one_prompt() {
    let place = Place::new();
    let mut terminal = talk(&place, Held::No, "");
    terminal.wait_for("> ");
    terminal.press("\u{1b}[200~one\rtwo\u{1b}[201~");
    terminal.enter("");
    terminal.wait_for("prompt has 7 characters");
    terminal.wait_for("> ");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn ctrl_d_while_an_answer_runs_waits_for_its_end() {
    let place = Place::new();
    let mut terminal = talk(&place, Held::UntilGo, "hello");
    terminal.press(CTRL_D);
    go(&place);
    terminal.wait_for("prompt has 5 characters");
    assert_eq!(terminal.end().0, Some(0));
}
