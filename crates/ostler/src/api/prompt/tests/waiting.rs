//! Waiting for the end of a command.

use tokio::{task::JoinSet, time};

use super::*;
use crate::{api::testing::LIMIT, id::JobId};

on_both! {
    async fn who_waits_is_told_the_end_or_that_it_takes_longer(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt");
        let over = rig.post(&format!("{path}?wait=60s"), json!({ "prompt": "hello" })).await;
        assert_eq!(over.status, 200);
        let over = over.data();
        assert_eq!(over["state"], "completed");
        assert_eq!(over["result"]["response_text"], "hello");
        let failed = rig.post(&format!("{path}?wait=60"), json!({ "prompt": "fail" })).await;
        assert_eq!(failed.status, 200);
        let failed = failed.data();
        assert_eq!((&failed["state"], &failed["result"]["exit_code"]), (&json!("failed"), &json!(7)));
        let late = rig.post(&format!("{path}?wait=50ms"), json!({ "prompt": "gate" })).await;
        assert_eq!(late.status, 202);
        assert_eq!(late.data()["state"], "queued");
        rig.gateway.until_hanging().await;
        rig.gateway.open_gate().await;
        rig.stop().await;
    }

    async fn who_waits_for_what_is_cancelled_is_told_so(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt?wait=5m");
        let request = rig.request("POST", &path).bearer_auth(&rig.admin);
        let mut waits = JoinSet::new();
        waits.spawn(request.json(&json!({ "prompt": "hang" })).send());
        rig.gateway.until_hanging().await;
        let listed = rig.get(&format!("/projects/{project}/commands?state=running")).await.data();
        let id = listed[0]["id"].as_str().unwrap();
        let path = format!("/projects/{project}/commands/{id}/cancel");
        let cancelled = rig.call("POST", &path, None).await;
        assert_eq!(cancelled.status, 202);
        assert_eq!(cancelled.data()["state"], "cancel_requested");
        let over = time::timeout(LIMIT, waits.join_next()).await.unwrap().unwrap().unwrap().unwrap();
        let over = answer(over).await;
        assert_eq!(over.status, 200);
        assert_eq!(over.data()["state"], "cancelled");
        rig.stop().await;
    }

    async fn who_goes_away_while_he_waits_cancels_nothing(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt?wait=5m");
        let request = rig.request("POST", &path).bearer_auth(&rig.admin);
        let mut waits = JoinSet::new();
        waits.spawn(request.json(&json!({ "prompt": "gate" })).send());
        rig.gateway.until_hanging().await;
        waits.shutdown().await;
        let listed = rig.get(&format!("/projects/{project}/commands")).await.data();
        let id: CommandId = listed[0]["id"].as_str().unwrap().parse().unwrap();
        rig.gateway.open_gate().await;
        rig.gateway.end_of(JobId::from(id)).await;
        let over = rig.get(&format!("/projects/{project}/commands/{id}")).await.data();
        assert_eq!(over["state"], "completed");
        rig.stop().await;
    }

    async fn a_gateway_that_stops_keeps_nobody_waiting(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt?wait=5m");
        let request = rig.request("POST", &path).bearer_auth(&rig.admin);
        let mut waits = JoinSet::new();
        waits.spawn(request.json(&json!({ "prompt": "gate" })).send());
        rig.gateway.until_hanging().await;
        rig.phase.send_replace(Phase::Stopping);
        let told = time::timeout(LIMIT, waits.join_next()).await.unwrap().unwrap().unwrap().unwrap();
        assert_eq!(told.status(), 202);
        rig.gateway.open_gate().await;
        rig.stop().await;
    }
}
