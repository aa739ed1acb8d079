//! Which commands the bot has, as data. What they do is decided elsewhere.

use serde::{Deserialize, Serialize};

/// How many choices an option can have.
const CHOICES: usize = 25;
/// The type of a command that is given by its slash, and that of an option that is
/// a text.
const BY_SLASH: u8 = 1;
const TEXT: u8 = 3;

/// A command as Discord knows it. What we do not set is not read either, so that
/// two can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) name: String,
    #[serde(rename = "type", default = "by_slash")]
    kind: u8,
    #[serde(default)]
    description: String,
    #[serde(default)]
    options: Vec<Parameter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Parameter {
    name: String,
    #[serde(rename = "type")]
    kind: u8,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Choice {
    name: String,
    /// A number in commands that are not ours.
    value: serde_json::Value,
}

fn by_slash() -> u8 {
    BY_SLASH
}

/// A command of ours.
struct Row {
    name: &'static str,
    description: &'static str,
    option: Option<Given>,
}

/// What is given with one.
struct Given {
    name: &'static str,
    description: &'static str,
    is_required: bool,
    of: Of,
}

/// What can be given.
enum Of {
    Anything,
    These(&'static [&'static str]),
    Agents,
}

/// How much an agent can be told to think.
pub(crate) const LEVELS: &[&str] = &["off", "minimal", "low", "medium", "high"];

/// All of them.
const COMMANDS: &[Row] = &[
    Row {
        name: "ask",
        description: "Ask the agent something",
        option: Some(Given {
            name: "prompt",
            description: "What to ask",
            is_required: true,
            of: Of::Anything,
        }),
    },
    Row {
        name: "new",
        description: "Begin a new conversation",
        option: Some(Given {
            name: "prompt",
            description: "What to ask first",
            is_required: false,
            of: Of::Anything,
        }),
    },
    Row { name: "stop", description: "Stop what the agent is doing", option: None },
    Row {
        name: "agent",
        description: "Talk to another agent",
        option: Some(Given {
            name: "name",
            description: "The agent",
            is_required: true,
            of: Of::Agents,
        }),
    },
    Row {
        name: "model",
        description: "Have the agent use another model",
        option: Some(Given {
            name: "name",
            description: "The model, as the agent calls it",
            is_required: true,
            of: Of::Anything,
        }),
    },
    Row { name: "status", description: "Show what is going on here", option: None },
    Row {
        name: "think",
        description: "Say how much the agent is to think",
        option: Some(Given {
            name: "level",
            description: "How much",
            is_required: true,
            of: Of::These(LEVELS),
        }),
    },
    Row { name: "help", description: "Show what the bot can do", option: None },
];

/// Returns the commands for a gateway with these agents. If there are more than can
/// be chosen from, any name can be typed.
pub(crate) fn commands(agents: &[String]) -> Vec<Command> {
    let choice = |name: &str| Choice { name: name.to_owned(), value: name.into() };
    let parameter = |given: &Given| Parameter {
        name: given.name.to_owned(),
        kind: TEXT,
        description: given.description.to_owned(),
        required: given.is_required,
        choices: match given.of {
            Of::Anything => Vec::new(),
            Of::These(names) => names.iter().map(|name| choice(name)).collect(),
            Of::Agents if agents.len() > CHOICES => Vec::new(),
            Of::Agents => agents.iter().map(|name| choice(name)).collect(),
        },
    };
    let command = |row: &Row| Command {
        name: row.name.to_owned(),
        kind: BY_SLASH,
        description: row.description.to_owned(),
        options: row.option.iter().map(parameter).collect(),
    };
    COMMANDS.iter().map(command).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agents(n: usize) -> Vec<String> {
        (0..n).map(|n| format!("agent-{n}")).collect()
    }

    #[test]
    fn the_commands_are_within_discords_limits() {
        let is_name = |name: &str| {
            (1..=32).contains(&name.len())
                && name.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '_')
        };
        let is_described = |text: &str| (1..=100).contains(&text.chars().count());
        for n in [0, 3, 25, 26, 100] {
            let commands = commands(&agents(n));
            assert!(commands.len() <= 100);
            for command in &commands {
                assert!(is_name(&command.name) && is_described(&command.description));
                assert!(command.options.len() <= 25);
                for option in &command.options {
                    assert!(is_name(&option.name) && is_described(&option.description));
                    assert!(option.choices.len() <= 25);
                    assert!(option.choices.iter().all(|one| one.name.chars().count() <= 100));
                }
            }
            let mut names: Vec<&String> = commands.iter().map(|command| &command.name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), commands.len());
        }
    }

    #[test]
    fn an_agent_is_chosen_from_those_that_there_are() {
        let choices = |n: usize| {
            let commands = commands(&agents(n));
            let agent = commands.into_iter().find(|command| command.name == "agent").unwrap();
            agent.options[0].choices.len()
        };
        assert_eq!((choices(3), choices(25), choices(26)), (3, 25, 0));
    }

    #[test]
    fn a_command_that_discord_tells_of_is_the_one_that_it_was_given() {
        let told = json!({
            "id": "1", "application_id": "2", "version": "3", "type": 1, "name": "ask",
            "name_localizations": null, "description": "Ask the agent something",
            "default_member_permissions": null, "dm_permission": true, "nsfw": false,
            "options": [{"type": 3, "name": "prompt", "description": "What to ask",
                "required": true}],
        });
        let told: Command = serde_json::from_value(told).unwrap();
        assert_eq!(told, commands(&[])[0]);
        let stop = json!({"name": "stop", "description": "Stop what the agent is doing"});
        let stop: Command = serde_json::from_value(stop).unwrap();
        assert_eq!(stop, commands(&[])[2]);
    }
}
