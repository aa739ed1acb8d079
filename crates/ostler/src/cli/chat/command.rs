//! What a person can order with a slash.

/// What `/help` says.
pub(crate) const HELP: &str = concat!(
    "  /stop         end the running answer, and forget what waits\n",
    "  /new          begin a new session\n",
    "  /agent NAME   begin a new session with another agent\n",
    "  /model NAME   use another model from the next prompt on\n",
    "  /help         this\n",
    "Ctrl-C ends the running answer; a second one kills the agent. Ctrl-D ends the conversation.\n",
    "What you type while an answer runs waits for its end (see --when-busy).",
);

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Stop,
    New,
    /// Another agent, or a look at which one it is.
    Agent(Option<&'a str>),
    /// Another model, or a look at which one it is.
    Model(Option<&'a str>),
    Help,
}

/// What a typed line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed<'a> {
    Command(Command<'a>),
    /// It looks like a command, but is none.
    Unknown(&'a str),
    Prompt(&'a str),
}

/// Reads a line. Only a known word is a command: a prompt may begin with a path.
pub(crate) fn parse(line: &str) -> Typed<'_> {
    let trimmed = line.trim();
    let (word, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    let name = Some(rest.trim()).filter(|name| !name.is_empty());
    match (word, name) {
        ("/stop", None) => Typed::Command(Command::Stop),
        ("/new", None) => Typed::Command(Command::New),
        ("/agent", name) => Typed::Command(Command::Agent(name)),
        ("/model", name) => Typed::Command(Command::Model(name)),
        ("/help", None) => Typed::Command(Command::Help),
        (word, None) if is_like_a_command(word) => Typed::Unknown(word),
        _ => Typed::Prompt(line),
    }
}

fn is_like_a_command(word: &str) -> bool {
    word.strip_prefix('/').is_some_and(|name| name.chars().all(|c| c.is_ascii_lowercase()))
}

/// Returns what the start of a line may become, with these agents to choose from.
pub(crate) fn completions(start: &str, agents: &[String]) -> Vec<String> {
    let commands = ["/stop", "/new", "/agent ", "/model ", "/help"].map(str::to_owned);
    let agents = agents.iter().map(|name| format!("/agent {name}"));
    let all = commands.into_iter().chain(agents);
    if !start.starts_with('/') {
        return Vec::new();
    }
    let found: Vec<_> = all.filter(|word| word.starts_with(start) && word != start).collect();
    // The names are offered once it is clear that one is wanted.
    let short = found.iter().filter(|word| word.trim_end().split(' ').count() == 1);
    let short: Vec<_> = short.cloned().collect();
    if short.is_empty() { found } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_words_and_nothing_else() {
        for (line, expected) in [
            ("/stop", Typed::Command(Command::Stop)),
            (" /new ", Typed::Command(Command::New)),
            ("/agent codex", Typed::Command(Command::Agent(Some("codex")))),
            ("/agent", Typed::Command(Command::Agent(None))),
            ("/model  gpt-5 ", Typed::Command(Command::Model(Some("gpt-5")))),
            ("/help", Typed::Command(Command::Help)),
            ("/sotp", Typed::Unknown("/sotp")),
            ("/", Typed::Unknown("/")),
            ("/stop the car", Typed::Prompt("/stop the car")),
            ("/etc/hosts", Typed::Prompt("/etc/hosts")),
            ("/tmp what is in it?", Typed::Prompt("/tmp what is in it?")),
            ("hello /stop", Typed::Prompt("hello /stop")),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn commands_and_agents_are_completed() {
        let names = ["claude", "codex", "goose"].map(str::to_owned);
        let completions = |start| completions(start, &names);
        assert_eq!(completions("/s"), ["/stop"]);
        assert_eq!(completions("/a"), ["/agent "]);
        assert_eq!(completions("/agent c"), ["/agent claude", "/agent codex"]);
        assert_eq!(completions("").len() + completions("hel").len(), 0);
    }
}
