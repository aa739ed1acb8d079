//! Templates, filled in with all that somebody may write.

use proptest::prelude::*;

use super::*;
use crate::{memo::Memo, request::SessionArgs};

const FACTS: TemplateFacts = TemplateFacts {
    program: "agent",
    subcommand: None,
    spellings: &[&["-p", "--print"]],
    setting: Some("-c"),
    session_new: &["--session-id", "{{SessionId}}"],
    session_resume: &["--resume", "{{SessionId}}"],
    body_on_stdin: &[],
    misreads: |prompt| prompt.starts_with(['-', '/']),
    plain: |text| text.replace('@', "(at)"),
};

fn template(words: &[&str]) -> Template {
    let command = words.iter().map(|word| (*word).to_owned()).collect();
    let mut template = Template { command, ..Template::default() };
    template.variables.insert("SessionId".into(), "new-1".into());
    template
}

fn resume() -> Open {
    Open::Resume(Box::new(Memo::of_id("agent", "old-1")))
}

fn flags() -> Vec<Vec<OsString>> {
    groups(&["-p", "--model", "m"].map(OsString::from))
}

fn words(template: &Template, open: &Open, prompt: &str) -> String {
    let line = fill(&FACTS, template, open, prompt, prompt.as_bytes(), &flags()).unwrap();
    let args: Vec<_> = line.args.iter().map(|word| word.to_string_lossy()).collect();
    let stdin = match &line.stdin {
        Stdin::Null | Stdin::Open => String::new(),
        Stdin::Bytes(bytes) => format!(" < {}", String::from_utf8_lossy(bytes)),
    };
    format!("{}{stdin}", args.join(" "))
}

#[test]
fn missing_flags_are_added_and_the_body_keeps_its_place() {
    let line = words(&template(&["agent", "{{Body}}", "--last"]), &Open::New, "hi");
    assert_eq!(line, "-p --model m --session-id new-1 hi --last");
}

#[test]
fn flags_that_are_there_in_any_spelling_are_not_added() {
    let line = words(&template(&["agent", "--print", "--model=x", "{{Body}}"]), &resume(), "hi");
    assert_eq!(line, "--print --model=x --resume old-1 hi");
}

#[test]
fn another_program_gets_nothing_but_its_own_words() {
    let line = words(&template(&["/bin/echo", "{{Body}} {{Nope}}!"]), &resume(), "hi");
    assert_eq!(line, "hi !");
}

#[test]
fn session_arguments_can_be_replaced_and_put_at_the_end() {
    let mut template = template(&["agent", "{{Body}}"]);
    template.session = SessionArgs {
        new: Some(vec![]),
        resume: Some(vec!["--thread={{SessionId}}".into()]),
        position: SessionArgPosition::End,
    };
    assert_eq!(words(&template, &Open::New, "hi"), "-p --model m hi");
    assert_eq!(words(&template, &resume(), "hi"), "-p --model m hi --thread=old-1");
}

#[test]
fn a_prompt_that_would_be_misread_or_has_no_place_goes_to_standard_input() {
    let with_body = template(&["agent", "{{Body}}"]);
    assert_eq!(words(&with_body, &resume(), "--help"), "-p --model m --resume old-1 < --help");
    let without = template(&["agent", "--fast"]);
    assert_eq!(words(&without, &resume(), "hi"), "-p --model m --fast --resume old-1 < hi");
}

#[test]
fn a_body_in_a_longer_word_or_with_spaces_in_its_braces_is_no_option_either() {
    for word in ["{{ Body }}", "{{Body}}!"] {
        let line = words(&template(&["agent", word]), &resume(), "--help");
        let tail = if word.ends_with('!') { "!" } else { "" };
        assert_eq!(line, format!("-p --model m --resume old-1 < --help{tail}"), "{word}");
    }
    let line = words(&template(&["agent", "Do: {{Body}}"]), &resume(), "--help");
    assert_eq!(line, "-p --model m --resume old-1 Do: --help");
}

#[test]
fn settings_are_told_apart_by_their_key() {
    let flags = groups(&["-c", "a=1", "-c", "b=2"].map(OsString::from));
    let template = template(&["agent", "-c", "b=7", "{{Body}}"]);
    let line = fill(&FACTS, &template, &resume(), "hi", b"hi", &flags).unwrap();
    let args: Vec<_> = line.args.iter().map(|word| word.to_string_lossy()).collect();
    assert_eq!(args.join(" "), "-c a=1 -c b=7 --resume old-1 hi");
}

#[test]
fn a_subcommand_keeps_its_place_and_comes_once() {
    let facts = TemplateFacts { subcommand: Some("exec"), ..FACTS };
    let line = |words: &[&str]| {
        let line = fill(&facts, &template(words), &resume(), "hi", b"hi", &flags()).unwrap();
        let args: Vec<_> = line.args.iter().map(|word| word.to_string_lossy()).collect();
        args.join(" ")
    };
    assert_eq!(line(&["agent", "{{Body}}"]), "exec -p --model m --resume old-1 hi");
    assert_eq!(
        line(&["agent", "--search", "exec", "{{Body}}"]),
        "--search exec -p --model m --resume old-1 hi"
    );
}

#[test]
fn a_word_that_no_program_could_be_started_with_is_refused() {
    let fits = "x".repeat(LONGEST_WORD);
    let filled = |words: &[&str], prompt: &str| {
        fill(&FACTS, &template(words), &Open::New, prompt, prompt.as_bytes(), &flags())
    };
    assert_eq!(filled(&["/bin/echo", "{{Body}}"], &fits).unwrap().args, [OsString::from(&fits)]);
    for words in [&["/bin/echo", "{{Body}}!"], &["/bin/echo", "--x={{Body}}"]] {
        let LaunchError::BadTemplate { why } = filled(words, &fits).unwrap_err();
        assert!(why.contains("the system takes 131071; without {{Body}} in it"), "{why}");
    }
    assert!(filled(&["/bin/cat"], &fits.repeat(2)).is_ok());
}

#[test]
fn a_template_without_a_program_or_with_one_that_a_message_chooses_is_refused() {
    for words in [&[][..], &[""], &["{{Nope}}"], &["{{From}}"], &["/bin/{{ Body }}"]] {
        assert!(fill(&FACTS, &template(words), &Open::New, "hi", b"hi", &[]).is_err());
    }
}

#[test]
fn the_message_alone_has_the_place_of_the_prompt_and_the_prompt_is_not_sent_beside_it() {
    let mut own = template(&["agent", "{{BodyStripped}}", "--last"]);
    own.variables.insert("BodyStripped".into(), "me@home".into());
    assert_eq!(
        words(&own, &resume(), "all of it"),
        "-p --model m --resume old-1 me(at)home --last"
    );
    own.variables.insert("BodyStripped".into(), "-me@home".into());
    assert_eq!(
        words(&own, &resume(), "all of it"),
        "-p --model m --resume old-1 --last < -me(at)home"
    );
}

#[test]
fn what_somebody_wrote_is_no_option_of_any_program() {
    let mut own = template(&["agent", "{{From}}", "--name={{From}}", "-{{From}}", "{{Body}}"]);
    own.variables.insert("From".into(), "--yes".into());
    own.session.resume = Some(vec!["{{From}}".into(), "{{SessionId}}".into()]);
    assert_eq!(
        words(&own, &resume(), "hi"),
        "-p --model m  --yes --name=--yes ---yes  --yes old-1 hi"
    );
    own.command[0] = "/bin/echo".into();
    own.session.resume = None;
    assert_eq!(words(&own, &resume(), "-n\0x"), " --yes --name=--yes ---yes  -n\u{fffd}x");
}

fn any_word() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("{{Body}}".to_owned()),
        Just("{{BodyStripped}}".to_owned()),
        Just("{{ From }}".to_owned()),
        Just("{{SessionId}}".to_owned()),
        Just("{{Unknown}}".to_owned()),
        Just("--model".to_owned()),
        Just("{{".to_owned()),
        Just("}}".to_owned()),
        "[a-z =-]{0,6}",
    ];
    proptest::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("--resume".to_owned()),
        Just("-".to_owned()),
        Just("{{Body}} {{From}}".to_owned()),
        Just("$(rm -rf /); `x` && 'y' \" z".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_adds_a_word_takes_one_away_or_makes_an_option(
        is_agent in any::<bool>(),
        own in proptest::collection::vec(any_word(), 0..6),
        session in proptest::option::of(proptest::collection::vec(any_word(), 0..3)),
        is_new in any::<bool>(),
        (body, stripped, from) in (any_text(), any_text(), any_text()),
    ) {
        let facts = TemplateFacts { body_on_stdin: &["<"], ..FACTS };
        let program = if is_agent { "agent" } else { "/bin/echo" };
        let mut filled = template(&[program]);
        filled.command.extend(own.clone());
        filled.session = SessionArgs { new: session.clone(), resume: session, ..SessionArgs::default() };
        let open = if is_new { Open::New } else { resume() };
        let line = |template: &Template, body: &str| {
            fill(&facts, template, &open, body, body.as_bytes(), &flags()).unwrap()
        };
        // The same template with harmless texts is what it is measured by.
        for (name, value) in [("BodyStripped", "x"), ("From", "x")] {
            filled.variables.insert(name.into(), value.into());
        }
        let plain = line(&filled, "x");
        filled.variables.insert("BodyStripped".into(), stripped);
        filled.variables.insert("From".into(), from);
        let wild = line(&filled, &body);
        prop_assert_eq!(wild.args.len(), plain.args.len(), "{:?} {:?}", plain.args, wild.args);
        for (wild, plain) in wild.args.iter().zip(&plain.args) {
            let (wild, plain) = (wild.as_encoded_bytes(), plain.as_encoded_bytes());
            prop_assert!(!wild.starts_with(b"-") || plain.starts_with(b"-"), "{:?}", wild);
            prop_assert!(!wild.contains(&0));
        }
    }

    #[test]
    fn any_text_is_filled_in_and_what_is_filled_in_is_not_looked_at_again(
        text in any::<String>(), value in any_text(),
    ) {
        expand(&text, &|_: &str| Some(value.as_str()));
        let once = expand("a{{Name}}b", &|_: &str| Some(value.as_str()));
        prop_assert_eq!(once, format!("a{value}b"));
    }
}

#[test]
fn unknown_names_are_empty_and_other_braces_stay() {
    let lookup = |name: &str| (name == "Body").then_some("b {{Body}}");
    assert_eq!(expand("x {{ Body }} {{Who}}.", &lookup), "x b {{Body}} .");
    assert_eq!(expand("{{ not a name }} {{", &lookup), "{{ not a name }} {{");
    assert_eq!(expand("{{{{Body}}", &lookup), "{{b {{Body}}");
}
