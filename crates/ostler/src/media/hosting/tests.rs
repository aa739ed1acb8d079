//! Who gets what is on offer, and who does not.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    sync::Barrier,
    thread,
};

use tempfile::TempDir;

use super::*;

const NOW: Millis = Millis(1_000_000_000_000);

struct Place {
    data: TempDir,
    hosting: Hosting,
}

impl Place {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let hosting = Hosting::new(data.path().join("media"));
        Self { data, hosting }
    }

    fn folder(&self) -> PathBuf {
        self.data.path().join("media/offered")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Offers a file, and returns the word of its link.
    fn offer(&self, text: &str) -> String {
        self.hosting.offer(&file(text), NOW).unwrap().0
    }
}

fn file(text: &str) -> Attachment {
    Attachment { name: "../my chart.png".to_owned(), content: Content::Text(text.to_owned()) }
}

fn content(offered: Offered) -> String {
    let mut text = String::new();
    { offered.file }.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_link_works_once() {
    let place = Place::new();
    let link = place.hosting.offer(&file("oats"), NOW).unwrap();
    let word = link.path().strip_prefix("/media/").unwrap().to_owned();
    assert!(!format!("{link:?}").contains(&word));
    let [name] = &place.names()[..] else { panic!("{:?}", place.names()) };
    assert!(!name.contains(&word) && name.ends_with("-my_chart.png"), "{name}");
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(place.folder()), mode(place.folder().join(name))), (0o700, 0o600));
    for _ in 0..2 {
        let offered = place.hosting.look(&word, NOW).unwrap();
        assert_eq!((offered.length, offered.kind), (4, "text/plain"));
        assert_eq!(offered.name, "my_chart.png");
        assert_eq!(content(offered), "oats");
    }
    assert_eq!(content(place.hosting.take(&word, NOW).unwrap()), "oats");
    assert!(place.hosting.take(&word, NOW).is_none());
    assert!(!place.names().contains(name));
}

#[test]
fn what_a_used_link_led_to_can_be_asked_until_it_is_over() {
    let place = Place::new();
    let text = format!("%PDF-1 {} secret", " ".repeat(HEAD));
    let word = place.offer(&text);
    assert_eq!(content(place.hosting.take(&word, NOW).unwrap()), text);
    let known = place.hosting.look(&word, NOW).unwrap();
    assert_eq!((known.kind, known.name.as_str()), ("application/pdf", "my_chart.png"));
    assert_eq!(known.length, u64::try_from(text.len()).unwrap());
    assert!(!content(known).contains("secret"));
    // It takes up no place of another.
    let folder = Folder::below(&place.data.path().join("media"), FOLDER).unwrap();
    assert_eq!(sweep(&folder, NOW).unwrap(), (0, 0));
    let over = NOW.after(VALID);
    assert!(place.hosting.look(&word, over).is_none());
    place.hosting.clear(over).unwrap();
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn of_all_who_ask_at_once_one_gets_the_file() {
    let place = Place::new();
    for _ in 0..20 {
        let (word, start) = (place.offer("oats"), Barrier::new(20));
        let n_served = thread::scope(|scope| {
            let ask = || {
                start.wait();
                place.hosting.take(&word, NOW).map(content)
            };
            let all: Vec<_> = (0..20).map(|_| scope.spawn(ask)).collect();
            let served = all.into_iter().filter_map(|thread| thread.join().unwrap());
            served.inspect(|text| assert_eq!(text, "oats")).count()
        });
        assert_eq!(n_served, 1);
    }
}

#[test]
fn a_link_works_for_two_minutes_and_after_a_restart() {
    let place = Place::new();
    let (early, late, over) = (place.offer("a"), place.offer("b"), place.offer("c"));
    let after = |seconds| NOW.after(Duration::from_secs(seconds));
    let again = Hosting::new(place.data.path().join("media"));
    assert_eq!(content(again.take(&early, NOW).unwrap()), "a");
    assert_eq!(content(again.take(&late, after(119)).unwrap()), "b");
    assert!(again.look(&over, after(120)).is_none() && again.take(&over, after(120)).is_none());
    // The clock was set back: a little, and by more than it goes wrong by itself.
    assert!(again.look(&over, NOW.before(SLACK)).is_some());
    assert!(again.take(&over, NOW.before(SLACK).before(Duration::from_secs(1))).is_none());
    again.clear(after(119)).unwrap();
    assert_eq!(place.names().iter().filter(|name| !name.starts_with(USED)).count(), 1);
    again.clear(after(120)).unwrap();
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn what_one_that_was_killed_left_is_removed() {
    let place = Place::new();
    let word = place.offer("oats");
    let [name] = &place.names()[..] else { panic!("{:?}", place.names()) };
    let (whole, part) = (place.folder().join(name), place.folder().join(format!(".{name}")));
    fs::rename(whole, part).unwrap();
    assert!(place.hosting.take(&word, NOW).is_none());
    place.hosting.clear(NOW.after(VALID)).unwrap();
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else_from_it_and_nobody_from_offering() {
    let place = Place::new();
    for _ in 0..5 {
        place.offer("oats");
    }
    // A file cannot be removed like this, whoever tries.
    for (number, name) in (0..).zip(place.names()) {
        if number % 2 == 0 {
            fs::remove_file(place.folder().join(&name)).unwrap();
            fs::create_dir(place.folder().join(&name)).unwrap();
        }
    }
    place.hosting.clear(NOW.after(VALID)).unwrap();
    assert_eq!(place.names().len(), 3);
    let word = place.hosting.offer(&file("hay"), NOW.after(VALID)).unwrap().0;
    assert_eq!(content(place.hosting.take(&word, NOW.after(VALID)).unwrap()), "hay");
}

#[test]
fn what_is_no_word_of_ours_leads_nowhere() {
    let place = Place::new();
    assert!(place.hosting.take(&"a".repeat(WORD), NOW).is_none());
    place.hosting.clear(NOW).unwrap();
    assert!(!place.data.path().join("media").exists());
    let word = place.offer("oats");
    let [name] = &place.names()[..] else { panic!("{:?}", place.names()) };
    for wrong in [
        "",
        ".",
        "..",
        "../offered",
        "a/b",
        "\0",
        name,
        &word[1..],
        &format!("{word}a"),
        &word.to_lowercase(),
        &hash(&word),
        &format!("{}/", &word[1..]),
        &"é".repeat(WORD),
    ] {
        assert!(wrong == word || place.hosting.take(wrong, NOW).is_none(), "{wrong:?}");
    }
    assert!(place.hosting.take(&word, NOW).is_some());
}

#[test]
fn a_link_in_the_folder_is_not_followed() {
    let place = Place::new();
    let word = place.offer("oats");
    let [name] = &place.names()[..] else { panic!("{:?}", place.names()) };
    let (path, aim) = (place.folder().join(name), place.data.path().join("secret"));
    fs::write(&aim, "secret").unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&aim, &path).unwrap();
    assert!(place.hosting.look(&word, NOW).is_none() && place.hosting.take(&word, NOW).is_none());
    place.hosting.clear(NOW.after(VALID)).unwrap();
    assert_eq!((place.names(), fs::read(&aim).unwrap()), (Vec::new(), b"secret".to_vec()));
    // Nor is one in place of the folder.
    fs::remove_dir(place.folder()).unwrap();
    symlink(place.data.path(), place.folder()).unwrap();
    assert!(place.hosting.take(&word, NOW).is_none());
    assert!(matches!(place.hosting.offer(&file("x"), NOW), Err(OfferError::Io(_))));
    assert_eq!(fs::read_dir(place.data.path()).unwrap().count(), 2);
}

#[test]
fn what_is_on_offer_at_once_has_a_limit() {
    let place = Place::new();
    let words: Vec<_> = (0..MOST).map(|number| place.offer(&number.to_string())).collect();
    assert!(matches!(place.hosting.offer(&file("x"), NOW), Err(OfferError::Full)));
    assert!(place.hosting.take(&words[0], NOW).is_some());
    place.offer("again");
    // Those that are over do not count.
    place.hosting.offer(&file("x"), NOW.after(VALID)).unwrap();
    assert_eq!(place.names().len(), 1);
    let other = Place::new();
    let word = other.offer("x");
    let [name] = &other.names()[..] else { panic!("{:?}", other.names()) };
    let large = fs::File::options().write(true).open(other.folder().join(name)).unwrap();
    large.set_len(TOGETHER - 1).unwrap();
    other.offer("y");
    assert!(matches!(other.hosting.offer(&file("z"), NOW), Err(OfferError::Full)));
    assert_eq!(other.names().len(), 2);
    assert_eq!(other.hosting.take(&word, NOW).unwrap().length, TOGETHER - 1);
}
