//! Commands that are given by a slash: the same as what can be said in a message.

use super::{Desk, seconds};
use crate::{
    channel::{
        DISCORD,
        access::{Admission, Source},
        directive::{self, Directive},
        discord::{api::Response, heard::Slash},
        pace::Verdict,
    },
    gateway::inbound::{Details, Group, Inbound, Origin},
    store::conversations::Address,
    wishes::Wishes,
};

impl Desk {
    /// Deals with a slash command.
    pub(super) async fn slash(&self, slash: Slash) {
        let source = Source {
            guild: slash.guild.as_deref(),
            channel: &slash.channel,
            parent: slash.parent.as_deref(),
            sender: &slash.person.id,
            roles: &slash.roles,
            is_mentioned: true,
        };
        let may = matches!(self.admission(&source).await, Ok((Admission::Admitted, _)));
        if !may {
            let text = "You may not talk to me here.".to_owned();
            return self.respond(&slash.ticket, Response::Say { text, is_private: true }).await;
        }
        if let Verdict::Slow { wait, .. } = self.pace.allow(&slash.person.id) {
            let text = format!("That is too fast for me. Try again in {} s.", seconds(wait));
            return self.respond(&slash.ticket, Response::Say { text, is_private: true }).await;
        }
        let option = |name: &str| {
            slash.options.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone())
        };
        let directive = match slash.name.as_str() {
            "ask" | "new" => {
                let prompt = option("prompt").unwrap_or_default();
                return self.asked(&slash, prompt).await;
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
        };
        self.respond(&slash.ticket, Response::Later { is_private: true }).await;
        let group = slash.guild.as_ref().map(|_| Group::default());
        let said = self.direct(&slash.channel, &slash.person, group, &directive).await;
        if let Err(error) = self.api.edit_response(&slash.ticket, &said).await {
            tracing::info!(%error, "the answer to a slash command could not be told");
        }
    }

    /// Takes a prompt that came as a slash command. Everybody sees what was asked.
    async fn asked(&self, slash: &Slash, prompt: String) {
        let is_new = slash.name == "new";
        let shown = match (is_new, prompt.as_str()) {
            (true, "") => "A fresh start.".to_owned(),
            (_, prompt) => quote(prompt),
        };
        self.respond(&slash.ticket, Response::Say { text: shown, is_private: false }).await;
        let reset = self.policy.borrow().rules.sessions.reset_words.first().cloned();
        let text = match (is_new, reset) {
            (true, Some(word)) => format!("{word} {prompt}"),
            (true, None) | (false, _) => prompt,
        };
        let Ok(address) = Address::new(DISCORD, &slash.channel) else { return };
        let group = slash.guild.as_ref().map(|_| Group::default());
        let sender_name = Some(slash.person.name.clone());
        let inbound = Inbound {
            address,
            sender: slash.person.id.clone(),
            message: Some(slash.ticket.id.clone()),
            text,
            wishes: Wishes::default(),
            origin: Origin::Person,
            details: Details { sender_name, group, ..Details::default() },
            belongs: None,
            words: None,
        };
        self.accept(inbound, &slash.channel, Some(&slash.ticket.id)).await;
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
