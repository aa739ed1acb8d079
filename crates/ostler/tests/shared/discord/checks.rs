//! What Discord checks of a message: lengths, embeds, components.

use serde_json::Value;

use super::answer::Refusal;

/// The flag of a message that consists of components only.
const COMPONENTS_V2: u64 = 1 << 15;
/// The flags that a sender may set.
const SETTABLE: u64 = 1 << 2 | 1 << 6 | 1 << 12 | 1 << 13 | COMPONENTS_V2;

/// Checks the fields that all messages have.
pub(super) fn message(json: &Value) -> Result<(), Refusal> {
    at_most(json, "content", 2000)?;
    let flags = json["flags"].as_u64().unwrap_or(0);
    if flags & !SETTABLE != 0 {
        return Err(Refusal::form("flags", "MESSAGE_FLAGS_INVALID", "Invalid flags."));
    }
    if let Some(nonce) = json.get("nonce").filter(|nonce| !nonce.is_null()) {
        let length = nonce.as_str().map_or(0, |nonce| nonce.chars().count());
        if length > 25 {
            return Err(Refusal::too_long("nonce", 25));
        }
        if !nonce.is_string() && !nonce.is_i64() && !nonce.is_u64() {
            return Err(Refusal::form("nonce", "NONCE_TYPE_INVALID", "Nonce is not valid."));
        }
    }
    embeds(&json["embeds"])?;
    if flags & COMPONENTS_V2 == 0 {
        return rows(&json["components"]);
    }
    for field in ["content", "embeds"] {
        let given = &json[field];
        if given.as_str().is_some_and(|text| !text.is_empty())
            || given.as_array().is_some_and(|list| !list.is_empty())
        {
            let message = "Cannot be used with the IS_COMPONENTS_V2 flag";
            return Err(Refusal::form(field, "MESSAGE_CANNOT_USE_LEGACY_FIELDS", message));
        }
    }
    Ok(())
}

fn characters(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}

fn at_most(json: &Value, field: &str, most: usize) -> Result<(), Refusal> {
    if !json[field].is_null() && !json[field].is_string() {
        return Err(Refusal::form(field, "STRING_TYPE_CONVERT", "Could not interpret as string."));
    }
    if characters(&json[field]) > most {
        return Err(Refusal::too_long(field, most));
    }
    Ok(())
}

fn embeds(embeds: &Value) -> Result<(), Refusal> {
    let Some(embeds) = embeds.as_array() else { return Ok(()) };
    if embeds.len() > 10 {
        return Err(Refusal::too_long("embeds", 10));
    }
    let mut total = 0;
    for (number, embed) in embeds.iter().enumerate() {
        for (field, most) in [("title", 256), ("description", 4096)] {
            if characters(&embed[field]) > most {
                return Err(Refusal::too_long(&format!("embeds.{number}.{field}"), most));
            }
            total += characters(&embed[field]);
        }
        total += characters(&embed["footer"]["text"]) + characters(&embed["author"]["name"]);
        let fields = embed["fields"].as_array().map_or(&[][..], Vec::as_slice);
        if fields.len() > 25 {
            return Err(Refusal::too_long(&format!("embeds.{number}.fields"), 25));
        }
        for (place, field) in fields.iter().enumerate() {
            for (part, most) in [("name", 256), ("value", 1024)] {
                if !(1..=most).contains(&characters(&field[part])) {
                    let path = format!("embeds.{number}.fields.{place}.{part}");
                    return Err(Refusal::length(&path, 1, most));
                }
                total += characters(&field[part]);
            }
        }
    }
    if total > 6000 {
        let message = "Embed size exceeds maximum size of 6000";
        return Err(Refusal::form("embeds", "MAX_EMBED_SIZE_EXCEEDED", message));
    }
    Ok(())
}

/// Checks rows of buttons and menus.
fn rows(components: &Value) -> Result<(), Refusal> {
    let Some(rows) = components.as_array() else { return Ok(()) };
    if rows.len() > 5 {
        return Err(Refusal::too_long("components", 5));
    }
    let mut seen = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let path = format!("components.{number}");
        if row["type"] != 1 {
            let message = "Value of field \"type\" must be one of (1,).";
            return Err(Refusal::form(&path, "UNION_TYPE_CHOICES", message));
        }
        let inner = row["components"].as_array().map_or(&[][..], Vec::as_slice);
        if !(1..=5).contains(&inner.len()) {
            return Err(Refusal::length(&format!("{path}.components"), 1, 5));
        }
        let is_menu = |one: &Value| matches!(one["type"].as_u64(), Some(3 | 5..=8));
        if inner.len() > 1 && inner.iter().any(is_menu) {
            let message = "The specified component exceeds the maximum width";
            return Err(Refusal::form(&path, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", message));
        }
        for (place, component) in inner.iter().enumerate() {
            let path = format!("{path}.components.{place}");
            interactive(component, &path)?;
            if let Some(custom_id) = component["custom_id"].as_str() {
                if seen.contains(&custom_id) {
                    let message = "Component custom id cannot be duplicated";
                    let path = format!("{path}.custom_id");
                    return Err(Refusal::form(&path, "COMPONENT_CUSTOM_ID_DUPLICATED", message));
                }
                seen.push(custom_id);
            }
        }
    }
    Ok(())
}

fn interactive(component: &Value, path: &str) -> Result<(), Refusal> {
    let kind = component["type"].as_u64();
    if !matches!(kind, Some(2 | 3 | 5..=8)) {
        let message = "Value of field \"type\" must be one of (2, 3, 5, 6, 7, 8).";
        return Err(Refusal::form(path, "UNION_TYPE_CHOICES", message));
    }
    let is_link = kind == Some(2) && component["style"] == 5;
    if is_link {
        if component["url"].as_str().is_none_or(str::is_empty) {
            return Err(Refusal::required(&format!("{path}.url")));
        }
    } else if !(1..=100).contains(&characters(&component["custom_id"])) {
        return Err(Refusal::length(&format!("{path}.custom_id"), 1, 100));
    }
    if kind == Some(2) {
        if !matches!(component["style"].as_u64(), Some(1..=5)) {
            let message = "Value must be one of {1, 2, 3, 4, 5}.";
            return Err(Refusal::form(&format!("{path}.style"), "BASE_TYPE_CHOICES", message));
        }
        if characters(&component["label"]) > 80 {
            return Err(Refusal::too_long(&format!("{path}.label"), 80));
        }
        if characters(&component["label"]) == 0 && component["emoji"].is_null() {
            let message = "A label or emoji is required";
            return Err(Refusal::form(path, "BUTTON_COMPONENT_INVALID", message));
        }
    }
    if kind == Some(3) {
        menu(component, path)?;
    }
    Ok(())
}

fn menu(component: &Value, path: &str) -> Result<(), Refusal> {
    let options = component["options"].as_array().map_or(&[][..], Vec::as_slice);
    if !(1..=25).contains(&options.len()) {
        return Err(Refusal::length(&format!("{path}.options"), 1, 25));
    }
    if characters(&component["placeholder"]) > 150 {
        return Err(Refusal::too_long(&format!("{path}.placeholder"), 150));
    }
    for (number, option) in options.iter().enumerate() {
        for field in ["label", "value"] {
            if !(1..=100).contains(&characters(&option[field])) {
                let path = format!("{path}.options.{number}.{field}");
                return Err(Refusal::length(&path, 1, 100));
            }
        }
    }
    Ok(())
}

/// Checks a modal.
pub(super) fn modal(data: &Value) -> Result<(), Refusal> {
    if !(1..=100).contains(&characters(&data["custom_id"])) {
        return Err(Refusal::length("data.custom_id", 1, 100));
    }
    if !(1..=45).contains(&characters(&data["title"])) {
        return Err(Refusal::length("data.title", 1, 45));
    }
    if !(1..=5).contains(&data["components"].as_array().map_or(0, Vec::len)) {
        return Err(Refusal::length("data.components", 1, 5));
    }
    Ok(())
}
