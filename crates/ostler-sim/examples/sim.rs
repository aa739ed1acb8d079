//! Runs the simulated model until it is interrupted.
//!
//! `cargo run -p ostler-sim --example sim -- [PORT]`

#![expect(clippy::print_stdout, reason = "an example talks to its user")]

use std::net::Ipv4Addr;

use ostler_sim::model::{self, Options, Sim};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let sim = Sim::start(Options { address, ..Options::default() }).await?;
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
    }
    tokio::signal::ctrl_c().await?;
    sim.stop().await;
    Ok(())
}
