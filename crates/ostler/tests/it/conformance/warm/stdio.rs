//! OpenCode by its standard input and output alone: what is left where its
//! server cannot be reached.

use ostler_sim::model;

use super::until_all_gone;
use crate::conformance::{OPENCODE_BY_ACP, rig::Rig};

#[test]
fn opencode_can_be_driven_without_its_server() {
    let Some(rig) = Rig::new(&OPENCODE_BY_ACP) else { return };
    let mut chat = rig.chat(&["--permissions", "ask"]);
    let first = chat.ask("hello");
    assert_eq!(first.last()["response_text"], model::HELLO, "{}", first.last());
    for (decision, happens) in [("allow", true), ("deny", false)] {
        // Outside of the directory it would ask about that as well.
        let path = rig.place.work().join(decision);
        chat.prompt(&format!("sim:run=touch {decision}"));
        let asked = chat.wait_for(|event| event["type"] == "permission");
        assert!(!path.exists(), "it did not wait");
        chat.answer(&asked["request"], decision);
        let events = chat.finish();
        assert_eq!(events.last()["is_error"], false, "{}", events.last());
        assert_eq!(path.exists(), happens, "{decision}");
    }
    chat.prompt("sim:slow=60000");
    chat.wait_for(|event| event["type"] == "output");
    chat.cancel();
    assert_eq!(chat.finish().last()["error"]["kind"], "cancelled");
    chat.end();
    until_all_gone(&rig);

    let session = first.last()["session_id"].as_str().unwrap();
    let mut again = rig.chat(&["--session", session]);
    assert!(again.answer_to("sim:history").contains("the first was: hello"));
    again.end();
    rig.assert_clean();
}
