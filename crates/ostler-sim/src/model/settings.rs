//! What each CLI needs to be told to reach the simulated model.

/// Environment variables and arguments for one CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The agent that these settings are for.
    pub agent: &'static str,
    /// Variables, the made-up key among them.
    pub environment: Vec<(&'static str, String)>,
    /// Arguments to put after the CLI's subcommand, before the prompt.
    pub arguments: Vec<String>,
}

/// The made-up key; any key without `wrong` in it would do.
pub const KEY: &str = "sim-key";

/// Returns the settings for an agent, or `None` for one that is not known here.
pub fn settings(agent: &str, base_url: &str) -> Option<Settings> {
    let row = ROWS.iter().find(|row| row.agent == agent)?;
    let fill = |text: &str| text.replace(BASE_URL, base_url);
    Some(Settings {
        agent: row.agent,
        environment: row.environment.iter().map(|(name, value)| (*name, fill(value))).collect(),
        arguments: row.arguments.iter().map(|argument| fill(argument)).collect(),
    })
}

/// Returns the agents that have settings here.
pub fn agents() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.agent)
}

const BASE_URL: &str = "{base_url}";

struct Row {
    agent: &'static str,
    environment: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        agent: "claude",
        environment: &[
            ("ANTHROPIC_BASE_URL", BASE_URL),
            ("ANTHROPIC_API_KEY", KEY),
            // Without these it calls home at every start.
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
        arguments: &[],
    },
    Row {
        agent: "codex",
        environment: &[("OSTLER_SIM_KEY", KEY)],
        // A provider of its own, because the built-in one insists on its own
        // address and tries a WebSocket first. Dotted keys, so that further
        // overrides of the same provider add to these.
        arguments: &[
            "-c",
            "model_provider=\"ostler_sim\"",
            "-c",
            "model_providers.ostler_sim.name=\"ostler_sim\"",
            "-c",
            "model_providers.ostler_sim.base_url=\"{base_url}/v1\"",
            "-c",
            "model_providers.ostler_sim.env_key=\"OSTLER_SIM_KEY\"",
            "-c",
            "model_providers.ostler_sim.wire_api=\"responses\"",
            "-c",
            "model=\"gpt-5.5\"",
            // Each of these would reach for the network at the start.
            "-c",
            "check_for_update_on_startup=false",
            "-c",
            "features.plugins=false",
            "-c",
            "analytics.enabled=false",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_points_at_the_given_address() {
        for agent in agents() {
            let settings = settings(agent, "http://127.0.0.1:9").expect("a row");
            let values = settings.environment.iter().map(|(_, value)| value);
            let texts: Vec<&String> = values.chain(&settings.arguments).collect();
            assert!(texts.iter().any(|text| text.contains("http://127.0.0.1:9")), "{agent}");
            assert!(texts.iter().all(|text| !text.contains(BASE_URL)), "{agent}");
        }
        assert_eq!(settings("nobody", "http://127.0.0.1:9"), None);
    }
}
