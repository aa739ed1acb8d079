//! `doctor --live` with an agent from the configuration: it is started, isolated,
//! and says who it is. Where its model would be is not known, so no turn is run.

use std::time::Duration;

use ostler_core::CliAgent;

use super::finding::{Area, Finding, Level};
use crate::cli::rehearsal::Stage;

/// Lets an agent introduce itself, and says what came of it.
pub(crate) async fn check(agent: &CliAgent, stage: &Stage, limit: Duration) -> Finding {
    let spec = agent.spec();
    let request = stage.setting.request(spec, "?");
    let finding = match agent.handshake(&request, limit).await {
        Ok(about) => {
            let name = about.name.unwrap_or_else(|| "an agent without a name".to_owned());
            let version = about.version.map(|version| format!(" {version}")).unwrap_or_default();
            let goes_on =
                if about.can_continue { "" } else { "; it cannot go on with a former session" };
            Finding::ok(Area::Live, format!("speaks ACP: {name}{version}{goes_on}"))
        }
        Err(error) => {
            // There may be secrets in the arguments.
            let text = format!("see what `{}` does when it is run by hand", spec.program);
            Finding::new(Level::Error, Area::Live, error.to_string()).fix(text)
        }
    };
    finding.about(&spec.name)
}
