//! What becomes of an answer, and what is configured.

use std::fs;

use super::*;

fn rules() -> Rules {
    Rules { max_bytes: MEGABYTE, ..Rules::default() }
}

#[test]
fn an_answer_is_shown_without_tokens_with_its_files_and_with_what_is_missing() {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("chart.png"), "png").unwrap();
    fs::write(work.path().join("my notes.txt"), "notes").unwrap();
    let said = "Here:\nMEDIA:chart.png MEDIA:./chart.png\nMEDIA:\"my notes.txt\"\nMEDIA:chart.png\n\
                MEDIA:/etc/shadow\nMEDIA:https://example.org/a.jpg\nBye.";
    let answer = answer(said, Some(work.path()), &rules());
    assert_eq!(answer.text, "Here:\nBye.\nhttps://example.org/a.jpg");
    let names: Vec<_> = answer.attachments.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["chart.png", "chart.png", "my_notes.txt"]);
    let why =
        "shadow was not sent: it is not there, or not in a folder from which files may be sent.";
    assert_eq!(answer.notes, [why]);
}

#[test]
fn an_answer_without_tokens_is_shown_as_it_is() {
    let said = "Nothing to see.\n\n```\nMEDIA:x.png\n```\n";
    assert_eq!(answer(said, None, &rules()), Answer { text: said.to_owned(), ..Answer::default() });
}

#[test]
fn an_answer_has_a_limit_of_files_and_of_bytes() {
    let work = tempfile::tempdir().unwrap();
    let mut said = String::new();
    for number in 0..12 {
        fs::write(work.path().join(format!("{number}.txt")), "x").unwrap();
        said.push_str(&format!("MEDIA:{number}.txt\n"));
    }
    said.push_str("MEDIA:https://example.org/a");
    let many = answer(&said, Some(work.path()), &rules());
    assert_eq!(many.attachments.len(), MOST);
    assert_eq!(many.notes, ["2 more were not sent: an answer may name 10 files."]);
    assert_eq!(many.text, "https://example.org/a");
    let large = |name: &str| {
        let file = fs::File::create(work.path().join(name)).unwrap();
        file.set_len(TOGETHER / 2 + 1).unwrap();
    };
    large("one.bin");
    large("two.bin");
    let rules = Rules { max_bytes: TOGETHER, ..Rules::default() };
    let both = answer("MEDIA:one.bin MEDIA:two.bin MEDIA:0.txt", Some(work.path()), &rules);
    assert_eq!(both.attachments.len(), 2);
    assert_eq!(
        both.notes,
        ["two.bin was not sent: the files of an answer may have 100 MB together."]
    );
}

#[test]
fn of_a_discord_of_ones_own_files_may_come_from_this_machine() {
    let mut config = Config::default();
    let of = |config: &Config| Rules::new(config, Path::new("/data"));
    let rules = of(&config);
    assert_eq!(rules.dir.as_deref(), Some(Path::new("/data/media")));
    assert_eq!(rules.max_bytes, 25 * 1024 * 1024);
    assert_eq!(rules.vouched("webhook"), []);
    let [own] = rules.vouched(DISCORD) else { panic!("{rules:?}") };
    assert!(!own.may_be_private);
    config.discord.api_url = Some("http://127.0.0.1:8080/api".to_owned());
    let rules = of(&config);
    let [_, api] = rules.vouched(DISCORD) else { panic!("{rules:?}") };
    assert_eq!(*api, Vouched { hosts: vec!["127.0.0.1:8080".to_owned()], may_be_private: true });
}
