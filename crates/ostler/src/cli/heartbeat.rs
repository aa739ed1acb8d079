//! `ostler heartbeat`: one now, by the running gateway.

use clap::Args;

use super::{
    Exit,
    agents::FormArg,
    store::{print, shown},
};
use crate::{
    config::Loaded,
    socket::{
        self,
        client::{Connection, Heard},
        message::{Reply, Request},
    },
    store::conversations::Address,
    ui::{Ui, printable},
};

#[derive(Args, Debug)]
pub(crate) struct HeartbeatArgs {
    /// In this conversation, such as local:main, instead of the one that a person spoke in last
    #[arg(long, value_name = "CONVERSATION")]
    conversation: Option<Address>,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: FormArg,
}

/// Asks the gateway for a heartbeat. That there is a reason for none is no failure.
pub(crate) async fn run(args: HeartbeatArgs, loaded: &Loaded, ui: &mut Ui) -> Exit {
    let path = socket::path(&loaded.host_config().data_dir);
    let mut connection = match Connection::open(&path).await {
        Ok(connection) => connection,
        Err(error) => {
            ui.notice(&format!("ostler: {error}"));
            return Exit::Failed;
        }
    };
    let (reply, text) = match connection.ask(&Request::Heartbeat(args.conversation)).await {
        Ok(Heard::Accepted(accepted)) => {
            let text = accepted.job.to_string();
            (Reply::Accepted(accepted), text)
        }
        Ok(Heard::Skipped(skipped)) => {
            let text = printable(&format!("skipped: {}", skipped.message));
            (Reply::Skipped(skipped), text)
        }
        Ok(Heard::Refused(refused)) => {
            ui.notice(&format!("ostler: {}", refused.message));
            let is_wrong = refused.code == "invalid_request";
            return if is_wrong { Exit::Usage } else { Exit::Failed };
        }
        Ok(heard) => {
            ui.notice(&format!("ostler: the gateway made no heartbeat, but said {heard:?}"));
            return Exit::Failed;
        }
        Err(error) => {
            ui.notice(&format!("ostler: {error}"));
            return Exit::Failed;
        }
    };
    shown(print(&reply, &text, args.output, ui), Exit::Answered, ui)
}
