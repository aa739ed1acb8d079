//! Where hooks may come from, and what is shown of them.

use super::*;

const FILE: &str = "{ hooks: {
    log: { on: ['after_turn'], command: ['./x'], timeout: '5s' },
    tell: { on: 'error', url: 'https://h.example:1/very-secret' },
  } }";

#[test]
fn a_strangers_directory_sets_no_hooks() {
    let of = |trust| load_files(&[("ostler.json5", FILE)], &[], trust).unwrap();
    let strange = of(Trust::Named);
    assert_eq!(strange.config.hooks.iter().count(), 0);
    assert_eq!(strange.warnings.len(), 2);
    assert!(strange.warnings[0].contains("hooks.log is not used from here"));
    assert!(!strange.is_set("hooks.log.on"));
    let own = of(Trust::Everything);
    assert_eq!((own.config.hooks.iter().count(), own.warnings.len()), (2, 0));
    // What is wrong with them is told all the same.
    let wrong = "{ hooks: { log: { on: 'never', command: ['x'] } } }";
    assert!(load_files(&[("ostler.json5", wrong)], &[], Trust::Named).is_err());
}

#[test]
fn a_hook_is_shown_without_what_may_be_secret_and_a_change_of_it_is_told() {
    let loaded = load(FILE).unwrap();
    let shown = view::shown(&loaded);
    let of = |key: &str| shown.iter().find(|shown| shown.key == key).unwrap();
    assert_eq!(of("hooks.log.on").value, json!(["after_turn"]));
    assert_eq!(of("hooks.log.timeout").value, "5s");
    assert_eq!(of("hooks.tell.timeout").value, "10s");
    assert_eq!(of("hooks.tell.url").value, "https://h.example:1/…");
    assert!(of("hooks.tell.url").source.contains("ostler.json5:3:"));
    assert!(!json!(shown).to_string().contains("very-secret"));
    let other = load(&FILE.replace("very-secret", "another")).unwrap();
    let changes = view::changes(&loaded.config, &other.config);
    assert!(changes.iter().any(|change| change.key == "hooks.tell.url"), "{changes:?}");
}
