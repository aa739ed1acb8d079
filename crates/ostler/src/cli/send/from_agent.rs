//! `ostler send --from-agent`: a message for people, which no agent answers.

use std::path::Path;

use super::{
    super::{
        Exit, prompt,
        remote::{NotSent, refused},
        turn_args::{OutputArg, Refused},
    },
    SendArgs,
};
use crate::{
    gateway::inbound::LOCAL,
    outbound::{Outgoing, Target},
    socket::{
        client::{Connection, Heard, TalkError},
        message::{Delivered, Reply, Request},
    },
    store::conversations::Address,
    ui::Ui,
};

/// Makes the message.
fn message(args: &SendArgs) -> Result<Outgoing, Refused> {
    let to = match (&args.to, &args.conversation) {
        (Some(address), _) => Target::At(address.clone()),
        (None, Some(name)) => Target::At(Address::new(LOCAL, name).map_err(Refused::usage)?),
        (None, None) => Target::Newest,
    };
    let text = prompt::read(args.text.clone()).map_err(Refused::usage)?;
    Ok(Outgoing { to, text, id: args.id.clone(), from: None })
}

/// Gives the message to the gateway, and prints what it is called.
pub(super) async fn give(args: &SendArgs, path: &Path, ui: &mut Ui) -> Result<Exit, NotSent> {
    let failed = |error: &dyn ToString| NotSent { exit: Exit::Failed, message: error.to_string() };
    let outgoing = message(args)?;
    let mut connection = Connection::open(path).await.map_err(|error| failed(&error))?;
    let delivered = ask(&mut connection, outgoing).await?;
    let line = match args.output {
        OutputArg::Text => delivered.message.to_string(),
        OutputArg::Json | OutputArg::StreamJson => {
            serde_json::to_string(&Reply::Delivered(delivered)).map_err(|error| failed(&error))?
        }
    };
    ui.line(&line).map_err(|error| failed(&error))?;
    Ok(Exit::Answered)
}

async fn ask(connection: &mut Connection, outgoing: Outgoing) -> Result<Delivered, NotSent> {
    match connection.ask(&Request::Deliver(Box::new(outgoing))).await {
        Ok(Heard::Delivered(delivered)) => Ok(delivered),
        Ok(Heard::Refused(why)) => Err(refused(why)),
        Ok(heard) => {
            let message = format!("the gateway did not take the message, but said {heard:?}");
            Err(NotSent { exit: Exit::Failed, message })
        }
        Err(error @ (TalkError::TooLong { .. } | TalkError::Unwritable(_))) => {
            Err(NotSent { exit: Exit::Usage, message: error.to_string() })
        }
        Err(error) => {
            let message = format!("{error}; the message may have been taken or not");
            Err(NotSent { exit: Exit::Failed, message })
        }
    }
}
