//! Files that come with messages and go out with answers, as people meet them.

use std::{
    fs,
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::PathBuf,
};

use serde_json::json;

use super::rig::{ANN, Rig, parrot};
use crate::{
    support::{LIMIT, files_below},
    twilio_double::{Attached, Inbound, Message},
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nhay";

/// Lets the agent name files that it made, and returns what Ann was sent once she has
/// so many messages.
fn sent(rig: &Rig, files: &[(&str, &[u8])], n_messages: usize) -> Vec<Message> {
    for (name, bytes) in files {
        fs::write(rig.place.work().join(name), bytes).unwrap();
    }
    let tokens: Vec<String> =
        files.iter().map(|(name, _)| format!("sim:echo=MEDIA:{name}")).collect();
    rig.ask(&tokens.join(" "));
    rig.wait_for("an answer with its files", &rig.ann, |sent| {
        let is_there = |it: &Message| it.media.len() == it.media_urls.len();
        sent.len() == n_messages && sent.iter().all(is_there)
    })
}

#[test]
fn a_picture_is_fetched_by_who_may_and_is_what_it_contains() {
    let rig = Rig::with(|_, settings| parrot(settings));
    // Whatever is said of it.
    let picture = Attached::new("text/html", PNG);
    rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, "look").with(picture));
    let told = rig.wait_for_text(&rig.ann, "look").body;
    let (_, rest) = told.split_once("[Attached: image/png, ").expect(&told);
    let (path, _) = rest.split_once(']').unwrap();
    assert!(path.contains("/1-ME") && path.ends_with(".png"), "{path}");
    assert_eq!(fs::read(path).unwrap(), PNG);
    let asked: Vec<_> = rig.twilio.requests();
    assert!(asked.iter().any(|it| it.path.contains("/Media/ME") && it.status == 307), "{asked:?}");
}

#[test]
fn a_file_that_is_too_large_is_left_out_and_the_answer_comes_all_the_same() {
    let rig = Rig::with(|_, settings| {
        parrot(settings);
        settings["media"] = json!({ "max_mb": 1 });
    });
    let files = [Attached::endless("video/mp4"), Attached::new("image/png", PNG)];
    let message = Inbound::new(&rig.ann, &rig.own, "look");
    rig.twilio.hand_in(&files.into_iter().fold(message, Inbound::with));
    let told = rig.wait_for_text(&rig.ann, "look").body;
    assert!(told.contains("it is larger than 1 MB"), "{told}");
    assert_eq!(files_below(&rig.place.path("data/media")).len(), 1);
}

#[test]
fn nobody_makes_it_call_other_hosts() {
    let rig = Rig::with(|_, settings| parrot(settings));
    let inside = TcpListener::bind("127.0.0.1:0").unwrap();
    inside.set_nonblocking(true).unwrap();
    let url = format!("http://{}/secret", inside.local_addr().unwrap());
    let file = Attached::elsewhere("image/png", &url);
    rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, "look").with(file));
    let told = rig.wait_for_text(&rig.ann, "look").body;
    assert!(told.contains("[An attachment could not be fetched"), "{told}");
    assert_eq!(inside.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_voice_note_without_a_word_is_answered_by_what_is_spoken_in_it() {
    let rig = Rig::with(|_, settings| {
        let command = ["sh", "-c", "tail -c +5 \"$1\"", "sh", "{{MediaPath}}"];
        settings["media"] = json!({ "transcribe": { "command": command } });
    });
    let note = Attached::new("audio/ogg", b"OggSsim:echo=feed-the-horses");
    rig.hand_in(|message| message.with(note));
    rig.wait_for_text(&rig.ann, "feed-the-horses");
}

#[test]
fn by_whatsapp_each_file_is_a_message_of_its_own_after_the_text() {
    let rig = Rig::start();
    let sent = sent(&rig, &[("hay.png", PNG), ("bill.pdf", b"%PDF-1")], 3);
    assert!(sent[0].media.is_empty() && sent[0].body.contains("This is Ostler"), "{sent:?}");
    for (message, (kind, bytes)) in
        sent[1..].iter().zip([("image/png", PNG), ("application/pdf", b"%PDF-1")])
    {
        let media = rig.twilio.media_of(&message.sid);
        assert_eq!((media[0].content_type.as_str(), media[0].bytes()), (kind, bytes));
        assert_eq!((message.body.as_str(), media.len()), ("", 1));
    }
}

#[test]
fn by_mms_files_come_together_behind_the_text() {
    let rig = Rig::start();
    fs::write(rig.place.work().join("hay.png"), PNG).unwrap();
    fs::write(rig.place.work().join("oats.gif"), b"GIF89a").unwrap();
    rig.twilio.say(ANN, &rig.sms, "sim:echo=MEDIA:hay.png sim:echo=MEDIA:oats.gif");
    let sent = rig.wait_for("an answer with its files", ANN, |sent| {
        sent.iter().any(|message| message.media.len() == 2)
    });
    assert_eq!(sent.len(), 2);
    assert!(sent[0].body.contains("This is Ostler"), "{sent:?}");
    assert!(sent[0].media.is_empty() && sent[1].body.is_empty(), "{sent:?}");
}

#[test]
fn a_link_works_once() {
    let rig = Rig::start();
    let sent = sent(&rig, &[("hay.png", PNG)], 2);
    let link = &sent[1].media_urls[0];
    assert!(link.starts_with(&format!("{}/media/", rig.url)), "{link}");
    let (host, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut again = String::new();
    stream.read_to_string(&mut again).unwrap();
    assert!(again.starts_with("HTTP/1.1 404 "), "{again}");
    // What is left says what there was, and is no file.
    let left = files_below(&rig.place.path("data/media/offered"));
    let is_mark = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with('=');
    assert!(left.len() == 1 && left.iter().all(is_mark), "{left:?}");
}

#[test]
fn a_file_from_elsewhere_is_not_sent() {
    let rig = Rig::start();
    fs::write(rig.place.path("secret.pdf"), "%PDF-1").unwrap();
    let secret = rig.place.path("secret.pdf");
    symlink(&secret, rig.place.work().join("in.pdf")).unwrap();
    rig.ask(&format!("sim:echo=MEDIA:{} sim:echo=MEDIA:in.pdf", secret.display()));
    let answer = rig.wait_for_text(&rig.ann, "was not sent").body;
    assert_eq!(answer.matches("not in a folder from which files may be sent").count(), 2);
    assert!(rig.twilio.media_fetches().is_empty());
}

#[test]
fn what_whatsapp_would_not_take_is_told_of_and_not_tried() {
    let rig = Rig::with(|_, settings| {
        settings["media"] = json!({ "max_mb": 100, "max_image_mb": 100, "max_video_mb": 100 });
    });
    let mut picture = PNG.to_vec();
    picture.resize(5_300_000, 0);
    let mut film = b"\0\0\0\x18ftypmp42".to_vec();
    film.resize(17_000_000, 0);
    let files: [(&str, &[u8]); 4] = [
        ("large.png", &picture),
        ("film.mp4", &film),
        ("notes.bin", b"\x7fELF\x01\x02"),
        ("bill.pdf", b"%PDF-1"),
    ];
    let sent = sent(&rig, &files, 2);
    let text = &sent[0].body;
    for note in [
        "large.png was not sent: pictures here may have 5 MB.",
        "film.mp4 was not sent: files here may have 16 MB.",
        "notes.bin was not sent: files of this kind cannot be sent here.",
    ] {
        assert!(text.contains(note), "{text}");
    }
    assert_eq!(rig.twilio.media_of(&sent[1].sid)[0].content_type, "application/pdf");
}

#[test]
fn documents_are_called_what_they_are() {
    let rig = Rig::start();
    let sent = sent(&rig, &[("bill.docx", b"PK\x03\x04[Content_Types].xml")], 2);
    let kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    assert_eq!(rig.twilio.media_of(&sent[1].sid)[0].content_type, kind);
}

#[test]
fn by_mms_files_that_are_too_large_together_come_apart() {
    let rig = Rig::start();
    let mut picture = PNG.to_vec();
    picture.resize(3_000_000, 0);
    for name in ["one.png", "two.png"] {
        fs::write(rig.place.work().join(name), &picture).unwrap();
    }
    rig.twilio.say(ANN, &rig.sms, "sim:echo=MEDIA:one.png sim:echo=MEDIA:two.png");
    let sent = rig.wait_for("two messages with a file each, behind the text", ANN, |sent| {
        let n_files = sent.iter().map(|message| message.media.len());
        n_files.eq([0, 1, 1])
    });
    assert!(sent.iter().all(|message| message.error.is_none()), "{sent:?}");
}

#[test]
fn where_twilio_cannot_fetch_a_file_its_reader_is_told() {
    let rig = Rig::with(|_, settings| {
        settings["twilio"].as_object_mut().unwrap().remove("public_url");
        settings["twilio"]["poll_every"] = json!("200ms");
    });
    let sent = sent(&rig, &[("hay.png", PNG)], 1);
    assert!(sent[0].body.contains("hay.png was not sent: no files can be sent here."), "{sent:?}");
    assert_eq!(files_below(&rig.place.path("data/media/offered")), Vec::<PathBuf>::new());
    rig.twilio.wait_for("nothing waits", LIMIT, |world| (world.under_way() == 0).then_some(()));
}
