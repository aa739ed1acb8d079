//! A person at the terminal: what a typed line means, and what comes of it.

use ostler_core::request::Open;

use super::{
    command::{self, Command, Typed},
    talk::Talk,
    unusable,
};
use crate::cli::asking;

impl Talk<'_> {
    /// Says who is there.
    pub(super) fn greet(&mut self) {
        let model = self.request.options.model.as_deref();
        let model = model.map(|model| format!(" with {model}")).unwrap_or_default();
        let goes_on = self.request.open.memo().map(|memo| format!(", session {}", memo.id));
        let goes_on = goes_on.unwrap_or_default();
        let title = self.agent.spec().title.clone();
        let cwd = self.request.options.cwd.display();
        self.notice(&format!("{title}{model} in {cwd}{goes_on}. /help for help, Ctrl-D to leave."));
    }

    /// Says how to come back.
    pub(super) fn part(&mut self) {
        if let Some(memo) = self.request.open.memo() {
            let text = format!(
                "ostler: to go on: ostler chat --agent {} --session {}",
                memo.agent, memo.id
            );
            self.notice(&text);
        }
    }

    /// Takes a typed line: a command, a reply to what is being asked, or a prompt.
    pub(super) fn typed(&mut self, line: &str) {
        self.renderer.ui().replied();
        let (typed, is_asked) = (command::parse(line), self.requests.first().is_some());
        match typed {
            Typed::Command(order) => self.order(order),
            Typed::Unknown(_) | Typed::Prompt(_) if is_asked => self.reply(line),
            Typed::Unknown(word) => self.notice(&format!("  {word}? /help lists the commands")),
            Typed::Prompt(text) if text.trim().is_empty() => {}
            Typed::Prompt(text) => self.prompt(text.to_owned()),
        }
    }

    /// Takes a reply to the oldest request.
    fn reply(&mut self, line: &str) {
        let Some((permission, _)) = self.requests.first() else { return };
        match asking::answer(permission, line) {
            Ok(answer) => {
                let request = permission.request.clone();
                self.answer(request, answer);
            }
            Err(hint) => self.renderer.question_again(permission, hint),
        }
    }

    fn order(&mut self, order: Command<'_>) {
        match order {
            Command::Help => self.notice(command::HELP),
            Command::Stop if self.turns.is_empty() => self.notice("  nothing is running"),
            Command::Stop => self.stop(),
            Command::Model(None) => {
                let model = self.request.options.model.clone();
                let model = model.unwrap_or_else(|| "the agent's own choice".to_owned());
                self.notice(&format!("  model: {model}"));
            }
            Command::Model(Some(name)) => {
                self.request.options.model = Some(name.to_owned());
                self.notice(&format!("  model from the next prompt on: {name}"));
            }
            Command::Agent(None) => {
                let name = &self.agent.spec().name;
                self.notice(&format!(
                    "  agent: {name}; there are {}",
                    self.setup.settings.roster.names()
                ));
            }
            Command::New | Command::Agent(Some(_)) if self.is_busy() => {
                self.notice("  a turn is running; /stop it first");
            }
            Command::New => {
                self.request.open = Open::New;
                self.notice("  a new session begins with the next prompt");
            }
            Command::Agent(Some(name)) => self.change_agent(name),
        }
    }

    fn change_agent(&mut self, name: &str) {
        let begun = match self.setup.begin_with_agent(name) {
            Ok(begun) => begun,
            Err(refused) => return self.notice(&format!("ostler: {}", refused.message)),
        };
        if let Some((_, failure)) = unusable(&begun.agent, &begun.request) {
            return self.notice(&format!("ostler: {}", failure.message));
        }
        self.agent = begun.agent;
        self.request = begun.request;
        self.greet();
    }

    /// Asks about the oldest open request, once.
    pub(super) fn ask(&mut self) {
        if let Some(permission) = self.requests.next_to_ask() {
            self.renderer.question(permission);
        }
    }
}
