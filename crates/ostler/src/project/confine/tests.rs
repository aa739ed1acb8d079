//! Folders that try to lie elsewhere.

use std::{
    ffi::OsStr,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A root with a folder, a file and links, and what lies beside it.
struct Tree {
    _all: TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let all = tempfile::Builder::new().prefix("oconf").tempdir().unwrap();
        let base = all.path().canonicalize().unwrap();
        let (root, outside) = (base.join("root"), base.join("root-beside"));
        for folder in ["root/app/deep", "root/other", "root-beside/secret"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        fs::write(root.join("file"), "x").unwrap();
        Self { _all: all, root, outside }
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.root.clone()]
    }

    fn ask(&self, directory: &str) -> Result<PathBuf, Misplaced> {
        let roots = self.roots();
        confined(&roots, &meant(&roots, directory)?)
    }
}

#[test]
fn a_folder_in_the_root_is_found_however_it_is_written() {
    let tree = Tree::new();
    let app = tree.root.join("app");
    let absolute = app.display().to_string();
    for written in ["app", "app/", "./app", "app/.", ".//app//", &absolute] {
        assert_eq!(tree.ask(written), Ok(app.clone()), "{written}");
    }
    assert_eq!(tree.ask("."), Ok(tree.root.clone()));
    symlink("app/deep", tree.root.join("short")).unwrap();
    assert_eq!(tree.ask("short"), Ok(app.join("deep")));
    let odd = "ünï ço∂e\n🐴";
    fs::create_dir(tree.root.join(odd)).unwrap();
    assert_eq!(tree.ask(odd), Ok(tree.root.join(odd)));
}

#[test]
fn what_leads_outside_is_outside_whether_it_is_there_or_not() {
    let tree = Tree::new();
    symlink(&tree.outside, tree.root.join("absolute")).unwrap();
    symlink("../root-beside", tree.root.join("relative")).unwrap();
    symlink("../..", tree.root.join("app/up")).unwrap();
    symlink("/", tree.root.join("slash")).unwrap();
    let [secret, beside, nothing] =
        ["secret", "", "nothing"].map(|name| tree.outside.join(name).display().to_string());
    for written in [
        "absolute",
        "absolute/secret",
        "relative/secret",
        "app/up",
        "app/up/root-beside",
        "slash",
        "slash/etc",
        &secret,
        &beside,
        &nothing,
        "/",
        "/etc",
        "/etc/passwd",
        "/nonexistent",
    ] {
        assert_eq!(tree.ask(written), Err(Misplaced::Outside), "{written}");
    }
    for written in ["..", "app/..", "app/../other", "../root-beside", "/..", "app/../../x"] {
        assert_eq!(tree.ask(written), Err(Misplaced::Upwards), "{written}");
    }
    // A name that begins like the root is another folder.
    let alike = format!("{}-beside", tree.root.display());
    assert_eq!(tree.ask(&alike), Err(Misplaced::Outside));
}

#[test]
fn what_cannot_be_a_folder_is_told() {
    let tree = Tree::new();
    symlink("loop", tree.root.join("loop")).unwrap();
    symlink("nowhere", tree.root.join("dangling")).unwrap();
    symlink("file", tree.root.join("to-file")).unwrap();
    fs::create_dir(tree.root.join(OsStr::from_bytes(b"\xff"))).unwrap();
    symlink(OsStr::from_bytes(b"\xff"), tree.root.join("to-bytes")).unwrap();
    let (name, path) = ("x".repeat(256), "x/".repeat(2048));
    for (written, error) in [
        ("", Misplaced::Empty),
        ("a\0b", Misplaced::Nul),
        ("missing", Misplaced::Missing),
        ("dangling", Misplaced::Missing),
        ("file", Misplaced::NotAFolder),
        ("file/x", Misplaced::NotAFolder),
        ("to-file", Misplaced::NotAFolder),
        ("to-bytes", Misplaced::NotText),
        (&name, Misplaced::TooLong),
        (&path, Misplaced::TooLong),
    ] {
        assert_eq!(tree.ask(written), Err(error), "{written:?}");
    }
    assert!(matches!(tree.ask("loop"), Err(Misplaced::Other(_))));
}

#[test]
fn a_folder_that_cannot_be_entered_is_refused() {
    let tree = Tree::new();
    let app = tree.root.join("app");
    fs::set_permissions(&app, fs::Permissions::from_mode(0o000)).unwrap();
    let asked = [tree.ask("app"), tree.ask("app/deep")];
    fs::set_permissions(&app, fs::Permissions::from_mode(0o755)).unwrap();
    // Nothing is closed to root, but what the system says of it is understood.
    if !rustix::process::geteuid().is_root() {
        assert_eq!(asked, [Err(Misplaced::Closed), Err(Misplaced::Closed)]);
    }
    assert_eq!(absence(&Errno::ACCESS.into()), Misplaced::Closed);
}

#[test]
fn roots_may_be_missing_several_or_links() {
    let tree = Tree::new();
    let app = tree.root.join("app");
    assert_eq!(confined(&[], &app), Err(Misplaced::NoRoots));
    assert_eq!(meant(&[], "app"), Err(Misplaced::NoRoots));
    let gone = tree.root.join("gone");
    assert_eq!(confined(std::slice::from_ref(&gone), &app), Err(Misplaced::RootsGone));
    let both = [gone, tree.root.clone()];
    assert_eq!(confined(&both, &app), Ok(app.clone()));
    assert_eq!(meant(&both, "app"), Err(Misplaced::Relative));
    let link = tree.outside.join("link");
    symlink(&tree.root, &link).unwrap();
    let linked = [link.clone()];
    assert_eq!(confined(&linked, &link.join("app")), Ok(app));
    assert_eq!(confined(&linked, &link.join("missing")), Err(Misplaced::Missing));
}

#[test]
fn a_folder_that_was_replaced_by_a_link_is_not_the_projects_any_more() {
    let tree = Tree::new();
    let (roots, app) = (tree.roots(), tree.root.join("app"));
    let directory = app.display().to_string();
    assert_eq!(unchanged(&roots, &directory), Ok(app.clone()));
    fs::rename(&app, tree.root.join("moved")).unwrap();
    assert_eq!(unchanged(&roots, &directory), Err(Misplaced::Missing));
    for (target, error) in [
        (tree.outside.join("secret"), Misplaced::Outside),
        // Inside, but perhaps the folder of another project.
        (tree.root.join("other"), Misplaced::Replaced),
        (tree.root.join("file"), Misplaced::NotAFolder),
    ] {
        symlink(target, &app).unwrap();
        assert_eq!(unchanged(&roots, &directory), Err(error));
        fs::remove_file(&app).unwrap();
    }
}

#[test]
fn a_missing_folder_is_made_below_one_that_is_there_and_nowhere_else() {
    let tree = Tree::new();
    let make = |name: &str| {
        let roots = tree.roots();
        found_or_made(&roots, &meant(&roots, name)?)
    };
    let new = tree.root.join("app/new");
    assert_eq!(make("app/new"), Ok(new.clone()));
    assert_eq!(make("app/new"), Ok(new));
    symlink(&tree.outside, tree.root.join("away")).unwrap();
    symlink("../root-beside/made", tree.root.join("dangling")).unwrap();
    let beside = tree.outside.join("made").display().to_string();
    for (written, error) in [
        ("a/b", Misplaced::Missing),
        ("away/made", Misplaced::Outside),
        ("dangling", Misplaced::NotAFolder),
        ("file", Misplaced::NotAFolder),
        ("../made", Misplaced::Upwards),
        (&beside, Misplaced::Outside),
        (&"x".repeat(256), Misplaced::TooLong),
    ] {
        assert_eq!(make(written), Err(error), "{written}");
    }
    assert!(!tree.outside.join("made").exists() && !tree.root.join("a").exists());
}

/// What paths and links are made of.
const PARTS: [&str; 10] =
    ["app", "deep", "other", "file", "one", "two", "..", ".", "root-beside", "secret"];

fn path() -> impl Strategy<Value = PathBuf> {
    let parts = prop::collection::vec(prop::sample::select(&PARTS[..]), 1..5);
    parts.prop_map(|parts| parts.iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn wherever_links_lead_a_folder_that_is_found_lies_in_the_root(
        one in path(), two in path(), asked in path(), is_absolute: bool, from_outside: bool,
    ) {
        let tree = Tree::new();
        for (name, target) in [("one", &one), ("two", &two)] {
            let target = if is_absolute { tree.root.join(target) } else { target.clone() };
            symlink(&target, tree.root.join(name)).unwrap();
            symlink(&target, tree.root.join("app").join(name)).unwrap();
        }
        let asked = if from_outside { tree.outside.join(asked) } else { tree.root.join(asked) };
        let goes_up = asked.components().any(|part| part == Component::ParentDir);
        let good = fs::canonicalize(&asked).ok();
        let good = good.filter(|it| !goes_up && it.starts_with(&tree.root) && it.is_dir());
        prop_assert_eq!(confined(&tree.roots(), &asked).ok(), good.clone());
        if let Ok(made) = found_or_made(&tree.roots(), &asked) {
            prop_assert!(made.starts_with(&tree.root) && good.is_none_or(|good| good == made));
            prop_assert_eq!(fs::canonicalize(&made).unwrap(), made);
        }
        let beside: Vec<_> = fs::read_dir(&tree.outside).unwrap().collect();
        prop_assert_eq!(beside.len(), 1);
    }

    #[test]
    fn whatever_is_written_is_inside_or_refused(written in any::<String>()) {
        let tree = Tree::new();
        if let Ok(found) = tree.ask(&written) {
            prop_assert!(found.starts_with(&tree.root));
        }
    }
}
