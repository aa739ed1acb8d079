//! The server of OpenCode's that the operator runs.

use super::*;

fn server(pairs: &[(&str, &str)]) -> Option<ServerAddress> {
    let on = [("OPENCODE_ENABLED", "true")];
    read(&[&on[..], pairs].concat()).unwrap().opencode_server
}

#[test]
fn without_the_switch_there_is_no_server_whatever_the_rest_says() {
    let nonsense = ("OPENCODE_URL", "nonsense");
    for pairs in [
        vec![nonsense],
        vec![("OPENCODE_ENABLED", "false"), nonsense],
        vec![("OPENCODE_ENABLED", ""), nonsense],
    ] {
        assert!(read(&pairs).unwrap().opencode_server.is_none(), "{pairs:?}");
    }
}

#[test]
fn the_defaults_are_those_of_opencode_serve() {
    let plain = server(&[]).unwrap();
    assert_eq!((plain.url(), plain.login()), ("http://127.0.0.1:4096", None));
    let known = server(&[("OPENCODE_PASSWORD", "very-secret")]).unwrap();
    assert_eq!(known.login().unwrap().user, "opencode");
    let other = [("OPENCODE_PASSWORD", "x"), ("OPENCODE_USERNAME", "me")];
    assert_eq!(server(&other).unwrap().login().unwrap().user, "me");
}

#[test]
fn a_wrong_value_is_an_error_that_names_the_variable_and_what_is_right() {
    for (name, value, right) in [
        ("OPENCODE_ENABLED", "maybe", "true nor false"),
        ("OPENCODE_URL", "", "http://127.0.0.1:4096"),
        ("OPENCODE_URL", "ftp://host", "http:// or https://"),
        ("OPENCODE_URL", "http://me:very-secret@host", "apart from the URL"),
        ("OPENCODE_URL", "http://host?x=1", "without what begins with ?"),
    ] {
        let error = read(&[("OPENCODE_ENABLED", "true"), (name, value)]).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with(name) && error.contains(right), "{error}");
        assert!(!error.contains("very-secret"), "{error}");
    }
    let user = [("OPENCODE_USERNAME", "a:b"), ("OPENCODE_PASSWORD", "very-secret")];
    let error = read(&[&[("OPENCODE_ENABLED", "true")][..], &user].concat()).unwrap_err();
    assert!(error.to_string().starts_with("OPENCODE_USERNAME"), "{error}");
}

#[test]
fn the_password_is_in_no_text_about_the_settings() {
    let pairs = [("OPENCODE_ENABLED", "1"), ("OPENCODE_PASSWORD", "very-secret")];
    let settings = read(&pairs).unwrap();
    let text = format!("{settings:?} {:?}", settings.opencode_server);
    assert!(!text.contains("very-secret"), "{text}");
}

#[test]
fn a_password_that_others_can_read_is_warned_about() {
    let pairs = [
        ("OPENCODE_ENABLED", "true"),
        ("OPENCODE_URL", "http://example.org:4096"),
        ("OPENCODE_PASSWORD", "very-secret"),
    ];
    let warnings = read(&pairs).unwrap().warnings.join("\n");
    assert!(warnings.contains("use https") && !warnings.contains("secret"), "{warnings}");
}

#[test]
fn a_secret_that_is_not_to_be_had_names_its_key_and_nothing_of_it() {
    let text = "{ opencode: { enabled: true, password: { command: ['true'] } } }";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let loaded = load_with(text, &[("PATH", "/usr/bin:/bin")]).unwrap();
    let other = runtime.block_on(Settings::new(loaded.clone(), Some("codex"))).unwrap();
    assert!(other.opencode_server.is_none(), "another agent does not need it");
    let error = runtime.block_on(Settings::new(loaded, None)).unwrap_err().to_string();
    assert!(error.contains("1:40: opencode.password: there is nothing"), "{error}");
}
