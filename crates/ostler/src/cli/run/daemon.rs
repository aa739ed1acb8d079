//! `ostler run --daemon`: the turn runs in the gateway, in a conversation of its
//! own, and looks from here as if it ran here.

use ostler_core::{host::Host, memo::Memo, request::Permissions};
use serde_json::Value;

use super::RunArgs;
use crate::{
    cli::{
        Exit,
        asker::Asker,
        prompt,
        remote::{self, NotSent, OnSignal, Watched},
        signals::Signals,
        turn_args::{OutputArg, Refused},
        typed,
    },
    config::Settings,
    gateway::inbound::{Details, LOCAL},
    socket::{self, client::Connection, message::Message},
    store::conversations::Address,
    ui::Ui,
    wishes::Wishes,
};

/// Runs one prompt in the gateway.
pub(super) async fn run(args: &RunArgs, settings: &Settings, host: &Host, ui: &mut Ui) -> Exit {
    let message = match message(args, settings, host) {
        Ok(message) => message,
        Err(refused) => {
            ui.notice(&format!("ostler: {}", refused.message));
            return refused.exit;
        }
    };
    match watch(args, message, settings, host, ui).await {
        Ok(exit) => exit,
        Err(NotSent { exit, message }) => {
            ui.notice(&format!("ostler: {message}"));
            exit
        }
    }
}

fn message(args: &RunArgs, settings: &Settings, host: &Host) -> Result<Message, Refused> {
    let wishes = args.turn.wishes_elsewhere(settings, host)?;
    let text = prompt::read(args.prompt.clone()).map_err(Refused::usage)?;
    let name = uuid::Uuid::now_v7().simple().to_string();
    let conversation = Address::new(LOCAL, &format!("run-{name}")).map_err(Refused::usage)?;
    Ok(Message {
        conversation,
        text,
        id: Some(name),
        sender: None,
        wishes,
        is_bare: true,
        details: Details::default(),
    })
}

async fn watch(
    args: &RunArgs,
    message: Message,
    settings: &Settings,
    host: &Host,
    ui: &mut Ui,
) -> Result<Exit, NotSent> {
    let failed = |error: &dyn ToString| NotSent { exit: Exit::Failed, message: error.to_string() };
    let path = socket::path(host.data_dir());
    let mut connection = Connection::open(&path).await.map_err(|error| failed(&error))?;
    let signals = Signals::listen().map_err(|error| failed(&error))?;
    let output = args.turn.output;
    let asker = if may_ask(&message.wishes, output) { Asker::open() } else { None };
    let wishes = message.wishes.clone();
    let accepted = remote::send(&mut connection, message).await?;
    let watched = Watched {
        socket: path,
        job: accepted.job,
        agent: wishes.agent.clone().unwrap_or_else(|| settings.agent.name.to_string()),
        on_signal: OnSignal::Cancel,
    };
    let watching = watched.follow(&mut connection, signals, asker, output, ui).await;
    if let Some(report) = watching.report {
        remember(&report, &wishes, settings, host, ui);
    }
    Ok(watching.exit)
}

/// Returns whether somebody is here who can be asked. If not, whoever else may
/// answer does.
fn may_ask(wishes: &Wishes, output: OutputArg) -> bool {
    let asks = match wishes.permissions {
        None | Some(Permissions::Ask) => true,
        Some(Permissions::Bypass | Permissions::ReadOnly) => false,
    };
    asks && output == OutputArg::Text && typed::somebody_is_there()
}

/// Notes the session here, too, so that `--continue` finds it.
fn remember(report: &Value, wishes: &Wishes, settings: &Settings, host: &Host, ui: &mut Ui) {
    let text = |name: &str| report.get(name).and_then(Value::as_str);
    let (Some(agent), Some(id)) = (text("agent"), text("session_id")) else { return };
    let memos = host.memos();
    let known = memos.load(agent, id).ok().flatten();
    let now = jiff::Timestamp::now();
    let memo = Memo {
        cwd: wishes.cwd.clone(),
        home: wishes.home(agent, host),
        server: settings.server_of(agent).map(|server| server.url().to_owned()),
        updated_at: Some(now),
        ..known.unwrap_or_else(|| Memo { created_at: Some(now), ..Memo::of_id(agent, id) })
    };
    if let Err(error) = memos.save(&memo) {
        ui.notice(&format!("ostler: warning: --continue will not find this session: {error}"));
    }
}
