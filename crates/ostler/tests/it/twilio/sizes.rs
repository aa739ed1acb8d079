//! How large files may be, by what they are, both ways.

use std::fs;

use serde_json::json;

use super::rig::{Rig, parrot};
use crate::twilio_double::{Attached, Inbound};

/// One of each sort: how it begins, what it is called, and the key of its limit.
const SORTS: [(&str, &[u8], &str); 4] = [
    ("hay.png", b"\x89PNG\r\n\x1a\n", "max_image_mb"),
    ("song.ogg", b"OggS", "max_audio_mb"),
    ("film.mp4", b"\0\0\0\x18ftypmp42", "max_video_mb"),
    ("bill.pdf", b"%PDF-1.7\n", "max_document_mb"),
];

/// Makes a file of so many bytes that begins like this.
fn filled(start: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = start.to_vec();
    bytes.resize(size, b' ');
    bytes
}

#[test]
fn what_comes_in_has_the_limit_of_its_sort() {
    for (name, start, key) in SORTS {
        let rig = Rig::with(|_, settings| {
            parrot(settings);
            // Whatever the others may have, and whatever its sender calls it.
            settings["media"] = json!({ key: 1 });
        });
        let [small, large] = [900_000, 1_200_000].map(|size| filled(start, size));
        let message = Inbound::new(&rig.ann, &rig.own, "look");
        let message = message.with(Attached::new("text/plain", &small));
        rig.twilio.hand_in(&message.with(Attached::new("text/plain", &large)));
        let told = rig.wait_for_text(&rig.ann, "look").body;
        assert_eq!(told.matches("[Attached: ").count(), 1, "{name}: {told}");
        assert_eq!(told.matches("it is larger than 1 MB").count(), 1, "{name}: {told}");
    }
}

#[test]
fn what_goes_out_has_the_limit_of_its_sort() {
    for (name, start, key) in SORTS {
        let rig = Rig::with(|_, settings| settings["media"] = json!({ key: 1 }));
        for (size, prefix) in [(900_000, "small"), (1_200_000, "large")] {
            let path = rig.place.work().join(format!("{prefix}-{name}"));
            fs::write(path, filled(start, size)).unwrap();
        }
        rig.ask(&format!("sim:echo=MEDIA:large-{name} sim:echo=MEDIA:small-{name}"));
        let sent = rig.wait_for("the small one", &rig.ann, |sent| {
            sent.iter().any(|message| !message.media.is_empty())
        });
        let note = format!("large-{name} was not sent: it is larger than 1 MB.");
        assert!(sent[0].body.contains(&note), "{}", sent[0].body);
        let arrived = rig.twilio.media_of(&sent[1].sid);
        assert_eq!((sent.len(), arrived[0].bytes().len()), (2, 900_000), "{name}");
    }
}
