//! Projects, made and changed beside a gateway.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::mpsc};

use clap::Parser;
use serde_json::Value;

use super::*;
use crate::ui::Above;
use crate::{
    config::{Loader, Trust},
    store::{
        audit, conversations, conversations::Address, sessions, sessions::Session, testing::Place,
    },
};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ProjectsArgs,
}

/// A store, a root with a folder in it, and an agent that could run.
struct Desk {
    place: Place,
    store: Store,
    root: PathBuf,
}

impl Desk {
    async fn new() -> Self {
        let place = Place::sqlite();
        let store = place.open().await;
        let root = place.file().parent().unwrap().canonicalize().unwrap().join("root");
        fs::create_dir_all(root.join("app")).unwrap();
        let bin = root.join("bin");
        fs::create_dir(&bin).unwrap();
        for name in ["claude", "pi"] {
            fs::write(bin.join(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { place, store, root }
    }

    fn folder(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// Runs a command line; returns its exit code and what it printed.
    async fn run(&self, line: &[&str]) -> (Exit, String) {
        let data = self.place.file().parent().unwrap().to_owned();
        let file = data.join("ostler.json5");
        fs::write(&file, format!("{{ api: {{ roots: [{:?}] }} }}", self.root)).unwrap();
        let environment = [("OSTLER_DATA_DIR", data.clone()), ("PATH", self.root.join("bin"))]
            .map(|(name, path)| (name.into(), path.into()))
            .into();
        let (flags, trust) = (Vec::new(), Trust::Named);
        let loader = Loader { environment, here: data, file: Some(file), flags, trust };
        let line = ["projects"].iter().chain(line);
        let Ok(Line { args }) = Line::try_parse_from(line) else {
            return (Exit::Usage, String::new());
        };
        let (sender, printed) = mpsc::channel();
        let mut ui = Ui::default();
        ui.print_above(Above::new(move |text| {
            sender.send(text).ok();
            Ok(())
        }));
        ui.set_editing(true).unwrap();
        let exit = run(args, loader.load().unwrap(), &mut ui).await.unwrap();
        drop(ui);
        (exit, printed.iter().collect())
    }

    /// Runs one that succeeds; returns what it printed.
    async fn json(&self, line: &[&str]) -> Value {
        let (exit, printed) = self.run(&[line, &["--output", "json"]].concat()).await;
        assert_eq!(exit, Exit::Answered, "{line:?}");
        serde_json::from_str(&printed).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_is_made_changed_and_deleted_beside_a_gateway() {
    let desk = Desk::new().await;
    let app = desk.folder("app");
    let made = desk.json(&["create", "web", &app, "--model", "opus", "--timeout", "90s"]).await;
    assert_eq!(made["outcome"], "created");
    let made = &made["project"];
    assert_eq!((made["name"].as_str(), made["directory"].as_str()), (Some("web"), Some(&app[..])));
    assert_eq!(
        (&made["agent_provider"], &made["is_default_agent"]),
        (&"claudecode".into(), &true.into())
    );
    assert_eq!(
        (&made["settings"]["model"], &made["settings"]["timeout"]),
        (&"opus".into(), &"90s".into())
    );
    let id = made["id"].as_str().unwrap();
    for which in ["web", id] {
        assert_eq!(&desk.json(&["show", which]).await, made);
    }
    assert_eq!(desk.json(&["list"]).await["projects"], serde_json::json!([made]));
    assert_eq!(desk.run(&["create", "web", &app]).await.0, Exit::Failed);

    keep_session(&desk.store, id.parse().unwrap()).await;
    let set = ["set", "web", "--name", "site", "--agent", "pi", "--clear", "model"];
    let set = [&set[..], &["--allowed-tool", "Read", "--allowed-tool", "Bash(git *)"]].concat();
    let changed = desk.json(&set).await;
    assert_eq!((&changed["outcome"], &changed["sessions"]), (&"changed".into(), &1.into()));
    let project = &changed["project"];
    assert_eq!((&project["name"], &project["agent_provider"]), (&"site".into(), &"pi".into()));
    assert_eq!(project["settings"]["model"], Value::Null);
    assert_eq!(project["settings"]["allowed_tools"], serde_json::json!(["Read", "Bash(git *)"]));
    assert_eq!(desk.json(&["set", "site", "--agent", "pi"]).await["outcome"], "unchanged");
    let (_, text) = desk.run(&["show", "site"]).await;
    assert!(text.contains("setting    timeout = 90s"), "{text}");
    let back = desk.json(&["set", "site", "--clear", "agent", "--clear", "allowed-tools"]).await;
    assert_eq!(back["project"]["agent_provider"], "claudecode");
    assert_eq!(back["project"]["settings"]["allowed_tools"], Value::Null);

    assert_eq!(desk.json(&["delete", "site"]).await["outcome"], "deleted");
    for line in [&["show", "site"][..], &["set", "site"], &["delete", id]] {
        assert_eq!(desk.run(line).await.0, Exit::Failed, "{line:?}");
    }
    assert_eq!(desk.run(&["list"]).await, (Exit::Answered, "no projects\n".to_owned()));
    let audit = desk.store.read(id.to_owned(), |conn, id| Box::pin(audit::about(conn, id))).await;
    let audit = audit.unwrap();
    assert!(audit.iter().all(|entry| entry.actor == OPERATOR));
    let actions: Vec<_> = audit.iter().map(|entry| entry.action.as_str()).collect();
    let expected = ["create", "change", "change", "delete"].map(|word| format!("project.{word}"));
    assert_eq!(actions, expected);
    assert!(Path::new(&app).is_dir());
    desk.store.close().await;
}

async fn keep_session(store: &Store, project: ProjectId) {
    store
        .must(project, |conn, project| {
            Box::pin(async move {
                let address = Address::new("api", &project.to_string()).unwrap();
                let id = conversations::find_or_begin(conn, &address, Millis(1)).await?.id;
                conversations::set_project(conn, id, *project).await?;
                let (session, memo) = ("s1".to_owned(), "{}".to_owned());
                let session = Session { session, memo, updated_at: Millis(1) };
                sessions::keep(conn, id, "claude", &session).await
            })
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_over_http_is_refused_here() {
    let desk = Desk::new().await;
    let [app, missing] = ["app", "missing"].map(|name| desk.folder(name));
    let up = desk.folder("app/../app");
    for (line, exit) in [
        (&["", &app][..], Exit::Usage),
        (&[" x", &app], Exit::Usage),
        (&["a\u{1b}", &app], Exit::Usage),
        (&["x", "/etc"], Exit::Usage),
        (&["x", ""], Exit::Usage),
        (&["x", "nowhere-here"], Exit::Usage),
        (&["x", &missing], Exit::Usage),
        (&["x", &up], Exit::Usage),
        (&["x", &app, "--agent", "duck"], Exit::Usage),
        (&["x", &app, "--agent", "codex"], Exit::NotRunnable),
        (&["x", &app, "--permissions", "all"], Exit::Usage),
        (&["x", &app, "--timeout", "soon"], Exit::Usage),
        (&["x", &app, "--max-turns", "0"], Exit::Usage),
        (&["x", &app, "--model", " "], Exit::Usage),
    ] {
        let line = [&["create"], line].concat();
        assert_eq!(desk.run(&line).await.0, exit, "{line:?}");
    }
    assert_eq!(desk.json(&["list"]).await["projects"], serde_json::json!([]));
    let made = desk.json(&["create", "x", &missing, "--create"]).await;
    assert_eq!(made["project"]["directory"].as_str(), Some(&missing[..]));
    for line in [
        &["set", "x", "--model", "a", "--clear", "model"][..],
        &["set", "x", "--agent", "pi", "--clear", "agent"],
        &["set", "x", "--name", ""],
        &["set", "x", "--clear", "everything"],
    ] {
        assert_eq!(desk.run(line).await.0, Exit::Usage, "{line:?}");
    }
    desk.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_goes_on_where_the_one_before_ended() {
    let desk = Desk::new().await;
    let app = desk.folder("app");
    for name in ["a", "b", "c"] {
        desk.json(&["create", name, &app]).await;
    }
    let first = desk.json(&["list", "--limit", "2"]).await;
    let next = first["next"].as_str().unwrap();
    let rest = desk.json(&["list", "--limit", "2", "--after", next]).await;
    let names = [&first["projects"][0], &first["projects"][1], &rest["projects"][0]]
        .map(|project| project["name"].as_str().unwrap());
    assert_eq!((names, &rest["next"]), (["c", "b", "a"], &Value::Null));
    desk.store.close().await;
}
