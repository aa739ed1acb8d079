//! `ostler pairing`: strangers who asked in a chat to be let in, and what becomes
//! of them. Works while the gateway runs, and when it does not.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    Exit,
    agents::FormArg,
    store::{failed, print, shown},
};
use crate::{
    channel::code::Code,
    clock::Millis,
    config::{Loaded, Problems, store_location},
    store::{
        Store, StoreError, Use,
        conversations::Address,
        pairings::{self, Decision, Pairing, PairingState, Person},
    },
    ui::{Ui, printable},
};

/// Who is written down for what is done here.
const OPERATOR: &str = "operator";

#[derive(Args, Debug)]
pub(crate) struct PairingArgs {
    #[command(subcommand)]
    command: PairingCommand,
    /// What to print
    #[arg(long, value_enum, default_value = "text", global = true)]
    output: FormArg,
}

#[derive(Debug, Subcommand)]
enum PairingCommand {
    /// List who asked to be let in and who was let in or rejected, newest first
    List,
    /// Let somebody talk to the bot, by the code that he was given
    Approve {
        /// The code
        code: Code,
    },
    /// Let somebody never talk to the bot, nor ask again
    Reject {
        /// The code
        code: Code,
    },
    /// Forget somebody who was let in, was rejected or only asked; he is a stranger again
    Remove {
        /// Who, such as discord:1234567890 or whatsapp:+4915112345678
        #[arg(value_name = "CHANNEL:SENDER", value_parser = read_person)]
        person: Person,
    },
}

fn read_person(text: &str) -> Result<Person, &'static str> {
    let address: Result<Address, _> = text.parse();
    let address = address.map_err(|_| {
        "give the channel and the sender, such as discord:1234567890 or whatsapp:+4915112345678"
    })?;
    Ok(Person { channel: address.channel().to_owned(), sender: address.key().to_owned() })
}

/// Somebody as he is printed. The names are part of the contract.
#[derive(Serialize)]
struct Row {
    channel: String,
    sender: String,
    name: String,
    state: PairingState,
    /// As long as nothing is decided.
    code: Option<String>,
    asked_at: Millis,
    /// Until when the code can be used.
    expires_at: Option<Millis>,
    decided_at: Option<Millis>,
}

impl From<Pairing> for Row {
    fn from(pairing: Pairing) -> Self {
        let Pairing { person, name, code, state, asked_at, expires_at, decided_at } = pairing;
        let Person { channel, sender } = person;
        let expires_at = code.is_some().then_some(expires_at);
        Self { channel, sender, name, state, code, asked_at, expires_at, decided_at }
    }
}

impl Row {
    fn who(&self) -> String {
        // A name is whatever somebody calls himself.
        let name = printable(&self.name).replace('\n', "\u{fffd}");
        printable(&format!("{}:{} ({name})", self.channel, self.sender))
    }

    /// Returns it for people.
    fn text(&self) -> String {
        let standing = match (&self.code, self.expires_at) {
            (Some(code), Some(end)) => format!("asked     {code} until {end}"),
            (Some(_), None) | (None, _) => {
                let at = self.decided_at.map(|at| format!(" {at}")).unwrap_or_default();
                format!("{:<9}{at}", self.state.as_str())
            }
        };
        format!("{standing}  {}", self.who())
    }
}

/// All of them.
#[derive(Serialize)]
struct List {
    pairings: Vec<Row>,
}

/// What was done. Part of the contract.
#[derive(Serialize)]
struct Done {
    outcome: &'static str,
    pairing: Row,
}

/// Does what the subcommand says.
pub(crate) async fn run(args: PairingArgs, loaded: Loaded, ui: &mut Ui) -> Result<Exit, Problems> {
    let location = store_location(&loaded).await?;
    let PairingArgs { command, output } = args;
    let purpose = match &command {
        PairingCommand::List => Use::Look,
        PairingCommand::Approve { .. }
        | PairingCommand::Reject { .. }
        | PairingCommand::Remove { .. } => Use::Beside,
    };
    let store = match Store::open(&location, purpose).await {
        Ok(store) => store,
        Err(error) => return Ok(failed(&error, ui)),
    };
    let now = Millis::now();
    let done = match command {
        PairingCommand::List => list(&store, now, output, ui).await,
        PairingCommand::Approve { code } => {
            decide(&store, code, Decision::Approve, now, output, ui).await
        }
        PairingCommand::Reject { code } => {
            decide(&store, code, Decision::Reject, now, output, ui).await
        }
        PairingCommand::Remove { person } => remove(&store, person, now, output, ui).await,
    };
    store.close().await;
    Ok(done.unwrap_or_else(|error| failed(&error, ui)))
}

async fn list(
    store: &Store,
    now: Millis,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let found = store.read(now, |conn, now| Box::pin(pairings::list(conn, *now))).await?;
    let pairings: Vec<_> = found.into_iter().map(Row::from).collect();
    let lines: Vec<_> = pairings.iter().map(Row::text).collect();
    let text = if lines.is_empty() { "nobody".to_owned() } else { lines.join("\n") };
    Ok(shown(print(&List { pairings }, &text, output, ui), Exit::Answered, ui))
}

async fn decide(
    store: &Store,
    code: Code,
    decision: Decision,
    now: Millis,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let decided = store.write((code.clone(), decision, now), |conn, (code, decision, now)| {
        Box::pin(pairings::decide(conn, code, *decision, OPERATOR, *now))
    });
    let Some(pairing) = decided.await? else {
        ui.notice(&format!(
            "ostler: nobody has the code {code}; it can be used for an hour, and once"
        ));
        return Ok(Exit::Failed);
    };
    let outcome = pairing.state.as_str();
    Ok(tell(outcome, pairing, output, ui))
}

async fn remove(
    store: &Store,
    person: Person,
    now: Millis,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let removed = store.write((person.clone(), now), |conn, (person, now)| {
        Box::pin(pairings::remove(conn, person, OPERATOR, *now))
    });
    let Some(pairing) = removed.await? else {
        let Person { channel, sender } = person;
        let who = format!("{channel}:{sender}");
        let text = format!("ostler: {who} was neither let in nor rejected, and has not asked");
        ui.notice(&printable(&text));
        return Ok(Exit::Failed);
    };
    Ok(tell("removed", pairing, output, ui))
}

fn tell(outcome: &'static str, pairing: Pairing, output: FormArg, ui: &mut Ui) -> Exit {
    let done = Done { outcome, pairing: pairing.into() };
    let text = format!("{}: {outcome}", done.pairing.who());
    shown(print(&done, &text, output, ui), Exit::Answered, ui)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_neither_control_the_terminal_nor_begin_a_line() {
        let row = Row {
            channel: "discord".to_owned(),
            sender: "1".to_owned(),
            name: "Ann\n\u{1b}[2Jdiscord:2".to_owned(),
            state: PairingState::Asked,
            code: Some("K7WQ2MXP".to_owned()),
            asked_at: Millis(0),
            expires_at: Some(Millis(1000)),
            decided_at: None,
        };
        let text = row.text();
        assert_eq!(text.lines().count(), 1);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.starts_with("asked     K7WQ2MXP until 1970-01-01T00:00:01.000Z"), "{text}");
        let row =
            Row { code: None, state: PairingState::Rejected, decided_at: Some(Millis(0)), ..row };
        assert!(row.text().starts_with("rejected  1970-01-01T00:00:00.000Z  discord:1 (Ann"));
    }
}
