//! What callers may ask of git, and what is run for it.

use proptest::prelude::*;

use super::*;

const FOLDER: &str = "/srv/projects/one";

fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn looking() -> Vec<String> {
    words(&[
        "blame",
        "branch",
        "diff",
        "log",
        "ls-files",
        "rev-parse",
        "shortlog",
        "show",
        "status",
        "grep",
        "clone",
        "rebase",
        "commit",
        "config",
        "fetch",
    ])
}

fn ask(args: &[&str]) -> Result<Vec<String>, Refused> {
    allow(&words(args), &looking(), FOLDER)
}

#[test]
fn what_only_looks_is_run() {
    for args in [
        &["log", "-5"][..],
        &["log", "--oneline", "main..feature/x", "--", "src"],
        &["log", "-SOutput", "--grep=/api", "--format=%H %s", "-G/x"],
        &["log", "-p", "--text", "--no-textconv", "--stat", "-M", "--exclude=refs/*", "--all"],
        &["diff", "HEAD~2...HEAD", "--cached", "-U10", "-w"],
        &["diff", "--no-renames", "--no-color", "--ignore-all-space"],
        &["show", "HEAD:src/main.rs"],
        &["show", ":/fix"],
        &["status", "--porcelain=v2", "-sb"],
        &["blame", "-L10,20", "src/OS.rs", "--ignore-rev", "HEAD"],
        &["branch"],
        &["branch", "-a", "-vv", "--sort=-committerdate"],
        &["branch", "--list", "feature/*"],
        &["branch", "--contains", "HEAD"],
        &["ls-files", "-o", "--exclude-standard"],
        &["rev-parse", "--show-toplevel", "--abbrev-ref", "HEAD"],
        &["shortlog", "-sne", "HEAD"],
    ] {
        let run = ask(args).unwrap_or_else(|refused| panic!("{args:?}: {refused}"));
        assert_eq!(run[..2], words(&["git", "--no-pager"]));
        assert!(run.ends_with(&words(&args[1..])), "{run:?}");
        assert!(run.contains(&format!("safe.directory={FOLDER}")));
    }
}

#[test]
fn options_that_run_programs_or_lead_elsewhere_are_refused() {
    for args in [
        &["log", "-c", "core.pager=x"][..],
        &["log", "-ccore.pager=x"],
        &["log", "--output=x"],
        &["log", "--outp", "x"],
        &["log", "--o=x"],
        &["diff", "--ext-diff"],
        &["diff", "--ext"],
        &["diff", "--ex"],
        &["show", "--textconv"],
        &["show", "--textc"],
        &["diff", "--no-index", "a", "b"],
        &["diff", "--no-ind", "a", "b"],
        &["diff", "a", "/dev/null"],
        &["diff", "--", "/etc/passwd", "x"],
        &["diff", "../../secret", "x"],
        &["diff", "a/../../secret", "x"],
        &["diff", "-Oorder"],
        &["diff", "-wOorder"],
        &["diff", "-O", "order"],
        &["diff", "-O/etc/passwd"],
        &["diff", "--ignore-submodules=none"],
        &["status", "--no-ignore-submodules"],
        &["status", "--no-ignore-sub"],
        &["diff", "--submodule=diff"],
        &["log", "--show-signature"],
        &["blame", "--contents", "x", "y"],
        &["blame", "--conte=x", "y"],
        &["blame", "-S", "x", "y"],
        &["blame", "-wSx", "y"],
        &["blame", "--ignore-revs-file=x", "y"],
        &["ls-files", "-X", "x"],
        &["ls-files", "-oXx"],
        &["ls-files", "--exclude-from=x"],
        &["ls-files", "--recurse-submodules"],
        &["status", "--pathspec-from-file=x"],
        &["rev-parse", "--resolve-git-dir", "x"],
        &["grep", "-O", "x"],
        &["grep", "-GOsh", "x"],
        &["grep", "-LOsh", "x"],
        &["grep", "--open-files-in-pager=sh", "x"],
        &["clone", "-u", "sh", "x"],
        &["clone", "--upload-pack=sh", "x"],
        &["clone", "--template=x", "y"],
        &["fetch", "--upload-p=sh"],
        &["rebase", "-x", "sh"],
        &["rebase", "--exec=sh"],
        &["rebase", "--exec-x"],
        &["commit", "-F", "x"],
        &["branch", "-D", "main"],
        &["branch", "new"],
        &["branch", "--edit-description"],
        &["branch", "--contains", "HEAD", "-m", "x"],
        &["config", "core.pager", "x"],
        &["log", "--help"],
        &["rev-parse", "--hel"],
        &["status", "--help-all"],
        &["push"],
        &["lg"],
    ] {
        let refused = ask(args);
        assert!(matches!(refused, Err(Refused::Forbidden(_))), "{args:?}: {refused:?}");
    }
    for args in [&[][..], &["-c", "x=y", "log"], &["--exec-path=x", "log"], &["log", "a\0b"]] {
        assert!(matches!(ask(args), Err(Refused::Wrong(_))), "{args:?}");
    }
    let nothing = allow(&words(&["log"]), &[], FOLDER).unwrap_err();
    assert!(matches!(nothing, Refused::Forbidden(why) if why.contains("api.git")));
}

#[test]
fn settings_of_a_repository_that_name_programs_are_set_over_whatever_they_are_called() {
    let listed = [
        "global\0filter.lfs.clean",
        "command\0core.pager",
        "local\0core.bare",
        "local\0filter.a=b.c.clean",
        "worktree\0diff.X.textconv",
        "local\0alias.log",
        "local\0gpg.ssh.program",
        "local\0diff.external",
    ];
    let settings = Settings::read(format!("{}\0", listed.join("\0")).as_bytes()).unwrap();
    assert!(settings.is_repository);
    let mut env = Variables::new();
    settings.add_to(&mut env);
    let get = |name: &str| env[std::ffi::OsStr::new(name)].to_str().unwrap().to_owned();
    assert_eq!(get("GIT_CONFIG_COUNT"), "5");
    let set: Vec<_> = (0..5)
        .map(|n| (get(&format!("GIT_CONFIG_KEY_{n}")), get(&format!("GIT_CONFIG_VALUE_{n}"))))
        .collect();
    let expected = [
        ("filter.a=b.c.clean", ""),
        ("diff.X.textconv", "cat"),
        ("alias.log", ""),
        ("gpg.ssh.program", "false"),
        ("diff.external", "false"),
    ];
    assert_eq!(set, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for bad in [
        &b"local\0core.worktree\0"[..],
        b"local\0remote.x.vcs\0",
        b"local\0format.outputdirectory\0",
        b"local\0filter.\xff.clean\0",
    ] {
        assert!(Settings::read(bad).is_err());
    }
    assert!(!Settings::read(b"global\0user.name\0").unwrap().is_repository);
}

proptest! {
    #[test]
    fn what_is_run_is_what_was_asked_behind_what_is_fixed(
        args in proptest::collection::vec("[-a-zO=/.:@~ \0]{0,8}", 0..5),
        command in prop_oneof![Just("log"), Just("diff"), Just("status"), Just("branch")],
    ) {
        let mut all = vec![command.to_owned()];
        all.extend(args);
        let allowed = looking();
        if let Ok(run) = allow(&all, &allowed, FOLDER) {
            let fixed = allow(&all[..1], &allowed, FOLDER).unwrap();
            prop_assert_eq!(&run[..fixed.len()], &fixed[..]);
            prop_assert_eq!(&run[fixed.len()..], &all[1..]);
        }
    }

    #[test]
    fn no_start_of_a_refused_option_gets_through(
        option in prop_oneof![
            Just("--output"), Just("--ext-diff"), Just("--no-index"), Just("--upload-pack"),
            Just("--receive-pack"), Just("--exec"), Just("--open-files-in-pager"),
            Just("--contents"), Just("--ignore-submodules"), Just("--recurse-submodules"),
        ],
        length in 3_usize..30, value in "(=.{0,5})?",
    ) {
        let start = &option[..length.min(option.len())];
        let args = words(&["log", &format!("{start}{value}")]);
        let refused = allow(&args, &looking(), FOLDER);
        prop_assert!(refused.is_err(), "{start}{value}");
    }
}
