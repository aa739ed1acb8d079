//! Folders of prompt files: what counts of them, whatever lies there.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::{
    table::{FILES, Place},
    template::{TEMPLATES, Written},
    *,
};

const LATER: Occasion = Occasion { is_first: false, is_heartbeat: false };
const FIRST: Occasion = Occasion { is_first: true, is_heartbeat: false };
const HEARTBEAT: Occasion = Occasion { is_first: false, is_heartbeat: true };

/// Makes a folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn found(path: &Path, occasion: Occasion) -> (String, String, Vec<String>) {
    let Found { system, before, troubles } = reading::read(path, occasion);
    let relative = |text: Option<String>| {
        text.unwrap_or_default().replace(&format!("{}/", path.display()), "")
    };
    let troubles = troubles.into_iter().map(|Trouble { path: at, why }| {
        format!("{}: {why}", at.strip_prefix(path).unwrap().display())
    });
    let system = relative(assemble(&system, LONGEST));
    (system, relative(assemble(&before, LONGEST_FILE)), troubles.collect())
}

fn system(files: &[(&str, &str)]) -> String {
    let folder = folder(files);
    let (system, before, troubles) = found(folder.path(), LATER);
    assert_eq!((before.as_str(), troubles.as_slice()), ("", [].as_slice()));
    system
}

#[test]
fn sections_have_titles_and_the_order_of_the_table() {
    let said = system(&[
        ("skills/tea/SKILL.md", "---\nname: Tea\ndescription: Makes tea.\n---\nBoil water."),
        ("skills/bread/skill.md", "Bake."),
        ("skills/README.md", "Notes."),
        ("skills/.git/SKILL.md", "Hidden."),
        ("agents.md", "Work."),
        ("Tools.md", "Hammer."),
        ("USER.md", "Jo."),
        ("SOUL.MD", "Be kind."),
        ("IDENTITY.md", "# Identity\n\nAda.\n"),
        ("CLAUDE.md", "Not this."),
        ("BOOT.md", "Only at first."),
        ("HEARTBEAT.md", "Only then."),
        ("OTHER.md", "Nobody asked."),
    ]);
    assert_eq!(
        said,
        "# Identity\n\nAda.\n\n# Soul\n\nBe kind.\n\n# User\n\nJo.\n\n# Tools\n\nHammer.\n\n\
         # Agents\n\nWork.\n\n# Skill: bread\n\nBake.\n\n# Skill: Tea\n\nMakes tea.\n\nBoil water."
    );
}

#[test]
fn what_is_missing_empty_or_only_a_comment_is_left_out() {
    for files in [
        [].as_slice(),
        &[("SOUL.md", "")],
        &[("SOUL.md", " \n\t\r\n"), ("skills/a/SKILL.md", "")],
        &[("SOUL.md", "<!-- Write here. -->\n"), ("MEMORY.md", "# Memory\n")],
        &[("skills/a/SKILL.md", "---\nname: a\n---\n<!-- Later. -->")],
        &[("skills/a/OTHER.md", "x"), ("notes.txt", "x")],
    ] {
        assert_eq!(system(files), "", "{files:?}");
    }
    assert_eq!(
        system(&[("SOUL.md", "<!-- x -->\nBe kind."), ("USER.md", "")]),
        "# Soul\n\nBe kind."
    );
    let nowhere = Path::new("/definitely/not/here");
    assert_eq!(reading::read(nowhere, FIRST), Found::default());
}

#[test]
fn a_single_file_is_the_whole_prompt_and_needs_no_title() {
    let empty = ("SOUL.md", "<!-- x -->");
    assert_eq!(system(&[("CLAUDE.md", "Do this."), empty]), "Do this.");
    assert_eq!(system(&[("claude.md", "Do this."), ("AGENTS.md", "Or that.")]), "Do this.");
    assert_eq!(system(&[("AGENTS.md", "Do that."), ("CLAUDE.md", " ")]), "Do that.");
    let with_skill = system(&[("CLAUDE.md", "Do this."), ("skills/a/SKILL.md", "Help.")]);
    assert_eq!(with_skill, "Do this.\n\n# Skill: a\n\nHelp.");
    assert_eq!(system(&[("CLAUDE.md", "Do this."), ("USER.md", "Jo.")]), "# User\n\nJo.");
}

#[test]
fn some_files_count_at_their_time_only() {
    let folder = folder(&[("BOOT.md", "Look."), ("HEARTBEAT.md", "Check."), ("SOUL.md", "Kind.")]);
    for (occasion, before) in [
        (LATER, ""),
        (FIRST, "# Boot\n\nLook."),
        (HEARTBEAT, "# Heartbeat\n\nCheck."),
        (Occasion { is_first: true, ..HEARTBEAT }, "# Boot\n\nLook.\n\n# Heartbeat\n\nCheck."),
    ] {
        let (system, said, _) = found(folder.path(), occasion);
        assert_eq!((system.as_str(), said.as_str()), ("# Soul\n\nKind.", before));
    }
}

#[test]
fn the_system_prompt_is_the_same_at_all_times() {
    let large = "word ".repeat(12 * 1024);
    let skill = "step ".repeat(2 * 1024);
    let folder = folder(&[
        ("SOUL.md", &"kind ".repeat(8 * 1024)),
        ("BOOT.md", &large),
        ("HEARTBEAT.md", &large),
        ("skills/a/SKILL.md", &skill),
        ("skills/b/SKILL.md", &skill),
    ]);
    let (system, ..) = found(folder.path(), LATER);
    assert!(system.contains("# Skill: b\n\nstep "));
    for occasion in [FIRST, HEARTBEAT, Occasion { is_first: true, ..HEARTBEAT }] {
        assert!(found(folder.path(), occasion).0 == system, "{occasion:?}");
    }
}

#[test]
fn an_agent_is_told_where_its_memory_is_unless_nobody_may_write_it() {
    let folder = folder(&[("MEMORY.md", "Jo likes tea.")]);
    let (said, ..) = found(folder.path(), LATER);
    assert!(said.starts_with("# Memory\n\nThis is what you remember."), "{said}");
    assert!(said.contains("the file MEMORY.md, which you may change"), "{said}");
    assert!(said.ends_with("\n\nJo likes tea."), "{said}");
    let path = folder.path().join("MEMORY.md");
    fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(found(folder.path(), LATER).0, "# Memory\n\nJo likes tea.");
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_counts() {
    let folder = folder(&[("SOUL.md", "Be kind."), ("skills/ok/SKILL.md", "Help.")]);
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("IDENTITY.md")).unwrap();
    mknodat(CWD, at("USER.md"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::write(at("TOOLS.md"), [0xff, 0xfe, b'a', 0]).unwrap();
    symlink("AGENTS.md", at("AGENTS.md")).unwrap();
    symlink("/nowhere", at("MEMORY.md")).unwrap();
    fs::write(at("BOOT.md"), "x".repeat(10 * 1024 * 1024)).unwrap();
    fs::create_dir_all(at("skills/folder/SKILL.md")).unwrap();
    symlink("loop", at("skills/loop")).unwrap();
    fs::write(at("soul.md"), "Another.").unwrap();
    let (system, before, troubles) = found(folder.path(), FIRST);
    assert_eq!(system, "# Soul\n\nBe kind.\n\n# Skill: ok\n\nHelp.");
    assert!(before.len() <= LONGEST_FILE, "{}", before.len());
    assert!(before.ends_with("x\n\n[This is only the beginning. The whole text is in BOOT.md]"));
    let starts = [
        "IDENTITY.md: it is a folder",
        "soul.md: SOUL.md counts instead",
        "USER.md: it is a pipe",
        "TOOLS.md: it is no UTF-8 text",
        "AGENTS.md: it cannot be read: ",
        "MEMORY.md: it leads nowhere",
        "skills/folder/SKILL.md: it is a folder",
        "skills/loop: the folder cannot be read: ",
        "BOOT.md: only its first 65536 bytes are used",
    ];
    assert_eq!(troubles.len(), starts.len(), "{troubles:#?}");
    for (trouble, start) in troubles.iter().zip(starts) {
        assert!(trouble.starts_with(start), "{trouble}");
    }
}

#[test]
fn a_folder_that_is_none_or_whose_skills_are_a_file_says_so() {
    let folder = folder(&[("file", "x"), ("skills", "x"), ("SOUL.md", "Be kind.")]);
    let Found { system, troubles, .. } = reading::read(&folder.path().join("file"), LATER);
    assert!(system.is_empty());
    assert!(troubles[0].why.starts_with("the folder cannot be read: "), "{troubles:?}");
    let (system, _, troubles) = found(folder.path(), LATER);
    assert_eq!(system, "# Soul\n\nBe kind.");
    assert!(troubles[0].starts_with("skills: the folder cannot be read: "), "{troubles:?}");
}

#[test]
fn links_lead_wherever_the_operator_wants() {
    let elsewhere = folder(&[("mine.md", "Be kind."), ("tea/SKILL.md", "Boil.")]);
    let folder = folder(&[("skills/a/SKILL.md", "Help.")]);
    symlink(elsewhere.path().join("mine.md"), folder.path().join("SOUL.md")).unwrap();
    symlink(elsewhere.path().join("tea"), folder.path().join("skills/tea")).unwrap();
    let (system, _, troubles) = found(folder.path(), LATER);
    assert_eq!(system, "# Soul\n\nBe kind.\n\n# Skill: a\n\nHelp.\n\n# Skill: tea\n\nBoil.");
    assert!(troubles.is_empty(), "{troubles:?}");
}

#[test]
fn hundreds_of_skills_fit_or_are_named() {
    let folder = folder(&[("SOUL.md", "Be kind.")]);
    for number in 0..400 {
        let skill = folder.path().join(format!("skills/s{number:03}"));
        fs::create_dir_all(&skill).unwrap();
        let text = format!("---\ndescription: No. {number}\n---\n{}", "step ".repeat(200));
        fs::write(skill.join("SKILL.md"), text).unwrap();
    }
    let Found { system, troubles, .. } = reading::read(folder.path(), LATER);
    assert_eq!(troubles[0].why, "of 400 skills only the first 256 count");
    let text = assemble(&system, LONGEST).unwrap();
    assert!(text.len() <= LONGEST && text.len() > LONGEST - 8 * 1024, "{}", text.len());
    assert!(text.contains("# Skill: s000\n\nNo. 0\n\nstep "));
    let list = text.split("# Not shown").nth(1).unwrap();
    assert!(list.contains("/skills/s100/SKILL.md: No. 100"), "{list}");
}

#[tokio::test]
async fn each_reading_is_afresh_and_a_trouble_is_told_once() {
    let folder = folder(&[("SOUL.md", "Be kind.")]);
    fs::create_dir(folder.path().join("USER.md")).unwrap();
    let files = Folder::new(folder.path().to_owned());
    let expected = |text: &str| Instructions { system: Some(text.to_owned()), before: None };
    assert_eq!(files.read(LATER).await, expected("# Soul\n\nBe kind."));
    assert_eq!(files.told.lock().unwrap().len(), 1);
    fs::write(folder.path().join("SOUL.md"), "Be brief.").unwrap();
    fs::remove_dir(folder.path().join("USER.md")).unwrap();
    assert_eq!(files.read(LATER).await, expected("# Soul\n\nBe brief."));
    assert!(files.told.lock().unwrap().is_empty());
    fs::remove_file(folder.path().join("SOUL.md")).unwrap();
    assert_eq!(files.read(FIRST).await, Instructions::default());
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_does_not_answer_keeps_no_turn_waiting() {
    let folder = folder(&[("SOUL.md", "Be kind.")]);
    let files = Folder::new(folder.path().to_owned());
    // As if each reader hung in the kernel.
    let hanging = files.readers.acquire_many(u32::try_from(READERS).unwrap()).await.unwrap();
    assert_eq!(files.read(LATER).await, Instructions::default());
    let told = files.told.lock().unwrap().clone();
    assert!(told.first().unwrap().why.contains("took longer than 5s"), "{told:?}");
    drop(hanging);
}

#[test]
fn templates_say_nothing_and_are_never_written_over_anything() {
    let folder = folder(&[("soul.md", "Mine."), ("Skills/mine/SKILL.md", "Help.")]);
    let all = TEMPLATES.iter().map(|(name, _)| *name);
    let (kept, new): (Vec<_>, Vec<_>) = all.clone().partition(|name| *name == "SOUL.md");
    let first = template::write(folder.path()).unwrap();
    assert_eq!(first, Written { written: new, kept });
    assert!(folder.path().join("Skills/example/SKILL.md").is_file());
    let (system, before, troubles) = found(folder.path(), Occasion { is_first: true, ..HEARTBEAT });
    assert_eq!(system, "# Soul\n\nMine.\n\n# Skill: mine\n\nHelp.");
    assert_eq!((before.as_str(), troubles.len()), ("", 0));
    let again = template::write(folder.path()).unwrap();
    assert_eq!(again, Written { written: Vec::new(), kept: all.collect() });
}

#[test]
fn every_file_of_the_table_but_the_single_one_has_a_template() {
    for file in FILES.iter().filter(|file| file.place != Place::Alone) {
        assert!(TEMPLATES.iter().any(|(name, _)| *name == file.name), "{}", file.name);
    }
}

#[test]
fn a_text_below_the_comment_of_a_template_is_all_that_counts() {
    for (name, text) in TEMPLATES {
        let said = system_of_all_times(name, &format!("{text}\nRemember the milk.\n"));
        assert!(said.ends_with("Remember the milk."), "{name}: {said}");
        assert!(!said.contains("For example"), "{name}: {said}");
    }
}

fn system_of_all_times(name: &str, text: &str) -> String {
    let folder = folder(&[(name, text)]);
    let (system, before, _) = found(folder.path(), Occasion { is_first: true, is_heartbeat: true });
    system + &before
}

#[test]
fn templates_into_a_file_or_through_a_dangling_link_are_refused_or_left() {
    let folder = folder(&[("file", "mine")]);
    let said = template::write(&folder.path().join("file")).unwrap_err();
    assert!(said.starts_with("could not make the folder "), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "mine");
    let target = folder.path().join("elsewhere");
    fs::create_dir(folder.path().join("p")).unwrap();
    symlink(&target, folder.path().join("p/SOUL.md")).unwrap();
    let done = template::write(&folder.path().join("p")).unwrap();
    assert_eq!(done.kept, ["SOUL.md"]);
    assert!(!target.exists());
}

#[tokio::test]
async fn a_gateway_begins_only_a_folder_that_is_not_there() {
    let folder = folder(&[("there/note", "x")]);
    begin(folder.path().join("there")).await;
    assert_eq!(fs::read_dir(folder.path().join("there")).unwrap().count(), 1);
    begin(folder.path().join("new/prompt")).await;
    assert!(folder.path().join("new/prompt/IDENTITY.md").is_file());
    begin(folder.path().join("there/note")).await;
    assert_eq!(fs::read_to_string(folder.path().join("there/note")).unwrap(), "x");
}

#[test]
fn the_documentation_has_the_same_table() {
    let when = |place: Place| match place {
        Place::Persona | Place::Guide | Place::Memory => "always",
        Place::Alone => "if none of the first four says anything",
        Place::Boot => "with the first message of a session",
        Place::Heartbeat => "with a heartbeat",
    };
    let rows = FILES
        .iter()
        .map(|file| format!("| `{}` | {} | {} |", file.name, when(file.place), file.about));
    let rows = rows.collect::<Vec<_>>().join("\n");
    let page = include_str!("../../../../docs/prompt-files.md");
    assert!(page.contains(&rows), "docs/prompt-files.md lacks this table:\n{rows}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_in_the_files_reading_ends_and_stays_within_its_limits(
        bytes in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..300),
                "(---\n|name: |<!--|-->|```\n|# Soul\n|\\PC{0,5}|\n){0,40}".prop_map(String::into_bytes),
                (0..200_000_usize).prop_map(|length| vec![b'x'; length]),
            ],
            4,
        ),
    ) {
        let folder = folder(&[("skills/a/SKILL.md", ""), ("skills/b/SKILL.md", "")]);
        let names = ["SOUL.md", "MEMORY.md", "skills/a/SKILL.md", "skills/b/SKILL.md"];
        for (name, bytes) in names.iter().zip(bytes) {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let Found { system, before, .. } = reading::read(folder.path(), FIRST);
        let text = assemble(&system, LONGEST).unwrap_or_default();
        prop_assert!(text.len() <= LONGEST);
        prop_assert!(before.is_empty() && !text.contains('\0'));
    }
}
