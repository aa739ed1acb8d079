//! Commands that are given by a slash: the same as what can be said in a message.
//! What they ask for is done in the order in which they came; Discord, which waits
//! three seconds, is answered beside it.

use std::{pin::pin, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::oneshot,
    time::{self, Instant},
};

use super::{Dealt, Desk};
use crate::{
    channel::{
        SendError,
        access::{Admission, Source},
        chat::intake::{Offered, Said, Twice, insist, is_counted, too_fast},
        directive::{self, Directive},
        discord::{
            api::{Given, LIMITS, Response},
            heard::{Slash, Ticket},
            snowflake,
        },
        pace::Verdict,
    },
    gateway::inbound::{Details, Group},
    id::JobId,
};

/// What is said to `/new` where nothing begins afresh.
const NO_FRESH_START: &str =
    "Nothing begins afresh here: that is switched off (`sessions.reset_words` is empty).";
/// How long it may take to say who is let in, before a command is answered later. Of
/// Discord's three seconds the rest is for the way.
const QUICK: Duration = Duration::from_millis(1500);

/// A command that Discord is being answered about, for whoever does what it asks for.
pub(super) struct Received {
    /// Whether it is to be done.
    is_wanted: oneshot::Receiver<bool>,
    /// What came of it.
    outcome: oneshot::Sender<Outcome>,
}

/// What came of a command.
enum Outcome {
    /// The agent will answer.
    Taken,
    /// This is what there is to say to it.
    Said(String),
    /// Somebody has done it.
    Before,
}

/// What is done with a command.
enum Screened {
    Go,
    /// It is not done, and this is why.
    Refused(String),
    /// It was done before.
    Known,
}

impl Desk {
    /// Answers Discord, beside everything else.
    pub(super) fn receive(&self, slash: &Slash) -> Received {
        let (wanted, is_wanted) = oneshot::channel();
        let (outcome, came) = oneshot::channel();
        let slash = slash.clone();
        self.spawn(|desk| async move { desk.answer_slash(slash, wanted, came).await });
        Received { is_wanted, outcome }
    }

    async fn answer_slash(
        &self,
        slash: Slash,
        wanted: oneshot::Sender<bool>,
        mut came: oneshot::Receiver<Outcome>,
    ) {
        let ticket = &slash.ticket;
        let by = Instant::now() + QUICK;
        let mut screening = pin!(self.screened(&slash));
        let (screened, mut is_put_off) = match time::timeout_at(by, screening.as_mut()).await {
            Ok(screened) => (screened, false),
            Err(_) => {
                let later = self.respond(ticket, Response::Later { is_private: true });
                (tokio::join!(later, screening).1, true)
            }
        };
        // It is to stop: nobody hears whether it is wanted, so that it is told again.
        let Some(screened) = screened else { return };
        // Whoever does it may have stopped.
        wanted.send(matches!(screened, Screened::Go)).ok();
        let asked = slash.asked();
        let outcome = match (screened, &asked) {
            (Screened::Refused(why), _) => Outcome::Said(why),
            // It was stored, and the answer to it may not have come so far.
            (Screened::Known, Asked::Agent { .. }) => Outcome::Taken,
            (Screened::Known, Asked::Gateway(_)) => Outcome::Before,
            (Screened::Go, asked) => {
                let soon = match asked {
                    Asked::Agent { .. } if !is_put_off => {
                        time::timeout_at(by, &mut came).await.ok()
                    }
                    Asked::Agent { .. } | Asked::Gateway(_) => None,
                };
                let came = match soon {
                    Some(came) => came,
                    None if is_put_off => came.await,
                    None => {
                        is_put_off = true;
                        // Who asks the agent asks it for all to see.
                        let is_private = matches!(asked, Asked::Gateway(_));
                        self.respond(ticket, Response::Later { is_private }).await;
                        came.await
                    }
                };
                // Whoever did it may have stopped: then it is told again.
                let Ok(outcome) = came else { return };
                outcome
            }
        };
        let (text, is_private) = match (outcome, asked) {
            (Outcome::Taken, Asked::Agent { prompt, is_new: true }) if prompt.is_empty() => {
                ("A fresh start.".to_owned(), false)
            }
            // Everybody sees what was asked.
            (Outcome::Taken, Asked::Agent { prompt, .. }) => (quote(&prompt), false),
            (Outcome::Said(text), _) => (text, true),
            (Outcome::Taken | Outcome::Before, _) => return self.settle(ticket, is_put_off).await,
        };
        let text = LIMITS.measure.start(&text, LIMITS.text).to_owned();
        if is_put_off {
            return self.say_later(ticket, &text).await;
        }
        let response = Response::Say { text: text.clone(), is_private };
        if self.respond(ticket, response).await == Some(Given::Before) && self.awaits(ticket).await
        {
            self.say_later(ticket, &text).await;
        }
    }

    /// Gives the answer that was put off.
    async fn say_later(&self, ticket: &Ticket, text: &str) {
        let edit = || async { self.api.edit_response(ticket, text).await.map_err(SendError::from) };
        if let Err(SendError { reason, .. }) = insist(Twice::Unnoticed, edit).await {
            tracing::warn!(reason, "the answer to a slash command could not be told");
        }
    }

    /// Says of a command that was done before that it was, if nobody has said what came of
    /// it.
    async fn settle(&self, ticket: &Ticket, is_put_off: bool) {
        let given = if is_put_off {
            Some(Given::Before)
        } else {
            self.respond(ticket, Response::Later { is_private: true }).await
        };
        if given == Some(Given::Now) || self.awaits(ticket).await {
            self.say_later(ticket, "That was done.").await;
        }
    }

    /// Whether a first answer was given that puts off what is to be said.
    async fn awaits(&self, ticket: &Ticket) -> bool {
        match self.api.is_awaited(ticket).await {
            Ok(is_awaited) => is_awaited,
            Err(error) => {
                tracing::info!(%error, "it is not known what was said to a slash command");
                false
            }
        }
    }

    /// Says whether a command is to be done; nothing if it is to stop.
    async fn screened(&self, slash: &Slash) -> Option<Screened> {
        let policy = Arc::clone(&self.policy.borrow());
        let rules = policy.discord.access();
        let from = slash.source();
        match self.insist(|| self.intake.admission(&from, &rules)).await? {
            (Admission::Admitted, _) => {}
            (Admission::Stranger | Admission::NotMeant, _) => {
                return Some(Screened::Refused("You may not talk to me here.".to_owned()));
            }
        }
        let places = [slash.channel.as_str()];
        if self.insist(|| self.intake.is_known(&slash.ticket.id, &places)).await? {
            return Some(Screened::Known);
        }
        self.intake.pace.change(policy.discord.messages_per_minute);
        let is_free = matches!(slash.asked(), Asked::Gateway(directive) if !is_counted(&directive));
        if !is_free
            && !slash.said("").is_late(Timestamp::now())
            && let Verdict::Slow { wait, .. } = self.intake.pace.allow(&slash.person.id)
        {
            return Some(Screened::Refused(too_fast(wait)));
        }
        let is_new = matches!(slash.asked(), Asked::Agent { is_new: true, .. });
        if is_new && self.reset_word().is_none() {
            return Some(Screened::Refused(NO_FRESH_START.to_owned()));
        }
        Some(Screened::Go)
    }

    /// Does what a command asks for, for as long as that takes.
    pub(super) async fn slash(&self, slash: &Slash, received: Received) -> Dealt {
        let Received { is_wanted, outcome } = received;
        let came = match is_wanted.await {
            Ok(true) => match slash.asked() {
                Asked::Agent { prompt, is_new: false } => self.ask(slash, &prompt).await,
                Asked::Agent { prompt, is_new: true } => {
                    let word = self.reset_word().unwrap_or_default();
                    self.ask(slash, &format!("{word} {prompt}")).await
                }
                Asked::Gateway(directive) => self.order(slash, &directive).await,
            },
            Ok(false) => return Dealt::Done { learnt: None },
            Err(_) => None,
        };
        let Some(came) = came else { return Dealt::Not };
        // Whoever waits for it may have stopped.
        outcome.send(came).ok();
        Dealt::Done { learnt: None }
    }

    /// Takes a prompt; nothing if it is to stop.
    async fn ask(&self, slash: &Slash, text: &str) -> Option<Outcome> {
        let said = slash.said(text);
        let offered = self.insist(|| self.intake.offer(&said, &slash.channel)).await?;
        Some(match offered {
            Offered::Stored => Outcome::Taken,
            Offered::Refused(why) => Outcome::Said(why),
        })
    }

    /// Returns the word that begins a conversation afresh.
    fn reset_word(&self) -> Option<String> {
        let policy = self.policy.borrow();
        let words = policy.rules.sessions.reset_words.iter().map(|word| word.trim());
        words.filter(|word| !word.is_empty()).map(str::to_owned).next()
    }

    /// Does what is for the gateway; nothing if it is to stop.
    async fn order(&self, slash: &Slash, directive: &Directive) -> Option<Outcome> {
        let policy = Arc::clone(&self.policy.borrow());
        let rules = policy.discord.access();
        let said = slash.said("");
        let told = self.insist(|| self.intake.direct_once(&said, &rules, directive)).await?;
        Some(told.map_or(Outcome::Before, Outcome::Said))
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
            at: snowflake::time_of(&self.ticket.id),
            details: Details { sender_name, group, ..Details::default() },
            note: JobId::new(),
        }
    }
}

/// Shows a prompt as somebody's words, as far as it fits.
fn quote(prompt: &str) -> String {
    /// What a message can have, less the end that says that there is more.
    const ROOM: usize = LIMITS.text - MORE.len();
    const MORE: &str = " …";
    let mut quoted = String::from("> ");
    let mut n_left = ROOM - 2;
    let mut buffer = [0; 4];
    for c in prompt.trim_end().chars().filter(|c| *c != '\r') {
        let shown = if c == '\n' { "\n> " } else { c.encode_utf8(&mut buffer) };
        let Some(left) = n_left.checked_sub(LIMITS.measure.of(shown)) else {
            quoted.push_str(MORE);
            break;
        };
        n_left = left;
        quoted.push_str(shown);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_quoted_line_by_line_as_far_as_a_message_can_have_it() {
        for (prompt, expected) in
            [("", "> "), ("one", "> one"), ("one\n\ntwo\n", "> one\n> \n> two")]
        {
            assert_eq!(quote(prompt), expected);
        }
        for long in
            ["a\n".repeat(1500), "ä".repeat(5000), "🐎".repeat(5000), "\n".repeat(1999) + "x"]
        {
            let quoted = quote(&long);
            let length = LIMITS.measure.of(&quoted);
            assert!((1900..=LIMITS.text).contains(&length), "{length}");
            assert!(quoted.ends_with(" …") && quoted.lines().all(|line| line.starts_with("> ")));
        }
    }
}
