//! Commands and turns over HTTP.

use serde_json::json;

use super::*;
use crate::{
    api::{prompt::tests::make_project, testing::Rig},
    gateway::testing::Knobs,
    id::TurnId,
    store::testing::{delete_project, on_both},
};

/// Asks, and waits for the end; returns the command's name.
async fn ask(rig: &Rig, project: ProjectId, prompt: &str) -> String {
    let path = format!("/projects/{project}/prompt?wait=60s");
    let over = rig.post(&path, json!({ "prompt": prompt })).await.data();
    over["id"].as_str().unwrap().to_owned()
}

fn ids(listed: &Value) -> Vec<&str> {
    listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

on_both! {
    async fn commands_are_listed_newest_first_by_pages_and_by_what_they_are(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let (project, other) = (make_project(&rig, "a").await, make_project(&rig, "b").await);
        let mut all = Vec::new();
        for prompt in ["one", "fail", "three"] {
            all.insert(0, ask(&rig, project, prompt).await);
        }
        ask(&rig, other, "elsewhere").await;
        let path = format!("/projects/{project}/commands");
        let listed = rig.get(&path).await;
        assert_eq!(listed.body["meta"].get("next_cursor"), None);
        let listed = listed.data();
        assert_eq!(ids(&listed), all);
        assert_eq!(listed[0].get("result"), None);
        let first = rig.get(&format!("{path}?limit=2")).await;
        let cursor = first.body["meta"]["next_cursor"].as_str().unwrap().to_owned();
        assert_eq!(ids(&first.data()), all[..2]);
        let rest = rig.get(&format!("{path}?limit=2&cursor={cursor}")).await;
        assert_eq!(ids(&rest.data()), all[2..]);
        let full = rig.get(&format!("{path}?limit=3")).await;
        assert_eq!(full.body["meta"].get("next_cursor"), None, "there are no more");
        assert_eq!(ids(&full.data()), all);
        for (query, found) in [
            ("state=failed", vec![all[1].as_str()]),
            ("state=completed&kind=prompt", vec![&all[0], &all[2]]),
            ("state=running", vec![]),
            ("kind=shell", vec![]),
        ] {
            assert_eq!(ids(&rig.get(&format!("{path}?{query}")).await.data()), found, "{query}");
        }
        for query in ["limit=0", "limit=101", "limit=x", "cursor=x", "state=over", "kind=", "page=2"] {
            let answer = rig.get(&format!("{path}?{query}")).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{query}");
        }
        rig.stop().await;
    }

    async fn a_long_prompt_is_shown_whole_but_not_in_lists(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let long = "ü".repeat(2000);
        let id = ask(&rig, project, &long).await;
        let listed = rig.get(&format!("/projects/{project}/commands")).await.data();
        assert_eq!(listed[0]["text"].as_str().unwrap().chars().count(), 500);
        let whole = rig.get(&format!("/projects/{project}/commands/{id}")).await.data();
        assert_eq!(whole["text"], long);
        rig.stop().await;
    }

    async fn what_happened_in_a_command_is_read_by_pages(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let (before, id) = (ask(&rig, project, "one").await, ask(&rig, project, "two").await);
        let path = format!("/projects/{project}/commands/{id}/events");
        let all = rig.get(&path).await.data();
        let all = all.as_array().unwrap();
        assert!(all.len() > 2);
        assert_eq!(all.last().unwrap()["type"], "complete");
        assert_eq!(all.last().unwrap()["command_id"], id);
        assert!(all.is_sorted_by_key(|event| event["event_id"].as_i64().unwrap()));
        let (mut after, mut read) = (0, Vec::new());
        loop {
            let page = rig.get(&format!("{path}?after={after}&limit=1")).await;
            let next = page.body["meta"]["next_cursor"].as_str().map(|next| next.parse().unwrap());
            let page = page.data();
            assert_eq!(page.as_array().unwrap().len(), 1, "no page is empty");
            read.extend(page.as_array().unwrap().clone());
            match next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(&read, all);
        for query in ["limit=0", "limit=501", "after=-1", "after=x"] {
            assert_eq!(rig.get(&format!("{path}?{query}")).await.status, 400, "{query}");
        }
        let earlier = rig.get(&format!("/projects/{project}/commands/{before}/events")).await.data();
        assert!(earlier.as_array().unwrap().iter().all(|event| !all.contains(event)));
        rig.stop().await;
    }

    async fn what_is_not_of_the_project_is_not_there(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let (project, other) = (make_project(&rig, "a").await, make_project(&rig, "b").await);
        let id = ask(&rig, project, "one").await;
        let turns = rig.get(&format!("/projects/{project}/turns")).await.data();
        let turn = turns[0]["id"].as_str().unwrap().to_owned();
        let paths = |project: ProjectId| {
            [
                ("GET", format!("/projects/{project}/commands/{id}")),
                ("GET", format!("/projects/{project}/commands/{id}/events")),
                ("POST", format!("/projects/{project}/commands/{id}/cancel")),
                ("GET", format!("/projects/{project}/turns/{turn}")),
            ]
        };
        let unknown = [
            ("GET", format!("/projects/{project}/commands/{}", CommandId::new())),
            ("GET", format!("/projects/{project}/commands/x")),
            ("GET", format!("/projects/{project}/turns/{}", TurnId::new())),
            ("GET", format!("/projects/{}/commands", ProjectId::new())),
            ("GET", format!("/projects/{}/turns", ProjectId::new())),
        ];
        for (method, path) in paths(other).into_iter().chain(unknown) {
            let answer = rig.call(method, &path, None).await;
            assert_eq!((answer.status, answer.code()), (404, "NOT_FOUND"), "{path}");
        }
        delete_project(&store, project).await;
        let lists = [("GET", format!("/projects/{project}/commands"))];
        for (method, path) in paths(project).into_iter().chain(lists) {
            assert_eq!(rig.call(method, &path, None).await.status, 404, "{path}");
        }
        rig.stop().await;
    }

    async fn a_command_is_cancelled_before_it_begins_and_not_after_its_end(store: Store) {
        let rig = Rig::with(store, Knobs { at_once: 0, ..Knobs::default() }).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt");
        let accepted = rig.post(&path, json!({ "prompt": "never" })).await.data();
        let id = accepted["command_id"].as_str().unwrap();
        let path = format!("/projects/{project}/commands/{id}");
        let reader = rig.key(&[Scope::ProjectsRead]).await;
        let refused = rig.call_with(&reader, "POST", &format!("{path}/cancel"), None).await;
        assert_eq!(refused.code(), "FORBIDDEN");
        let cancelled = rig.call("POST", &format!("{path}/cancel"), None).await;
        assert_eq!(cancelled.status, 200);
        assert_eq!(cancelled.data(), json!({ "command_id": id, "state": "cancelled" }));
        let over = rig.get(&path).await.data();
        assert_eq!((&over["state"], &over["result"]["exit_code"]), (&json!("cancelled"), &json!(130)));
        let again = rig.call("POST", &format!("{path}/cancel"), None).await;
        assert_eq!((again.status, again.code()), (409, "CONFLICT"));
        rig.stop().await;
    }

    async fn turns_are_listed_newest_first_and_read_with_their_reports(store: Store) {
        let rig = Rig::with(store, Knobs { retries: 1, ..Knobs::default() }).await;
        let (project, other) = (make_project(&rig, "a").await, make_project(&rig, "b").await);
        let first = ask(&rig, project, "one").await;
        let second = ask(&rig, project, "stumble").await;
        ask(&rig, other, "elsewhere").await;
        rig.gateway.ask("main", "in no project").await;
        let path = format!("/projects/{project}/turns");
        let listed = rig.get(&path).await.data();
        let of = listed.as_array().unwrap().iter();
        let of: Vec<_> = of.map(|turn| (turn["command_id"].as_str().unwrap(), &turn["attempt"])).collect();
        assert_eq!(of, [(second.as_str(), &json!(2)), (&second, &json!(1)), (&first, &json!(1))]);
        assert_eq!((listed[0].get("report"), listed[0].get("events")), (None, None));
        let page = rig.get(&format!("{path}?limit=2")).await;
        let cursor = page.body["meta"]["next_cursor"].as_str().unwrap().to_owned();
        let rest = rig.get(&format!("{path}?limit=2&cursor={cursor}")).await.data();
        assert_eq!(ids(&rest), ids(&listed)[2..]);
        let id = ids(&listed)[1];
        let failed = rig.get(&format!("{path}/{id}")).await.data();
        assert_eq!((&failed["state"], &failed["agent_provider"]), (&json!("ended"), &json!("pi")));
        assert_eq!(failed["report"]["error"]["kind"], "crashed");
        let events = failed["events"].as_array().unwrap();
        assert!(events.is_sorted_by_key(|event| event["event_id"].as_i64().unwrap()));
        assert!(events.iter().any(|event| event["type"] == "agent_complete"));
        let one = rig.get(&format!("{path}/{id}?limit=1")).await;
        assert_eq!(one.body["meta"]["next_cursor"], events[0]["event_id"].to_string());
        assert_eq!(one.data()["events"], json!([events[0]]));
        rig.stop().await;
    }
}
