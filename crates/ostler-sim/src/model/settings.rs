//! What each CLI needs to be told to reach the simulated model.

use std::path::Path;
use std::{fs, io};

use serde_json::{Value, json};

/// Environment, arguments and files for one CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The agent that these settings are for.
    pub agent: &'static str,
    /// Variables, the made-up key among them.
    pub environment: Vec<(&'static str, String)>,
    /// Arguments to put after the CLI's subcommand, before the prompt.
    pub arguments: Vec<String>,
    /// The model to ask for, where the settings do not name it already.
    pub model: Option<&'static str>,
    /// Files to write before the CLI starts: the path below its home, and the
    /// content.
    pub files: Vec<(&'static str, String)>,
}

impl Settings {
    /// Returns the same settings with another key in the place of [`KEY`].
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        let values = self.environment.iter_mut().map(|(_, value)| value);
        for text in values.chain(self.files.iter_mut().map(|(_, content)| content)) {
            *text = text.replace(KEY, key);
        }
        self
    }

    /// Writes the files below the home of the CLI, over what was there.
    pub fn write_files(&self, home: &Path) -> io::Result<()> {
        for (path, content) in &self.files {
            let path = home.join(path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, content)?;
        }
        Ok(())
    }
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
        model: row.model,
        files: row
            .files
            .iter()
            .map(|(path, content)| (*path, format!("{:#}\n", content(base_url))))
            .collect(),
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
    model: Option<&'static str>,
    files: &'static [File],
}

/// A path below the CLI's home, and what stands there for a base URL.
type File = (&'static str, fn(&str) -> Value);

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
        model: None,
        files: &[],
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
        model: None,
        files: &[],
    },
    Row {
        agent: "gemini",
        environment: &[("GOOGLE_GEMINI_BASE_URL", BASE_URL), ("GEMINI_API_KEY", KEY)],
        arguments: &[],
        // Without a name it asks a smaller model first which one to take.
        model: Some("gemini-2.5-flash"),
        files: &[],
    },
    Row {
        agent: "opencode",
        environment: &[
            // Each of these would reach for the network.
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        ],
        arguments: &[],
        model: Some("ostler_sim/sim-1"),
        // The variables that hold a configuration are left to whoever starts
        // the CLI: it adds them to this file.
        files: &[(".config/opencode/opencode.json", opencode)],
    },
    Row {
        agent: "pi",
        environment: &[("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1"), ("PI_TELEMETRY", "0")],
        arguments: &[],
        model: Some("ostler_sim/sim-1"),
        files: &[(".pi/agent/models.json", pi)],
    },
];

/// A provider of our own and no other, because without one it would turn to a
/// hosted model.
fn opencode(base_url: &str) -> Value {
    json!({
        // Without this the CLI would write it into the file.
        "$schema": "https://opencode.ai/config.json",
        "model": "ostler_sim/sim-1",
        "small_model": "ostler_sim/sim-1",
        "enabled_providers": ["ostler_sim"],
        "share": "disabled",
        "autoupdate": false,
        "provider": {
            "ostler_sim": {
                "npm": "@ai-sdk/openai-compatible",
                "options": { "baseURL": format!("{base_url}/v1"), "apiKey": KEY },
                "models": {
                    "sim-1": {
                        "limit": { "context": 200_000, "output": 8192 },
                        "cost": { "input": 3, "output": 15, "cache_read": 0.3 },
                        "reasoning": true,
                        "tool_call": true,
                    },
                },
            },
        },
    })
}

fn pi(base_url: &str) -> Value {
    json!({
        "providers": {
            "ostler_sim": {
                "baseUrl": format!("{base_url}/v1"),
                "api": "openai-completions",
                "apiKey": KEY,
                "models": [{
                    "id": "sim-1",
                    "reasoning": true,
                    "input": ["text"],
                    "contextWindow": 200_000,
                    "maxTokens": 8192,
                    "cost": { "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75 },
                }],
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_points_at_the_given_address() {
        for agent in agents() {
            let settings = settings(agent, "http://127.0.0.1:9").expect("a row");
            let values = settings.environment.iter().map(|(_, value)| value);
            let contents = settings.files.iter().map(|(_, content)| content);
            let texts: Vec<&String> = values.chain(&settings.arguments).chain(contents).collect();
            assert!(texts.iter().any(|text| text.contains("http://127.0.0.1:9")), "{agent}");
            assert!(texts.iter().all(|text| !text.contains(BASE_URL)), "{agent}");
            assert!(texts.iter().any(|text| text.contains(KEY)), "{agent}");
        }
        assert_eq!(settings("nobody", "http://127.0.0.1:9"), None);
    }

    #[test]
    fn another_key_stands_everywhere_where_the_first_stood() {
        for agent in agents() {
            let settings = settings(agent, "http://127.0.0.1:9").expect("a row").with_key("other");
            let text = format!("{settings:?}");
            assert!(text.contains("other") && !text.contains(KEY), "{text}");
        }
    }

    #[test]
    fn files_are_written_below_the_home_and_replaced() {
        let home = tempfile::tempdir().expect("a folder");
        let read = || {
            let text = fs::read_to_string(home.path().join(".pi/agent/models.json")).expect("it");
            serde_json::from_str::<Value>(&text).expect("JSON")
        };
        for port in [9, 10] {
            let base_url = format!("http://127.0.0.1:{port}");
            let settings = settings("pi", &base_url).expect("a row");
            settings.write_files(home.path()).expect("written");
            assert_eq!(read()["providers"]["ostler_sim"]["baseUrl"], format!("{base_url}/v1"));
        }
    }
}
