//! `ostler sim`: the simulated model, for trying a CLI without a key.

use std::net::Ipv4Addr;

use clap::Args;
use ostler_sim::model::{self, BEHAVIOURS, Options, Sim};

use super::Exit;
use crate::ui::Ui;

#[derive(Args, Debug)]
#[command(after_help = behaviours())]
pub(crate) struct SimArgs {
    /// The port on loopback; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
}

/// Runs the simulated model until it is interrupted.
pub(crate) async fn run(args: SimArgs, ui: &mut Ui) -> Exit {
    let address = (Ipv4Addr::LOCALHOST, args.port).into();
    let sim = match Sim::start(Options { address, ..Options::default() }).await {
        Ok(sim) => sim,
        Err(error) => {
            ui.notice(&format!("ostler: could not listen on {address}: {error}"));
            return Exit::Failed;
        }
    };
    let shown = ui.line(&describe(&sim.base_url()));
    let waited = match shown {
        Ok(()) => tokio::signal::ctrl_c().await,
        Err(error) => Err(error),
    };
    sim.stop().await;
    match waited {
        Ok(()) => Exit::Answered,
        Err(error) => {
            ui.notice(&format!("ostler: {error}"));
            Exit::Failed
        }
    }
}

/// Returns what to type so that each CLI talks to the simulated model.
fn describe(base_url: &str) -> String {
    let mut lines = vec![format!("The simulated model listens on {base_url} until Ctrl-C.")];
    for settings in model::agents().filter_map(|agent| model::settings(agent, base_url)) {
        lines.push(format!("\n{}:", settings.agent));
        let mut command = format!("  ostler run --agent {} --isolated", settings.agent);
        for (name, value) in &settings.environment {
            lines.push(format!("  {name}={value}"));
            command.push_str(&format!(" --env {name}={value}"));
        }
        for argument in &settings.arguments {
            command.push_str(&format!(" --agent-arg '{argument}'"));
        }
        if !settings.arguments.is_empty() {
            lines.push(format!("  {}", settings.arguments.join(" ")));
        }
        for (path, content) in &settings.files {
            let content = content.trim_end().replace('\n', "\n    ");
            let agent = settings.agent;
            lines.push(format!(
                "  {path} in its home (homes/{agent} in OSTLER_DATA_DIR if isolated):\n    {content}"
            ));
        }
        if let Some(model) = settings.model {
            command.push_str(&format!(" --model {model}"));
        }
        lines.push(format!("{command} Hello"));
    }
    lines.push(
        "\nWords in a prompt choose what it does; `ostler sim --help` lists them. `sim:tool` runs a\n\
         command, which takes --permissions bypass (and for Claude as root --env IS_SANDBOX=1)."
            .to_owned(),
    );
    lines.join("\n")
}

fn behaviours() -> String {
    let mut lines = vec!["Words in a prompt that choose what the model does:".to_owned()];
    for behaviour in BEHAVIOURS {
        let word = format!("sim:{}{}", behaviour.word, behaviour.argument);
        lines.push(format!("  {word:<32} {}", behaviour.about));
    }
    lines.join("\n")
}
