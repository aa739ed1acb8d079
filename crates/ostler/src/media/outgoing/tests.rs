//! What may be sent, and what may not.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::{
    fs::{CWD, mknodat},
    io::Errno,
};
use tempfile::TempDir;

use super::*;

const MAX: u64 = 1024 * 1024;

fn caps() -> Caps {
    Caps::all(MAX)
}

fn reach<'a>(work_dir: Option<&'a Path>, listed: &'a [PathBuf]) -> Reach<'a> {
    Reach { work_dir, listed, private: &[] }
}

/// A folder in which an agent works, and one beside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for path in ["desk/sub", "shared", "elsewhere"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        let place = Self { folder };
        for path in ["desk/a.png", "desk/sub/b.png", "shared/c.png", "elsewhere/secret.png"] {
            fs::write(place.at(path), path).unwrap();
        }
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn resolve(&self, token: &str) -> Result<Attachment, Refused> {
        let (desk, listed) = (self.at("desk"), [self.at("gone"), self.at("shared")]);
        let private = [self.at("desk/store"), self.at("desk/ostler.json5"), self.at("gone too")];
        let reach = Reach { work_dir: Some(&desk), listed: &listed, private: &private };
        resolve(token, reach, caps())
    }

    #[track_caller]
    fn sends(&self, token: &str, content: &str) {
        let sent = self.resolve(token).unwrap();
        assert_eq!(sent.content, Content::Bytes(content.as_bytes().into()), "{token}");
    }

    #[track_caller]
    fn refuses(&self, token: &str, why: &Refused) {
        assert_eq!(self.resolve(token).as_ref(), Err(why), "{token}");
    }
}

#[test]
fn what_is_hidden_or_the_gateways_own_is_not_sent() {
    let place = Place::new();
    for folder in ["desk/.ssh", "desk/store", "shared/.git"] {
        fs::create_dir_all(place.at(folder)).unwrap();
    }
    for path in
        ["desk/.env", "desk/.ssh/id", "desk/store/ostler.db", "desk/ostler.json5", "shared/.git/x"]
    {
        fs::write(place.at(path), "secret").unwrap();
        place.refuses(place.at(path).to_str().unwrap(), &Refused::NotHere);
    }
    symlink(place.at("desk/.env"), place.at("desk/plan.txt")).unwrap();
    for token in [".env", "./.ssh/id", "sub/../.env", "plan.txt", "ostler.json5"] {
        place.refuses(token, &Refused::NotHere);
    }
}

#[test]
fn a_folder_within_what_is_hidden_or_kept_can_be_listed() {
    let place = Place::new();
    fs::create_dir_all(place.at("desk/.cache/charts")).unwrap();
    fs::create_dir_all(place.at("store/media")).unwrap();
    fs::write(place.at("desk/.cache/charts/a.png"), "a").unwrap();
    fs::write(place.at("store/media/b.png"), "b").unwrap();
    fs::write(place.at("store/ostler.db"), "secret").unwrap();
    let listed = [place.at("desk/.cache/charts"), place.at("store/media")];
    let (desk, private) = (place.at("desk"), [place.at("store")]);
    let reach = Reach { work_dir: Some(&desk), listed: &listed, private: &private };
    assert!(resolve(".cache/charts/a.png", reach, caps()).is_ok());
    assert!(resolve("../store/media/b.png", reach, caps()).is_ok());
    assert_eq!(resolve("../store/ostler.db", reach, caps()), Err(Refused::NotHere));
    // Also where the agent works there.
    let own = place.at("store");
    let reach = Reach { work_dir: Some(&own), ..reach };
    assert!(resolve("media/b.png", reach, caps()).is_ok());
    assert_eq!(resolve("ostler.db", reach, caps()), Err(Refused::NotHere));
}

#[test]
fn a_file_in_the_working_directory_or_a_listed_folder_is_sent() {
    let place = Place::new();
    for token in ["a.png", "./a.png", "sub/../a.png", "../desk/a.png", "sub/../../desk/./a.png"] {
        place.sends(token, "desk/a.png");
    }
    place.sends("sub/b.png", "desk/sub/b.png");
    place.sends(place.at("desk/sub/b.png").to_str().unwrap(), "desk/sub/b.png");
    place.sends(place.at("shared/c.png").to_str().unwrap(), "shared/c.png");
    place.sends("../shared/c.png", "shared/c.png");
    assert_eq!(place.resolve("sub/b.png").unwrap().name, "b.png");
}

#[test]
fn what_lies_outside_is_refused_in_the_same_words_whether_it_is_there_or_not() {
    let place = Place::new();
    symlink(place.at("elsewhere/secret.png"), place.at("desk/link.png")).unwrap();
    symlink(place.at("elsewhere/nothing.png"), place.at("desk/dangling.png")).unwrap();
    symlink("../../elsewhere", place.at("desk/sub/out")).unwrap();
    symlink(place.at("desk/loop.png"), place.at("desk/loop.png")).unwrap();
    fs::create_dir(place.at("desktop")).unwrap();
    fs::write(place.at("desktop/d.png"), "beside").unwrap();
    for token in [
        "../elsewhere/secret.png",
        "../elsewhere/nothing.png",
        "../../../../../../../../etc/passwd",
        "/etc/passwd",
        "/etc/no-such-file",
        "/etc",
        "..",
        "link.png",
        "dangling.png",
        "sub/out/secret.png",
        "sub/out/nothing.png",
        "loop.png",
        "../desktop/d.png",
        "no-such-file.png",
        "a.png/b.png",
        "nul\0.png",
        "",
    ] {
        if token.is_empty() {
            // The folder itself.
            place.refuses(token, &Refused::NotAFile);
        } else {
            place.refuses(token, &Refused::NotHere);
        }
    }
    let secret = place.at("elsewhere/secret.png");
    place.refuses(secret.to_str().unwrap(), &Refused::NotHere);
    let words = Refused::NotHere.to_string();
    assert!(!words.contains('/'), "{words}");
}

#[test]
fn a_link_counts_by_where_it_ends() {
    let place = Place::new();
    symlink("sub/b.png", place.at("desk/inside.png")).unwrap();
    symlink(place.at("shared"), place.at("desk/there")).unwrap();
    symlink(place.at("desk/a.png"), place.at("elsewhere/back.png")).unwrap();
    symlink(place.at("desk"), place.at("alias")).unwrap();
    place.sends("inside.png", "desk/sub/b.png");
    place.sends("there/c.png", "shared/c.png");
    place.sends("../elsewhere/back.png", "desk/a.png");
    place.sends(place.at("alias/a.png").to_str().unwrap(), "desk/a.png");
    let by_alias = resolve("a.png", reach(Some(&place.at("alias")), &[]), caps());
    assert_eq!(by_alias.unwrap().name, "a.png");
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let place = Place::new();
    mknodat(CWD, place.at("desk/pipe.png"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    std::os::unix::net::UnixListener::bind(place.at("desk/s.png")).unwrap();
    for token in ["pipe.png", "s.png", "sub", ".", "sub/.."] {
        place.refuses(token, &Refused::NotAFile);
    }
    // Devices lie where nobody lists a folder; this one is listed to see.
    let devices = [PathBuf::from("/dev")];
    for device in ["/dev/zero", "/dev/null", "/dev/full"] {
        assert_eq!(
            resolve(device, reach(None, &devices), caps()),
            Err(Refused::NotAFile),
            "{device}"
        );
    }
}

#[test]
fn a_file_is_sent_up_to_the_limit_and_not_if_it_is_empty() {
    let place = Place::new();
    let write = |name: &str, length: u64| {
        File::create(place.at("desk").join(name)).unwrap().set_len(length).unwrap();
    };
    write("none.bin", 0);
    write("most.bin", MAX);
    write("more.bin", MAX + 1);
    write("huge.bin", 1 << 40);
    assert!(place.resolve("most.bin").is_ok());
    place.refuses("none.bin", &Refused::Empty);
    place.refuses("more.bin", &Refused::TooLarge(MAX));
    place.refuses("huge.bin", &Refused::TooLarge(MAX));
    assert_eq!(Refused::TooLarge(MAX).to_string(), "it is larger than 1 MB");
}

#[test]
fn without_a_working_directory_only_the_listed_folders_count() {
    let place = Place::new();
    let allowed = [place.at("shared")];
    let of = |path: &str| resolve(place.at(path).to_str().unwrap(), reach(None, &allowed), caps());
    assert!(of("shared/c.png").is_ok());
    assert_eq!(of("desk/a.png"), Err(Refused::NotHere));
    assert_eq!(resolve("c.png", reach(None, &allowed), caps()), Err(Refused::NotHere));
}

#[test]
fn a_link_that_takes_the_place_of_what_was_checked_is_not_followed() {
    let place = Place::new();
    let desk = fs::canonicalize(place.at("desk")).unwrap();
    let sub = Path::new("sub/b.png");
    assert!(open_within(&desk, sub).is_ok());
    fs::remove_dir_all(place.at("desk/sub")).unwrap();
    symlink(place.at("elsewhere"), place.at("desk/sub")).unwrap();
    fs::write(place.at("elsewhere/b.png"), "secret").unwrap();
    assert_eq!(open_within(&desk, sub).unwrap_err(), Refused::Closed);
    fs::remove_file(place.at("desk/a.png")).unwrap();
    symlink(place.at("elsewhere/b.png"), place.at("desk/a.png")).unwrap();
    assert_eq!(open_within(&desk, Path::new("a.png")).unwrap_err(), Refused::NotAFile);
    fs::rename(&desk, place.at("moved")).unwrap();
    symlink(place.at("elsewhere"), &desk).unwrap();
    assert_eq!(open_within(&desk, Path::new("b.png")).unwrap_err(), Refused::Closed);
}

#[test]
fn a_file_that_nobody_may_read_is_not_sent() {
    let place = Place::new();
    fs::set_permissions(place.at("desk/a.png"), fs::Permissions::from_mode(0o000)).unwrap();
    // Nothing is closed to root, but what the system says of it is understood.
    if !rustix::process::geteuid().is_root() {
        place.refuses("a.png", &Refused::Closed);
    }
    assert_eq!(refused(&Errno::ACCESS.into()), Refused::Closed);
}

#[test]
fn what_the_operator_names_is_sent_from_anywhere_if_it_is_a_file() {
    let place = Place::new();
    symlink(place.at("elsewhere/secret.png"), place.at("linked.png")).unwrap();
    for name in ["elsewhere/secret.png", "linked.png"] {
        assert!(wanted(&place.at(name), caps()).is_ok(), "{name}");
    }
    assert_eq!(wanted(&place.at("shared"), caps()), Err(Refused::NotAFile));
    assert_eq!(wanted(&place.at("none"), caps()), Err(Refused::NotHere));
    assert_eq!(wanted(Path::new("/"), caps()), Err(Refused::NotAFile));
    assert_eq!(wanted(Path::new("/dev/zero"), caps()), Err(Refused::NotAFile));
}
