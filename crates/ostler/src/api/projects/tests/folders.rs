//! Folders of projects that are not what they should be, over HTTP.

use std::{fs, os::unix::fs::symlink, path::Path};

use super::*;
use crate::gateway::testing::Knobs;

/// Tries to make a project in a directory, with more fields.
async fn attempt(rig: &Rig, directory: &str, more: Value) -> crate::api::testing::Answer {
    let mut body = json!({ "name": "app", "directory": directory });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    rig.post("/projects", body).await
}

on_both! {
    async fn a_directory_that_lies_elsewhere_or_is_none_is_refused(store: Store) {
        let rig = Rig::new(store).await;
        let app = rig.folder("app");
        let root = app.parent().unwrap();
        fs::write(root.join("file"), "x").unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let long = "x".repeat(300);
        let deep = "x/".repeat(4000);
        let outside = tempfile::tempdir().unwrap();
        for directory in [
            "/", "/etc", "/nonexistent", "..", "../x", "app/..", "app/../app", "etc", "etc/ssl",
            "loop", "file", "file/x", "missing", "missing/app", "a\u{0}b", "/proc/self/cwd",
            "~", "$HOME", "\u{202e}", &long, &deep, outside.path().to_str().unwrap(),
        ] {
            for create in [false, true] {
                // Below the root what is missing may be made.
                if create && ["missing", "~", "$HOME", "\u{202e}"].contains(&directory) {
                    continue;
                }
                let answer = attempt(&rig, directory, json!({ "create": create })).await;
                assert_eq!(
                    (answer.status, answer.code()), (400, "BAD_REQUEST"), "{directory} {create}"
                );
                let told = answer.body["error"]["message"].as_str().unwrap();
                assert!(told.contains("directory"), "{told}");
            }
        }
        assert_eq!(rig.get("/projects").await.data(), json!([]));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        assert!(!root.join("missing").exists());
        rig.stop().await;
    }

    async fn a_folder_is_made_if_that_is_wanted(store: Store) {
        let rig = Rig::new(store).await;
        let root = rig.folder("app").parent().unwrap().to_owned();
        let odd = "app/ünï ço∂e 🐴";
        let made = attempt(&rig, odd, json!({ "create": true })).await.data();
        assert_eq!(made["directory"], root.join(odd).display().to_string());
        assert!(root.join(odd).is_dir());
        // For a project that there is already, nothing is made.
        let again = attempt(&rig, "more", json!({ "create": true })).await;
        assert_eq!((again.status, again.code()), (409, "CONFLICT"));
        assert!(!root.join("more").exists());
        rig.stop().await;
    }

    async fn a_link_within_the_root_is_followed_once_and_for_all(store: Store) {
        let rig = Rig::new(store).await;
        let app = rig.folder("app");
        let link = app.parent().unwrap().join("link");
        symlink("app", &link).unwrap();
        let made = attempt(&rig, "link", json!({})).await.data();
        assert_eq!(made["directory"], app.display().to_string());
        let project = find(&rig.service, id(&made)).await.unwrap();
        assert_eq!(working_directory(&rig.service, &project).await, Ok(app));
        rig.stop().await;
    }

    async fn a_folder_that_was_swapped_since_is_worked_in_no_more(store: Store) {
        let rig = Rig::new(store).await;
        let made = make(&rig, "app").await;
        let (app, other) = (rig.folder("app"), rig.folder("other"));
        let project = find(&rig.service, id(&made)).await.unwrap();
        assert_eq!(working_directory(&rig.service, &project).await, Ok(app.clone()));
        fs::remove_dir(&app).unwrap();
        let refused = async || {
            let error = working_directory(&rig.service, &project).await.unwrap_err();
            assert_eq!(error.code, Code::Conflict);
            error.message
        };
        assert!(refused().await.contains("does not exist"));
        for (target, why) in [
            (Path::new("/etc"), "must lie in"),
            (&other, "not the one that it was"),
            (Path::new("/dev/null"), "must lie in"),
        ] {
            symlink(target, &app).unwrap();
            let told = refused().await;
            assert!(told.contains(why), "{told}");
            fs::remove_file(&app).unwrap();
        }
        fs::create_dir(&app).unwrap();
        // Nor is one that lies in no root any more.
        let mut knobs = rig.knobs();
        knobs.api.roots = vec![other];
        rig.gateway.change(&knobs);
        assert!(refused().await.contains("must lie in"));
        rig.stop().await;
    }

    async fn without_roots_it_is_said_what_to_set(store: Store) {
        let rig = Rig::new(store).await;
        let app = rig.folder("app").display().to_string();
        let mut knobs = rig.knobs();
        rig.gateway.change(&Knobs::default());
        for directory in ["app", &app, "/etc"] {
            let answer = attempt(&rig, directory, json!({})).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"));
            assert!(answer.body["error"]["message"].as_str().unwrap().contains("api.roots"));
        }
        knobs.api.roots.push(rig.folder("other"));
        rig.gateway.change(&knobs);
        let answer = attempt(&rig, "app", json!({})).await;
        assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"));
        assert_eq!(attempt(&rig, &app, json!({})).await.status, 201);
        rig.stop().await;
    }
}
