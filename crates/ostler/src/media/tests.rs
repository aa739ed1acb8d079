//! What becomes of an answer, and what is configured.

use std::fs;

use super::*;
use crate::config;

fn rules() -> Rules {
    Rules { caps: Caps::all(MEGABYTE), ..Rules::default() }
}

#[test]
fn an_answer_is_shown_without_tokens_with_its_files_and_with_what_is_missing() {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("chart.png"), "png").unwrap();
    fs::write(work.path().join("my notes.txt"), "notes").unwrap();
    let said = "Here:\nMEDIA:chart.png MEDIA:./chart.png\nMEDIA:\"my notes.txt\"\nMEDIA:chart.png\n\
                MEDIA:/etc/shadow\nMEDIA:https://example.org/a.jpg\nBye.";
    let answer = answer(said, Some(work.path()), &rules(), Said::InReply);
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
    assert_eq!(
        answer(said, None, &rules(), Said::InReply),
        Answer { text: said.to_owned(), ..Answer::default() }
    );
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
    let many = answer(&said, Some(work.path()), &rules(), Said::InReply);
    assert_eq!(many.attachments.len(), MOST);
    assert_eq!(many.notes, ["2 more were not sent: an answer may name 10 files."]);
    assert_eq!(many.text, "https://example.org/a");
    let large = |name: &str| {
        let file = fs::File::create(work.path().join(name)).unwrap();
        file.set_len(TOGETHER / 2 + 1).unwrap();
    };
    large("one.bin");
    large("two.bin");
    let rules = Rules { caps: Caps::all(TOGETHER), ..Rules::default() };
    let both =
        answer("MEDIA:one.bin MEDIA:two.bin MEDIA:0.txt", Some(work.path()), &rules, Said::Unasked);
    assert_eq!(both.attachments.len(), 2);
    assert_eq!(
        both.notes,
        ["two.bin was not sent: the files of an answer may have 100 MB together."]
    );
}

#[test]
fn what_every_reply_has_goes_with_replies_and_with_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stable.png");
    fs::write(&path, "png").unwrap();
    let with = |each: &str, most| {
        let reply = ReplyFiles { each: Some(each.to_owned()), most };
        Rules { reply, ..rules() }
    };
    let file = with(path.to_str().unwrap(), None);
    let names = |answer: &Answer| -> Vec<_> {
        answer.attachments.iter().map(|file| file.name.clone()).collect()
    };
    let reply = answer("Hello.", None, &file, Said::InReply);
    assert_eq!((reply.text.as_str(), names(&reply)), ("Hello.", vec!["stable.png".to_owned()]));
    let unasked = answer("Hello.", None, &file, Said::Unasked);
    assert_eq!(names(&unasked), Vec::<String>::new());
    let link = with("https://example.org/a.png", None);
    let said = "Hello. MEDIA:https://example.org/b.png MEDIA:https://example.org/a.png";
    let reply = answer(said, None, &link, Said::InReply);
    assert_eq!(reply.text, "Hello.\nhttps://example.org/b.png\nhttps://example.org/a.png");
    assert_eq!(answer("Hello.", None, &link, Said::Unasked).text, "Hello.");
    // What is wrong with it is the operator's business.
    for wrong in [with("/no/such/file", None), with(path.to_str().unwrap(), Some(2))] {
        let reply = answer("Hello.", None, &wrong, Said::InReply);
        assert_eq!(reply, Answer { text: "Hello.".to_owned(), ..Answer::default() });
    }
}

#[test]
fn a_reply_may_have_a_smaller_limit_and_each_sort_of_file_has_one() {
    let work = tempfile::tempdir().unwrap();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.resize(2 * 1024 * 1024, 0);
    fs::write(work.path().join("large.txt"), &png).unwrap();
    let media = config::Media { max_image_mb: 1, ..config::Media::default() };
    let rules = Rules { caps: Caps::new(&media), ..Rules::default() };
    let by = |rules: &Rules, said| answer("MEDIA:large.txt", Some(work.path()), rules, said);
    // By what is in it, whatever it is called.
    let why = ["large.txt was not sent: it is larger than 1 MB."];
    assert_eq!(by(&rules, Said::Unasked).notes, why);
    let rules = Rules { caps: Caps::new(&config::Media::default()), ..rules };
    assert_eq!(by(&rules, Said::InReply).attachments.len(), 1);
    let reply = ReplyFiles { most: Some(MEGABYTE), ..ReplyFiles::default() };
    let rules = Rules { reply, ..rules };
    assert_eq!(by(&rules, Said::InReply).notes, why);
    assert_eq!(by(&rules, Said::Unasked).attachments.len(), 1);
}

#[test]
fn of_a_discord_of_ones_own_files_may_come_from_this_machine() {
    let mut config = Config::default();
    let of = |config: &Config| Rules::new(config, &Variables::new(), Path::new("/data"));
    let rules = of(&config);
    assert_eq!(rules.dir.as_deref(), Some(Path::new("/data/media")));
    assert_eq!(rules.caps.most(), 25 * 1024 * 1024);
    assert_eq!(rules.vouched("webhook"), []);
    let [discord] = rules.vouched(DISCORD) else { panic!("{rules:?}") };
    assert!(!discord.at.may_be_private && discord.onward.is_none());
    config.discord.api_url = Some("http://127.0.0.1:8080/api".to_owned());
    let rules = of(&config);
    let [_, api] = rules.vouched(DISCORD) else { panic!("{rules:?}") };
    assert_eq!(*api, Vouched::open(Hosts::own("http://127.0.0.1:8080").unwrap()));
}
