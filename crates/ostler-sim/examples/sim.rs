//! Runs the simulated model until it is interrupted.
//!
//! `cargo run -p ostler-sim --example sim -- [PORT [FALLBACK WORD]]`

#![expect(clippy::print_stdout, reason = "an example talks to its user")]

use std::net::Ipv4Addr;

use ostler_sim::model::{self, Options, Sim};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let fallback = arguments.next().unwrap_or_else(|| Options::default().fallback);
    let sim = Sim::start(Options { address, fallback }).await?;
    println!("{}", sim.base_url());
    for agent in model::agents() {
        let Some(settings) = model::settings(agent, &sim.base_url()) else {
            continue;
        };
        println!("\n{agent}");
        for (name, value) in settings.environment {
            println!("  {name}={value}");
        }
        println!("  {}", settings.arguments.join(" "));
        if let Some(model) = settings.model {
            println!("  model {model}");
        }
        for (path, content) in settings.files {
            println!("  ~/{path}:\n{content}");
        }
    }
    tokio::signal::ctrl_c().await?;
    sim.stop().await;
    Ok(())
}
