//! What somebody in a chat says to the gateway instead of the agent: doing it,
//! and what he is told about it. Who may, and the restart, are up to the chat.

mod telling;

use std::sync::Arc;

use serde_json::json;

use self::telling::{Standing, agents, help, model, status, stopped, thinking, verbose};
use super::{
    Gateway, gate,
    inbound::{Group, Refusal},
    policy::Policy,
};
use crate::{
    channel::directive::{DEFAULT, Directive, LONGEST, Level},
    clock::Millis,
    config::word,
    store::{
        Conn, StoreError,
        audit::{self, Entry},
        conversations::{
            self, Address,
            settings::{self, Setting},
        },
    },
};

pub(crate) const NOTHING_RUNS: &str = "Nothing runs here.";
const NOBODY: &str = "No agent answers here. Choose one with /agent NAME.";
const RESTART: &str = "Only an owner may restart the gateway.";

/// Where something was said, and by whom.
#[derive(Clone, Debug)]
struct Said {
    place: Address,
    by: String,
    policy: Arc<Policy>,
    now: Millis,
}

/// What is to be different in a conversation.
#[derive(Clone, Debug)]
enum Change {
    Agent(String),
    Model(Option<String>),
    Setting(Setting),
}

impl Gateway {
    /// Does what somebody said to the gateway; returns what he is to be told.
    pub(crate) async fn direct(
        &self,
        at: &Address,
        sender: &str,
        group: Option<&Group>,
        directive: &Directive,
    ) -> Result<String, Refusal> {
        let policy = Arc::clone(&self.shared.policy.borrow());
        let place = gate::scoped(at, sender, group, policy.rules.sessions.scope)?;
        let by = format!("{}:{sender}", at.channel());
        let said = Said { place, by, policy, now: Millis::now() };
        let change = match directive {
            Directive::Help => return Ok(help(&said.policy)),
            Directive::Restart => return Ok(RESTART.to_owned()),
            Directive::Stop => return self.stop_there(said.place).await,
            Directive::Status => return self.tell(said, status).await,
            Directive::Agent(None) => return self.tell(said, agents).await,
            Directive::Model(None) => return self.tell(said, model).await,
            Directive::Think(None) => return self.tell(said, thinking).await,
            Directive::Verbose(None) => return self.tell(said, verbose).await,
            Directive::Agent(Some(name)) => usable(&said.policy, name).map(Change::Agent),
            Directive::Model(Some(name)) => named(name).map(Change::Model),
            Directive::Think(Some(Level::Unknown(word))) => Err(format!(
                "There is no level {word:?}. Say off, minimal, low, medium, high or {DEFAULT}."
            )),
            Directive::Think(Some(Level::Of(level))) => {
                Ok(Change::Setting(Setting::Thinking(Some(*level))))
            }
            Directive::Think(Some(Level::AsConfigured)) => {
                Ok(Change::Setting(Setting::Thinking(None)))
            }
            Directive::Verbose(Some(is_on)) => Ok(Change::Setting(Setting::Verbose(*is_on))),
        };
        let change = match change {
            Ok(change) => change,
            Err(why) => return Ok(why),
        };
        let store = &self.shared.store;
        let changed = store.write_repeatable((said, change), |conn, (said, change)| {
            Box::pin(alter(conn, said, change))
        });
        changed.await.map_err(|error: StoreError| error.into())
    }

    /// Ends what runs and what waits in a conversation.
    async fn stop_there(&self, place: Address) -> Result<String, Refusal> {
        let found =
            self.shared.store.read(place, |conn, at| Box::pin(conversations::find_at(conn, at)));
        let found: Result<_, StoreError> = found.await;
        match found? {
            Some(conversation) => Ok(stopped(self.cancel_conversation(conversation.id).await?)),
            None => Ok(NOTHING_RUNS.to_owned()),
        }
    }

    /// Tells how something is in a conversation, or in one that nobody began yet.
    async fn tell(
        &self,
        said: Said,
        text: fn(&Said, &Standing) -> String,
    ) -> Result<String, Refusal> {
        let place = said.place.clone();
        let standing = self.shared.store.read(place, |conn, at| Box::pin(Standing::read(conn, at)));
        let standing: Result<_, StoreError> = standing.await;
        Ok(text(&said, &standing?))
    }
}

/// Returns the name of an agent that can be run; the error is for people.
fn usable(policy: &Policy, name: &str) -> Result<String, String> {
    if name.len() > LONGEST {
        return Err("That is no name of an agent.".to_owned());
    }
    let agent =
        policy.agents.resolve(Some(name)).map_err(|why| format!("That cannot be: {why}."))?;
    if policy.can_run(&agent) {
        Ok(agent.name.to_string())
    } else {
        Err(format!("{} cannot be run on this machine.", agent.name))
    }
}

/// Returns a model that can be asked for; nothing is the usual one.
fn named(name: &str) -> Result<Option<String>, String> {
    if name.eq_ignore_ascii_case(DEFAULT) {
        return Ok(None);
    }
    // It becomes a word of a command line.
    if name.len() > LONGEST || name.starts_with('-') || name.chars().any(char::is_control) {
        return Err("That is no name of a model.".to_owned());
    }
    Ok(Some(name.to_owned()))
}

/// Changes something in a conversation, which may begin with it.
async fn alter(conn: &mut Conn, said: &Said, change: &Change) -> Result<String, StoreError> {
    let conversation = conversations::find_or_begin(conn, &said.place, said.now).await?;
    let id = conversation.id;
    let answers = said.policy.agents.resolve(conversation.agent.as_deref());
    match change {
        Change::Agent(name) => {
            if answers.is_ok_and(|agent| *agent.name == **name) {
                return Ok(format!("{name} answers here already."));
            }
            conversations::set_agent(conn, id, name).await?;
            let detail = json!({ "from": conversation.agent, "to": name });
            let entry = Entry {
                at: said.now,
                actor: said.by.clone(),
                action: "sessions.agent".to_owned(),
                subject: id.to_string(),
                detail: detail.to_string(),
            };
            audit::add(conn, &entry).await?;
            Ok(format!("{name} answers from now on, in a new session."))
        }
        Change::Model(model) => {
            let Ok(agent) = answers else { return Ok(NOBODY.to_owned()) };
            if model.is_some() && !agent.caps.supports_model_selection {
                return Ok(format!("No model can be chosen for {}.", agent.name));
            }
            settings::set_model(conn, id, &agent.name, model.as_deref()).await?;
            Ok(match model {
                Some(model) => format!("The model is {model} from the next message on."),
                None => "The model is the agent's usual one from the next message on.".to_owned(),
            })
        }
        Change::Setting(setting) => {
            settings::set(conn, id, *setting).await?;
            Ok(match setting {
                Setting::Thinking(Some(level)) => {
                    let level = word::thinking::word(*level);
                    format!("Thinking is {level} from the next message on.")
                }
                Setting::Thinking(None) => {
                    "Thinking is as configured from the next message on.".to_owned()
                }
                Setting::Verbose(true) => "Verbose is on.".to_owned(),
                Setting::Verbose(false) => "Verbose is off.".to_owned(),
            })
        }
    }
}

#[cfg(test)]
mod tests;
