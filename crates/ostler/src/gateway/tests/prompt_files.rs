//! What agents are told beside the message, turn by turn.

use std::fs;

use super::{
    super::inbound::{Inbound, Origin},
    *,
};

/// Writes a prompt file, or the next version of one.
fn write(rig: &Rig, name: &str, text: &str) {
    fs::create_dir_all(rig.path("prompt")).unwrap();
    fs::write(rig.path("prompt").join(name), text).unwrap();
}

/// Returns the system prompt that the last call had.
fn system(rig: &Rig) -> Option<String> {
    fs::read_to_string(rig.path("system")).ok()
}

async fn ask_as(rig: &Rig, text: &str, origin: Origin, wishes: Wishes) -> String {
    let message = Inbound { origin, wishes, ..inbound("main", text) };
    let job = rig.try_send(message).await.unwrap().job;
    text_of(&rig.end_of(job).await.1)
}

on_both! {
    async fn an_edit_counts_from_the_next_message_on(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        assert_eq!(rig.ask("main", "one").await, "one");
        assert_eq!(system(&rig), None, "there is no folder");
        write(&rig, "IDENTITY.md", "<!-- Who? -->\nYou are Ada.");
        assert_eq!(rig.ask("main", "two").await, "two");
        assert_eq!(system(&rig).as_deref(), Some("# Identity\n\nYou are Ada."));
        write(&rig, "IDENTITY.md", "You are Bob.");
        write(&rig, "SOUL.md", "Be kind.");
        assert_eq!(rig.ask("main", "three").await, "three");
        assert_eq!(system(&rig).as_deref(), Some("# Identity\n\nYou are Bob.\n\n# Soul\n\nBe kind."));
        fs::remove_dir_all(rig.path("prompt")).unwrap();
        assert_eq!(rig.ask("main", "four").await, "four");
        assert_eq!(system(&rig), None);
        assert_eq!(rig.calls(), ["new|one", "s1|two", "s1|three", "s1|four"]);
        rig.stop().await;
    }

    async fn what_the_agent_wrote_down_in_one_turn_it_knows_in_the_next(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        write(&rig, "MEMORY.md", "Nothing yet.");
        rig.ask("main", "one").await;
        let said = system(&rig).unwrap();
        let path = rig.path("prompt/MEMORY.md");
        assert!(said.contains(&format!("the file {}, which you may change", path.display())), "{said}");
        fs::write(path, "Jo likes tea.").unwrap();
        rig.ask("main", "two").await;
        assert!(system(&rig).unwrap().ends_with("\n\nJo likes tea."));
        rig.stop().await;
    }

    async fn a_system_prompt_of_the_message_comes_instead_and_a_bare_run_has_none(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        write(&rig, "SOUL.md", "Be kind.");
        write(&rig, "BOOT.md", "Look around.");
        let wishes = Wishes { system: Some("Be Ada.".to_owned()), ..Wishes::default() };
        assert_eq!(ask_as(&rig, "one", Origin::Person, wishes).await, "one");
        // The agents of this place do not get it; that the files are not read is what counts.
        assert_eq!(system(&rig), None);
        assert_eq!(ask_as(&rig, "two", Origin::Run, Wishes::default()).await, "two");
        assert_eq!(system(&rig), None);
        assert_eq!(rig.calls(), ["new|one", "s1|two"]);
        rig.stop().await;
    }

    async fn a_first_message_and_a_heartbeat_have_what_is_theirs_before_them(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        write(&rig, "BOOT.md", "Look around.");
        write(&rig, "HEARTBEAT.md", "Check the disk.");
        rig.ask("main", "one").await;
        rig.ask("main", "two").await;
        ask_as(&rig, "tick", Origin::Heartbeat, Wishes::default()).await;
        ask_as(&rig, "tock", Origin::Schedule, Wishes::default()).await;
        assert_eq!(system(&rig), None);
        assert_eq!(rig.calls(), [
            "new|# Boot//Look around.//# Message//one",
            "s1|two",
            "s1|# Heartbeat//Check the disk.//# Message//tick",
            "s1|tock",
        ]);
        rig.stop().await;
    }

    async fn no_turn_fails_by_what_lies_in_the_folder(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        fs::create_dir_all(rig.path("prompt/IDENTITY.md")).unwrap();
        fs::write(rig.path("prompt/SOUL.md"), [0_u8; 64]).unwrap();
        fs::write(rig.path("prompt/USER.md"), "x".repeat(10 * 1024 * 1024)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", rig.path("prompt/TOOLS.md")).unwrap();
        let pipe = rig.path("prompt/MEMORY.md");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        assert_eq!(rig.ask("main", "one").await, "one");
        let said = system(&rig).unwrap();
        assert!(said.starts_with("# User\n\nxxx") && said.len() < 70_000, "{}", said.len());
        fs::remove_dir_all(rig.path("prompt")).unwrap();
        fs::write(rig.path("prompt"), "a file").unwrap();
        assert_eq!(rig.ask("main", "two").await, "two");
        rig.stop().await;
    }

    async fn an_agent_that_hears_instructions_only_once_is_told_of_a_change(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let wishes = || Wishes { agent: Some("gemini".to_owned()), ..Wishes::default() };
        let ask = |text: &'static str| ask_as(&rig, text, Origin::Person, wishes());
        write(&rig, "SOUL.md", "Be kind.");
        ask("one").await;
        ask("two").await;
        write(&rig, "SOUL.md", "Be brief.");
        ask("three").await;
        ask("four").await;
        let prompts: Vec<_> = rig.calls().iter().map(|call| {
            call.split_once('|').unwrap().1.to_owned()
        }).collect();
        assert_eq!(prompts, [
            "# Soul//Be kind.//one",
            "two",
            "These instructions hold from now on, instead of any earlier ones.\
             //# Soul//Be brief.//# Message//three",
            "four",
        ]);
        rig.stop().await;
    }
}
