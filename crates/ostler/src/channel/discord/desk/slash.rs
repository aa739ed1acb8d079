//! Commands that are given by a slash: the same as what can be said in a message.
//! What they ask for is done in the order in which they came; Discord, which waits
//! three seconds, is answered beside it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Desk;
use crate::{
    channel::{
        access::{Admission, Rules, Source},
        chat::intake::{Said, too_fast},
        directive::{self, Directive},
        discord::{
            api::Response,
            heard::{Slash, Ticket},
        },
        pace::Verdict,
    },
    gateway::inbound::{Details, Group},
};

impl Desk {
    /// Deals with a slash command, for as long as that takes; returns whether to go on.
    pub(super) async fn slash(&self, slash: Slash) -> bool {
        let policy = Arc::clone(&self.policy.borrow());
        let rules = policy.discord.access();
        let from = slash.source();
        match self.insist(|| self.intake.admission(&from, &rules)).await {
            Some((Admission::Admitted, _)) => {}
            Some((Admission::Stranger | Admission::NotMeant, _)) => {
                self.refuse(slash.ticket, "You may not talk to me here.".to_owned());
                return true;
            }
            None => return false,
        }
        let places = [slash.channel.as_str()];
        match self.insist(|| self.intake.is_known(&slash.ticket.id, &places)).await {
            Some(false) => {}
            Some(true) => return true,
            None => return false,
        }
        if let Verdict::Slow { wait, .. } = self.intake.pace.allow(&slash.person.id) {
            self.refuse(slash.ticket, too_fast(wait));
            return true;
        }
        match slash.asked() {
            Asked::Agent { prompt, is_new } => self.ask(&slash, prompt, is_new).await,
            Asked::Gateway(directive) => self.order(&slash, &rules, &directive).await,
        }
    }

    /// Says no, to whoever asked and nobody else.
    fn refuse(&self, ticket: Ticket, text: String) {
        self.spawn(|desk| async move {
            desk.respond(&ticket, Response::Say { text, is_private: true }).await;
        });
    }

    /// Takes a prompt. Everybody sees what was asked.
    async fn ask(&self, slash: &Slash, prompt: String, is_new: bool) -> bool {
        let text = match (is_new, prompt.as_str()) {
            (true, "") => "A fresh start.".to_owned(),
            (_, prompt) => quote(prompt),
        };
        let ticket = slash.ticket.clone();
        self.spawn(|desk| async move {
            desk.respond(&ticket, Response::Say { text, is_private: false }).await;
        });
        let reset = self.policy.borrow().rules.sessions.reset_words.first().cloned();
        let text = match (is_new, reset) {
            (true, Some(word)) => format!("{word} {prompt}"),
            (true, None) | (false, _) => prompt,
        };
        let said = slash.said(&text);
        self.insist(|| self.intake.accept(&said, &slash.channel)).await.is_some()
    }

    /// Does what is for the gateway.
    async fn order(&self, slash: &Slash, rules: &Rules<'_>, directive: &Directive) -> bool {
        let (tell, told) = oneshot::channel::<String>();
        let ticket = slash.ticket.clone();
        self.spawn(|desk| async move {
            desk.respond(&ticket, Response::Later { is_private: true }).await;
            let Ok(said) = told.await else { return };
            if let Err(error) = desk.api.edit_response(&ticket, &said).await {
                tracing::info!(%error, "the answer to a slash command could not be told");
            }
        });
        let said = slash.said("");
        let done = self.insist(|| self.intake.direct_once(&said, rules, directive)).await;
        let Some(answer) = done else { return false };
        // Whoever waits for it may have stopped.
        tell.send(answer.unwrap_or_else(|| "That was done.".to_owned())).ok();
        true
    }
}

/// What a command wants, and of whom.
enum Asked {
    Agent { prompt: String, is_new: bool },
    Gateway(Directive),
}

impl Slash {
    fn asked(&self) -> Asked {
        let option = |name: &str| {
            self.options.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone())
        };
        Asked::Gateway(match self.name.as_str() {
            "ask" | "new" => {
                let prompt = option("prompt").unwrap_or_default();
                return Asked::Agent { prompt, is_new: self.name == "new" };
            }
            "stop" => Directive::Stop,
            "status" => Directive::Status,
            "agent" => Directive::Agent(option("name")),
            "model" => Directive::Model(option("name")),
            "think" => {
                let level = option("level").unwrap_or_default();
                directive::read(&format!("/think {level}")).unwrap_or(Directive::Help)
            }
            _ => Directive::Help,
        })
    }

    fn source(&self) -> Source<'_> {
        Source {
            guild: self.guild.as_deref(),
            channel: &self.channel,
            parent: self.parent.as_deref(),
            sender: &self.person.id,
            roles: &self.roles,
            is_mentioned: true,
        }
    }

    fn said<'a>(&'a self, text: &'a str) -> Said<'a> {
        let group = self.guild.as_ref().map(|_| Group::default());
        let sender_name = Some(self.person.name.clone());
        Said {
            from: self.source(),
            message: &self.ticket.id,
            name: &self.person.name,
            text,
            is_called: true,
            at: None,
            details: Details { sender_name, group, ..Details::default() },
        }
    }
}

/// Shows a prompt as somebody's words, as far as it fits.
fn quote(prompt: &str) -> String {
    const SHOWN: usize = 1500;
    let cut: String = prompt.chars().take(SHOWN).collect();
    let more = if cut.len() < prompt.len() { " …" } else { "" };
    let lines: Vec<String> = cut.lines().map(|line| format!("> {line}")).collect();
    format!("{}{more}", lines.join("\n"))
}
