//! Slash commands: what is registered, everywhere and in guilds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    answer::{Answer, Refusal, Reply},
    world::World,
};

/// The commands that are registered. Those for everywhere are of no guild.
#[derive(Debug, Default)]
pub(super) struct Commands {
    registered: BTreeMap<Option<u64>, Vec<Value>>,
    pub(super) writes: usize,
}

impl Commands {
    pub(super) fn all(&self) -> Vec<Value> {
        self.registered.values().flatten().cloned().collect()
    }

    fn of(&self, guild: Option<u64>) -> Vec<Value> {
        self.registered.get(&guild).cloned().unwrap_or_default()
    }

    /// Finds a command that can be used in a guild, the guild's own first.
    pub(super) fn find(&self, guild: Option<u64>, name: &str) -> Option<&Value> {
        let scopes = [guild, None];
        let mut here = scopes.iter().filter_map(|scope| self.registered.get(scope)).flatten();
        here.find(|command| command["name"] == name)
    }
}

impl World {
    fn check_scope(&self, application: u64, guild: Option<u64>) -> Result<(), Refusal> {
        if application != self.application {
            return Err(Refusal::missing_access());
        }
        match guild {
            Some(guild) if !self.guilds.contains_key(&guild) => Err(Refusal::missing_access()),
            _ => Ok(()),
        }
    }

    pub(super) fn get_commands(&self, application: u64, guild: Option<u64>) -> Answer {
        self.check_scope(application, guild)?;
        Reply::ok(self.commands.of(guild).into())
    }

    /// Replaces all commands of a scope.
    pub(super) fn put_commands(
        &mut self,
        application: u64,
        guild: Option<u64>,
        form: &Value,
    ) -> Answer {
        self.check_scope(application, guild)?;
        let Some(given) = form.as_array() else {
            return Err(Refusal::form("", "BASE_TYPE_BAD_TYPE", "Only lists are valid."));
        };
        if given.len() > 100 {
            return Err(Refusal::too_long("", 100));
        }
        let mut names = Vec::new();
        for (number, command) in given.iter().enumerate() {
            check(command, &number.to_string())?;
            let key = (command["type"].as_u64().unwrap_or(1), command["name"].as_str());
            if names.contains(&key) {
                let message = "Application command names must be unique";
                let path = number.to_string();
                let code = "APPLICATION_COMMANDS_DUPLICATE_NAME";
                return Err(Refusal::form(&path, code, message));
            }
            names.push(key);
        }
        let known = self.commands.of(guild);
        let made: Vec<Value> =
            given.iter().map(|command| self.register(guild, command, &known)).collect();
        self.commands.registered.insert(guild, made.clone());
        self.commands.writes += 1;
        Reply::ok(made.into())
    }

    /// Adds a command, or replaces the one with its name.
    pub(super) fn post_command(
        &mut self,
        application: u64,
        guild: Option<u64>,
        form: &Value,
    ) -> Answer {
        self.check_scope(application, guild)?;
        check(form, "")?;
        let mut known = self.commands.of(guild);
        let made = self.register(guild, form, &known);
        let before = known.len();
        known.retain(|one| one["id"] != made["id"]);
        let status = if known.len() < before { 200 } else { 201 };
        known.push(made.clone());
        self.commands.registered.insert(guild, known);
        self.commands.writes += 1;
        Ok(Reply { status, body: Some(made) })
    }

    pub(super) fn delete_command(
        &mut self,
        application: u64,
        guild: Option<u64>,
        id: u64,
    ) -> Answer {
        self.check_scope(application, guild)?;
        let mut known = self.commands.of(guild);
        let before = known.len();
        let id = id.to_string();
        known.retain(|one| one["id"] != id);
        if known.len() == before {
            return Err(Refusal::unknown_command());
        }
        self.commands.registered.insert(guild, known);
        self.commands.writes += 1;
        Reply::nothing()
    }

    fn register(&mut self, guild: Option<u64>, command: &Value, known: &[Value]) -> Value {
        let mut made = command.clone();
        let same = known.iter().find(|one| one["name"] == command["name"]);
        let id = same.map(|one| one["id"].clone());
        made["id"] = id.unwrap_or_else(|| self.next_id().to_string().into());
        made["application_id"] = self.application.to_string().into();
        made["version"] = self.next_id().to_string().into();
        for (field, default) in [
            ("type", json!(1)),
            ("description", json!("")),
            ("default_member_permissions", Value::Null),
            ("dm_permission", json!(true)),
            ("integration_types", json!([0, 1])),
            ("contexts", Value::Null),
            ("name_localizations", Value::Null),
            ("description_localizations", Value::Null),
            ("nsfw", json!(false)),
        ] {
            if made.get(field).is_none() {
                made[field] = default;
            }
        }
        // What is as usual is left out of options, and so are empty lists of them.
        trim(&mut made);
        if let Some(guild) = guild {
            made["guild_id"] = guild.to_string().into();
        }
        made
    }
}

fn trim(command: &mut Value) {
    if command["options"].as_array().is_none_or(Vec::is_empty) {
        command.as_object_mut().unwrap().remove("options");
    }
    let options = command.get_mut("options").and_then(Value::as_array_mut);
    for option in options.into_iter().flatten() {
        let fields = option.as_object_mut().unwrap();
        fields.retain(|field, value| match field.as_str() {
            "required" | "autocomplete" => *value != false,
            "choices" | "options" => value.as_array().is_none_or(|list| !list.is_empty()),
            _ => true,
        });
        for field in ["name_localizations", "description_localizations"] {
            fields.entry(field).or_insert(Value::Null);
        }
        trim(option);
    }
}

fn within(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn check(command: &Value, path: &str) -> Result<(), Refusal> {
    let kind = command["type"].as_u64().unwrap_or(1);
    let text = |field: &str| command[field].as_str().unwrap_or("");
    if kind == 1 {
        check_name(text("name"), &within(path, "name"))?;
        check_description(text("description"), &within(path, "description"))?;
    } else if !(1..=32).contains(&text("name").chars().count()) {
        return Err(Refusal::length(&within(path, "name"), 1, 32));
    } else if !text("description").is_empty() {
        let message = "Context menu commands cannot have description";
        let code = "APPLICATION_COMMAND_CONTEXT_MENU_DESCRIPTION_NOT_ALLOWED";
        return Err(Refusal::form(&within(path, "description"), code, message));
    }
    check_options(&command["options"], &within(path, "options"))?;
    if size(command) > 8000 {
        let message = "Command exceeds maximum size (8000)";
        return Err(Refusal::form(path, "APPLICATION_COMMAND_TOO_LARGE", message));
    }
    Ok(())
}

fn check_name(name: &str, path: &str) -> Result<(), Refusal> {
    if !(1..=32).contains(&name.chars().count()) {
        return Err(Refusal::length(path, 1, 32));
    }
    let fits = |one: char| one.is_alphanumeric() || matches!(one, '-' | '_' | '\'');
    if !name.chars().all(fits) || name.to_lowercase() != name {
        let message = "Command name is invalid";
        return Err(Refusal::form(path, "APPLICATION_COMMAND_INVALID_NAME", message));
    }
    Ok(())
}

fn check_description(description: &str, path: &str) -> Result<(), Refusal> {
    if (1..=100).contains(&description.chars().count()) {
        Ok(())
    } else {
        Err(Refusal::length(path, 1, 100))
    }
}

fn check_options(options: &Value, path: &str) -> Result<(), Refusal> {
    let Some(options) = options.as_array() else { return Ok(()) };
    if options.len() > 25 {
        return Err(Refusal::too_long(path, 25));
    }
    let mut names = Vec::new();
    let mut optional = false;
    for (number, option) in options.iter().enumerate() {
        let path = format!("{path}.{number}");
        let text = |field: &str| option[field].as_str().unwrap_or("");
        check_name(text("name"), &format!("{path}.name"))?;
        check_description(text("description"), &format!("{path}.description"))?;
        if !matches!(option["type"].as_u64(), Some(1..=11)) {
            let message = "Value must be between 1 and 11.";
            return Err(Refusal::form(&format!("{path}.type"), "BASE_TYPE_CHOICES", message));
        }
        if names.contains(&text("name")) {
            let message = "Option names must be unique within a command";
            let code = "APPLICATION_COMMAND_OPTIONS_NAME_INVALID";
            return Err(Refusal::form(&path, code, message));
        }
        names.push(text("name"));
        let required = option["required"] == true;
        if required && optional {
            let message = "Required options must be placed before non-required options";
            let code = "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID";
            return Err(Refusal::form(&path, code, message));
        }
        optional |= !required;
        check_choices(option, &path)?;
        check_options(&option["options"], &format!("{path}.options"))?;
    }
    Ok(())
}

fn check_choices(option: &Value, path: &str) -> Result<(), Refusal> {
    let Some(choices) = option["choices"].as_array() else { return Ok(()) };
    if choices.len() > 25 {
        return Err(Refusal::too_long(&format!("{path}.choices"), 25));
    }
    for (number, choice) in choices.iter().enumerate() {
        let name = choice["name"].as_str().unwrap_or("");
        if !(1..=100).contains(&name.chars().count()) {
            return Err(Refusal::length(&format!("{path}.choices.{number}.name"), 1, 100));
        }
        if choice["value"].as_str().is_some_and(|value| value.chars().count() > 100) {
            return Err(Refusal::too_long(&format!("{path}.choices.{number}.value"), 100));
        }
    }
    Ok(())
}

/// Returns the characters of all names, descriptions and values.
fn size(command: &Value) -> usize {
    let own = ["name", "description", "value"].iter();
    let own: usize =
        own.map(|field| command[field].as_str().map_or(0, |text| text.chars().count())).sum();
    let lists = ["options", "choices"].iter().filter_map(|field| command[field].as_array());
    own + lists.flatten().map(size).sum::<usize>()
}
