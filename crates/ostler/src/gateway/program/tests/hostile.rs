//! A repository that means ill: whatever its settings and files name, nothing of
//! it is run, and nothing outside of it is read.

use std::{os::unix::fs::PermissionsExt as _, process::Command};

use super::*;
use crate::{
    config::Api,
    program::{Refused, git::allow},
};

/// Prepares a repository with git itself, away from everybody's settings.
fn git(folder: &Path, args: &[&str]) {
    #[expect(clippy::disallowed_methods, reason = "the repository is made by git itself")]
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .current_dir(folder)
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

/// Makes a repository with these settings.
pub(super) fn repository_with(folder: &Path, settings: &str) {
    git(folder, &["init", "-q"]);
    let config = folder.join(".git/config");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, own + settings).unwrap();
}

/// A program that leaves a trace if it is ever run.
fn trap(folder: &Path) -> String {
    let path = folder.join("trap.sh");
    fs::write(&path, format!("#!/bin/sh\ntouch {}/sprung\ncat\n", folder.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Makes a repository in which everything leads to the trap.
fn hostile(folder: &Path, trap: &str) {
    git(folder, &["init", "-q", "-b", "main"]);
    fs::write(folder.join("file.txt"), "one\n").unwrap();
    fs::write(folder.join("other.bin"), "one\n").unwrap();
    fs::write(
        folder.join(".gitattributes"),
        "*.txt diff=evil filter=evil merge=evil\n*.bin filter=a=b diff=evil\n",
    )
    .unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
    fs::write(folder.join("file.txt"), "two\n").unwrap();
    git(folder, &["commit", "-qam", "second"]);
    // As long as before, so that it has to be looked into.
    fs::write(folder.join("file.txt"), "six\n").unwrap();
    fs::write(folder.join("other.bin"), "six\n").unwrap();
    let sub = folder.join("sub");
    fs::create_dir(&sub).unwrap();
    git(&sub, &["init", "-q"]);
    fs::write(sub.join("x.txt"), "one\n").unwrap();
    git(&sub, &["add", "."]);
    git(&sub, &["commit", "-qm", "sub"]);
    git(folder, &["add", "sub"]);
    git(folder, &["commit", "-qm", "third", "sub"]);
    fs::write(sub.join("x.txt"), "two\n").unwrap();
    fs::write(sub.join(".gitattributes"), "*.txt diff=evil filter=evil\n").unwrap();
    let settings = format!(
        "[core]\n\tfsmonitor = {trap}\n\thooksPath = {folder}/hooks\n\tpager = {trap}\n\
         \teditor = {trap}\n\tsshCommand = {trap}\n\taskPass = {trap}\n\talternateRefsCommand = {trap}\n\
         [diff]\n\texternal = {trap}\n\tsubmodule = diff\n\
         [diff \"evil\"]\n\ttextconv = {trap}\n\tcommand = {trap}\n\
         [filter \"evil\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\trequired = true\n\
         [filter \"a=b\"]\n\tprocess = {trap}\n\tclean = {trap}\n\
         [merge \"evil\"]\n\tdriver = {trap}\n\
         [pager]\n\tlog = {trap}\n\tdiff = {trap}\n\tstatus = {trap}\n\tbranch = {trap}\n\
         [alias]\n\tlog = !{trap}\n\tstatus = !{trap}\n\tlg = !{trap}\n\
         [log]\n\tshowSignature = true\n\
         [gpg]\n\tprogram = {trap}\n\
         [status]\n\tsubmoduleSummary = true\n\
         [submodule]\n\trecurse = true\n\
         [man]\n\tviewer = evil\n[man \"evil\"]\n\tcmd = {trap}\n[man \"man\"]\n\tpath = {trap}\n\
         [help]\n\tformat = man\n\tbrowser = evil\n[browser \"evil\"]\n\tcmd = {trap}\n\
         [includeIf \"gitdir:**\"]\n\tpath = {folder}/more\n",
        folder = folder.display(),
    );
    fs::write(
        folder.join("more"),
        format!("[filter \"more\"]\n\tclean = {trap}\n[core]\n\tpager = {trap}\n"),
    )
    .unwrap();
    for git_dir in [folder.join(".git"), sub.join(".git")] {
        let config = fs::read_to_string(git_dir.join("config")).unwrap();
        fs::write(git_dir.join("config"), format!("{config}{settings}")).unwrap();
        fs::create_dir_all(git_dir.join("info")).unwrap();
        fs::write(git_dir.join("info/attributes"), "* filter=more\n*.txt filter=evil\n").unwrap();
        for hooks in [git_dir.join("hooks"), folder.join("hooks")] {
            fs::create_dir_all(&hooks).unwrap();
            for hook in
                ["post-index-change", "reference-transaction", "post-checkout", "pre-commit"]
            {
                fs::copy(trap, hooks.join(hook)).unwrap();
            }
        }
    }
}

fn order(home: &Home, args: &[&str]) -> Order {
    try_order(home, args).unwrap()
}

fn try_order(home: &Home, args: &[&str]) -> Result<Order, Refused> {
    let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let allowed: Vec<_> = [
        "blame",
        "branch",
        "commit",
        "diff",
        "diff-files",
        "lg",
        "log",
        "ls-files",
        "rev-parse",
        "shortlog",
        "show",
        "status",
        "checkout",
    ]
    .map(str::to_owned)
    .to_vec();
    let words = allow(&args, &allowed, home.path().to_str().unwrap())?;
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    Ok(home.order(CommandKind::Git, &words))
}

on_both! {
    async fn a_hostile_repository_runs_nothing(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let outside = tempfile::tempdir().unwrap();
        let trap = trap(outside.path());
        hostile(&home.path(), &trap);
        let sprung = outside.path().join("sprung");
        for (args, says) in [
            (&["status"][..], "modified:   file.txt"),
            (&["status", "-v", "-v"], "modified:   file.txt"),
            (&["diff"], "+six"),
            (&["diff", "HEAD"], "+six"),
            (&["diff-files", "-p"], "+six"),
            (&["diff", "--stat"], "file.txt"),
            (&["log", "-p"], "+two"),
            (&["log", "--format=%G? %s", "-3"], "third"),
            (&["log", "-p", "--remerge-diff"], "+two"),
            (&["show", "HEAD~1"], "+two"),
            (&["show", "HEAD:file.txt"], "two"),
            (&["blame", "file.txt"], "six"),
            (&["branch", "-a"], "main"),
            (&["ls-files", "-m", "-o"], "file.txt"),
            (&["rev-parse", "HEAD"], ""),
            (&["shortlog", "-s", "HEAD"], "3"),
            (&["commit", "-m", "x", "file.txt"], ""),
            (&["checkout", "HEAD", "other.bin"], ""),
        ] {
            let (events, result) = run(&rig, order(&home, args)).await;
            let said = result.response_text.clone().unwrap_or_default();
            assert!(said.contains(says), "{args:?}: {said} {:?}", result.error);
            assert!(!sprung.exists(), "{args:?} ran the trap: {events:#?}");
        }
        let (_, result) = run(&rig, order(&home, &["lg"])).await;
        assert!(result.is_error && !sprung.exists());
        for command in Api::default().git {
            assert!(try_order(&home, &[&command, "--help"]).is_err());
            // Nor would it run anything if it were allowed.
            let help = home.order(CommandKind::Git, &["git", "--no-pager", &command, "--help"]);
            let (events, _) = run(&rig, help).await;
            assert!(!sprung.exists(), "help of {command} ran the trap: {events:#?}");
        }
        // The trap does work.
        run(&rig, home.order(CommandKind::Shell, &["git", "log", "--help"])).await;
        assert!(sprung.exists());
        fs::remove_file(&sprung).unwrap();
        let (_, result) = run(&rig, home.order(CommandKind::Shell, &["git", "status"])).await;
        assert!(sprung.exists(), "{result:?}");
        rig.stop().await;
    }

    async fn git_finds_nothing_outside_of_the_project(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        // Without a repository two files would be compared wherever links lead.
        std::os::unix::fs::symlink("/etc", home.path().join("etc")).unwrap();
        let (_, result) = run(&rig, order(&home, &["diff", "etc/passwd", "etc/hosts"])).await;
        assert_eq!(kind(&result), "spawn_failed", "{result:?}");
        git(&home.path(), &["init", "-q"]);
        git(&home.path(), &["config", "core.worktree", "/etc"]);
        let (_, result) = run(&rig, order(&home, &["status"])).await;
        let error = result.error.unwrap();
        assert!(error["message"].as_str().unwrap().contains("core.worktree"), "{error}");
        rig.stop().await;
    }

    async fn a_project_within_a_larger_repository_has_none(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        git(&home.path(), &["init", "-q"]);
        fs::write(home.path().join("secret"), "of others").unwrap();
        git(&home.path(), &["add", "."]);
        git(&home.path(), &["commit", "-qm", "first"]);
        for (name, has_own) in [("within", false), ("own", true), ("a:b", false)] {
            let folder = home.path().join(name);
            fs::create_dir(&folder).unwrap();
            if has_own {
                git(&folder, &["init", "-q"]);
            }
            for args in [&["show", "HEAD:secret"][..], &["ls-files", ":/"], &["status"]] {
                let mut order = order(&home, args);
                order.wishes.cwd = Some(folder.clone());
                let (_, result) = run(&rig, order).await;
                let said = result.response_text.clone().unwrap_or_default();
                assert!(!said.contains("of others") && !said.contains("secret\n"), "{said}");
                assert_eq!(result.is_error, !has_own || args[0] == "show", "{name}: {result:?}");
            }
        }
        rig.stop().await;
    }

    async fn a_folder_that_only_looks_like_a_repository_is_none(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        git(&home.path(), &["init", "-q", "--bare"]);
        let (_, result) = run(&rig, order(&home, &["log"])).await;
        assert!(result.is_error, "{result:?}");
        rig.stop().await;
    }
}
