//! Files that Twilio could not fetch: they are offered once more, by links of their own.

use std::fs;

use super::rig::{ANN, Rig};
use crate::twilio_double::Message;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nhay";

/// Asserts of the messages with a file to somebody that the first one failed, and that
/// the second one brought the file by another link.
fn assert_second_link(sent: &[Message], code: u32) -> Vec<&Message> {
    let with_file: Vec<&Message> = sent.iter().filter(|it| !it.media_urls.is_empty()).collect();
    assert_eq!(with_file.len(), 2, "{sent:#?}");
    let [first, second] = [with_file[0], with_file[1]];
    assert_eq!((first.error, first.media.len()), (Some(code), 0), "{sent:#?}");
    assert_eq!((second.error, second.media.len()), (None, 1), "{sent:#?}");
    assert_ne!(first.media_urls, second.media_urls);
    with_file
}

#[test]
fn a_file_that_got_lost_on_its_way_to_twilio_comes_once_and_by_another_link() {
    let rig = Rig::start();
    fs::write(rig.place.work().join("hay.png"), PNG).unwrap();
    // The link is used up, and Twilio has nothing: by WhatsApp, and by MMS.
    rig.twilio.lose_files(2);
    rig.ask("sim:echo=MEDIA:hay.png");
    rig.twilio.say(ANN, &rig.sms, "sim:echo=MEDIA:hay.png");
    for (whom, code) in [(&rig.ann as &str, 63019), (ANN, 11200)] {
        let sent =
            rig.wait_for("the file", whom, |sent| sent.iter().any(|it| !it.media.is_empty()));
        let with_file = assert_second_link(&sent, code);
        let media = rig.twilio.media_of(&with_file[1].sid);
        assert_eq!((media[0].content_type.as_str(), media[0].bytes()), ("image/png", PNG));
    }
    // The text of an answer had arrived, and does not come again.
    let texts = rig.texts(&rig.ann);
    assert_eq!(texts.iter().filter(|text| !text.is_empty()).count(), 1, "{texts:#?}");
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    assert_eq!((rig.texts(&rig.ann).len(), rig.texts(ANN).len()), (4, 3));
    assert_eq!(rig.twilio.media_fetches().len(), 4, "{:#?}", rig.twilio.media_fetches());
}
