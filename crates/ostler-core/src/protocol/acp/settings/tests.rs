//! Which mode, model and level of thinking follow from the options of a turn.

use super::*;

fn modes(current: &str, ids: &[&str]) -> Settings {
    let offers: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "name": id })).collect();
    let modes = json!({ "currentModeId": current, "availableModes": offers });
    Settings::read(&json!({ "modes": modes }))
}

fn mode_for(settings: &Settings, permissions: Permissions) -> Option<String> {
    match settings.wish_mode(permissions) {
        Wish::Set(change) => Some(change.value),
        Wish::Holds => None,
        Wish::Cannot(why) => Some(why),
    }
}

#[test]
fn reading_wants_a_mode_that_only_looks_and_asking_one_that_asks() {
    let qwen = modes("auto", &["plan", "default", "auto-edit", "auto", "yolo"]);
    assert_eq!(mode_for(&qwen, Permissions::ReadOnly).as_deref(), Some("plan"));
    assert_eq!(mode_for(&qwen, Permissions::Ask).as_deref(), Some("default"));
    assert_eq!(mode_for(&qwen, Permissions::Bypass), None);
    let base = "https://agentclientprotocol.com/protocol/session-modes#";
    let names = ["agent", "plan", "autopilot"].map(|name| format!("{base}{name}"));
    let copilot = modes(&names[0], &names.each_ref().map(String::as_str));
    assert_eq!(mode_for(&copilot, Permissions::ReadOnly), Some(names[1].clone()));
    assert_eq!(mode_for(&copilot, Permissions::Ask), None);
}

#[test]
fn a_session_that_was_left_in_a_mode_that_only_looks_gets_another_one() {
    let left = modes("plan", &["plan", "build"]);
    assert_eq!(mode_for(&left, Permissions::Bypass).as_deref(), Some("build"));
    assert_eq!(mode_for(&left, Permissions::ReadOnly), None);
    // Nobody knows whether that one asks.
    assert_eq!(mode_for(&left, Permissions::Ask), None);
    assert_eq!(left.doubt(Permissions::Ask), Some(NO_ASKING));
}

#[test]
fn an_agent_without_such_a_mode_is_said_to_have_none() {
    for settings in [modes("auto", &["auto"]), Settings::read(&json!({}))] {
        assert_eq!(mode_for(&settings, Permissions::ReadOnly), None);
        assert_eq!(settings.doubt(Permissions::ReadOnly), Some(NO_READING));
        assert_eq!(mode_for(&settings, Permissions::Ask), None);
        assert_eq!(settings.doubt(Permissions::Ask), Some(NO_ASKING));
        assert_eq!(settings.doubt(Permissions::Bypass), None);
    }
}

#[test]
fn reading_falls_back_on_a_mode_that_asks() {
    let settings = modes("auto", &["auto", "default"]);
    assert_eq!(mode_for(&settings, Permissions::ReadOnly).as_deref(), Some("default"));
    let settings = modes("default", &["auto", "default"]);
    assert_eq!(mode_for(&settings, Permissions::ReadOnly), None);
    assert_eq!(settings.doubt(Permissions::ReadOnly), Some(ONLY_ASKING));
    assert_eq!(settings.doubt(Permissions::Ask), None);
}

#[test]
fn a_model_is_found_by_its_value_or_its_name_and_in_groups() {
    let group = json!({ "group": "g", "name": "G", "options": [
        { "value": "x-1", "name": "X One" }, { "value": "x-2", "name": "X Two" },
    ]});
    let option = json!({ "id": "m", "type": "select", "category": "model",
                         "currentValue": "x-1", "options": [group] });
    let settings = Settings::read(&json!({ "configOptions": [option] }));
    assert_eq!(settings.wish_model("x-1"), Wish::Holds);
    let Wish::Set(change) = settings.wish_model("x two") else { panic!() };
    let (method, params) = change.request("s");
    assert_eq!(method, "session/set_config_option");
    assert_eq!(params, json!({ "sessionId": "s", "configId": "m", "value": "x-2" }));
    let Wish::Cannot(why) = settings.wish_model("y") else { panic!() };
    assert!(why.contains("X One, X Two"), "{why}");
    assert_eq!(settings.model().as_deref(), Some("X One"));
}

#[test]
fn what_the_agent_says_of_its_options_holds_from_then_on() {
    let option = |category: &str, current: &str| {
        let offers = json!([{ "value": "a", "name": "A" }, { "value": "plan", "name": "P" }]);
        json!({ "id": category, "type": "select", "category": category,
                "currentValue": current, "options": offers })
    };
    let first = json!([option("mode", "plan"), option("model", "a")]);
    let mut settings = Settings::read(&json!({ "configOptions": first }));
    let now = json!({ "configOptions": [option("mode", "a"), option("thought_level", "a")] });
    settings.options_are(&now);
    assert_eq!(mode_for(&settings, Permissions::ReadOnly).as_deref(), Some("plan"));
    assert_eq!(settings.model().as_deref(), Some("A"));
    assert!(settings.thinking.is_some());
    let mut settings = modes("plan", &["plan", "a"]);
    settings.options_are(&now);
    let Wish::Set(change) = settings.wish_mode(Permissions::ReadOnly) else { panic!() };
    assert_eq!(change.request("s").0, "session/set_mode");
}

#[test]
fn a_level_of_thinking_is_set_where_the_agent_has_it() {
    let offers = json!([{ "value": "low", "name": "Low" }, { "value": "off", "name": "Off" }]);
    let option = json!({ "id": "t", "type": "select", "category": "thought_level",
                         "currentValue": "low", "options": offers });
    let settings = Settings::read(&json!({ "configOptions": [option] }));
    assert!(matches!(settings.wish_thinking(Thinking::Off), Wish::Set(_)));
    assert_eq!(settings.wish_thinking(Thinking::Low), Wish::Holds);
    assert!(!settings.can_think(Thinking::High));
}
