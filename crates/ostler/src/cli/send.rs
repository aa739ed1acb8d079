//! `ostler send`: gives a message to the running gateway, and waits for the
//! answer if that is wanted. Or gives people a message that an agent has for them.

mod from_agent;

use std::path::{Path, PathBuf};

use clap::Args;

use super::{
    Exit,
    asker::Asker,
    prompt,
    remote::{self, NotSent, OnSignal, Watched},
    signals::Signals,
    turn_args::{OutputArg, PermissionsArg, Refused},
    typed,
};
use crate::{
    config::Loaded,
    gateway::inbound::{Details, LOCAL},
    socket::{
        self,
        client::Connection,
        message::{Message, Reply},
    },
    store::conversations::Address,
    ui::Ui,
    wishes::Wishes,
};

/// The conversation that is meant if none is named.
const CONVERSATION: &str = "main";

#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    /// The message; `-`, or nothing off a terminal, reads standard input
    text: Option<String>,
    /// Send the text to people: a message that an agent or a program has for them
    #[arg(long, conflicts_with_all = ["agent", "model", "permissions", "cwd", "wait"])]
    from_agent: bool,
    /// A conversation of this machine's [default: main; with --from-agent the output channel, or where somebody spoke last]
    #[arg(long, value_name = "NAME", conflicts_with = "to")]
    conversation: Option<String>,
    /// A conversation anywhere: the answer is sent there
    #[arg(long, value_name = "CHANNEL:ADDRESS")]
    to: Option<Address>,
    /// What the message is called; the same name twice is the same message
    #[arg(long, allow_hyphen_values = true)]
    id: Option<String>,
    /// Which agent answers from now on [default: the conversation's]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Which model
    #[arg(long, allow_hyphen_values = true)]
    model: Option<String>,
    /// What the agent may do without asking
    #[arg(long, value_enum)]
    permissions: Option<PermissionsArg>,
    /// Where the agent works [default: where the gateway was started]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Wait for the answer, and end like `ostler run`
    #[arg(long)]
    wait: bool,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: OutputArg,
}

impl SendArgs {
    /// Makes the message.
    fn message(&self) -> Result<Message, Refused> {
        let conversation = match &self.to {
            Some(address) => address.clone(),
            None => {
                let name = self.conversation.as_deref().unwrap_or(CONVERSATION);
                Address::new(LOCAL, name).map_err(Refused::usage)?
            }
        };
        let wishes = Wishes {
            agent: self.agent.clone(),
            model: self.model.clone(),
            cwd: self.cwd.as_deref().map(absolute).transpose()?,
            permissions: self.permissions.map(Into::into),
            ..Wishes::default()
        };
        let text = prompt::read(self.text.clone()).map_err(Refused::usage)?;
        Ok(Message {
            conversation,
            text,
            id: self.id.clone(),
            sender: None,
            wishes,
            is_bare: false,
            details: Details::default(),
        })
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Refused> {
    std::fs::canonicalize(path)
        .map_err(|error| Refused::usage(format!("--cwd {}: {error}", path.display())))
}

/// Gives a message to the gateway.
pub(crate) async fn run(args: SendArgs, loaded: &Loaded, ui: &mut Ui) -> Exit {
    let path = socket::path(&loaded.host_config().data_dir);
    let given = if args.from_agent {
        from_agent::give(&args, &path, ui).await
    } else {
        give(&args, &path, loaded, ui).await
    };
    match given {
        Ok(exit) => exit,
        Err(NotSent { exit, message }) => {
            ui.notice(&format!("ostler: {message}"));
            exit
        }
    }
}

async fn give(args: &SendArgs, path: &Path, loaded: &Loaded, ui: &mut Ui) -> Result<Exit, NotSent> {
    let failed = |error: &dyn ToString| NotSent { exit: Exit::Failed, message: error.to_string() };
    let message = args.message()?;
    let mut connection = Connection::open(path).await.map_err(|error| failed(&error))?;
    if !args.wait {
        let accepted = remote::send(&mut connection, message).await?;
        let line = match args.output {
            OutputArg::Text => accepted.job.to_string(),
            OutputArg::Json | OutputArg::StreamJson => {
                serde_json::to_string(&Reply::Accepted(accepted)).map_err(|error| failed(&error))?
            }
        };
        ui.line(&line).map_err(|error| failed(&error))?;
        return Ok(Exit::Answered);
    }
    let signals = Signals::listen().map_err(|error| failed(&error))?;
    let asker = if args.output == OutputArg::Text && typed::somebody_is_there() {
        Asker::open()
    } else {
        None
    };
    let accepted = remote::send(&mut connection, message).await?;
    let watched = Watched {
        socket: path.to_owned(),
        job: accepted.job,
        agent: args.agent.clone().unwrap_or_else(|| loaded.config.agent.default.clone()),
        on_signal: OnSignal::Leave,
    };
    Ok(watched.follow(&mut connection, signals, asker, args.output, ui).await.exit)
}
