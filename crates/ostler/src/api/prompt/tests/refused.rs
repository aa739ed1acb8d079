//! Prompts that cannot be taken.

use super::*;

/// Sends a body as it is.
async fn send(rig: &Rig, project: ProjectId, body: impl Into<String>) -> Answer {
    let path = format!("/projects/{project}/prompt");
    let request = rig.request("POST", &path).bearer_auth(&rig.admin);
    let request = request.header("Content-Type", "application/json").body(body.into());
    answer(request.send().await.unwrap()).await
}

on_both! {
    async fn what_makes_no_sense_is_refused_and_leaves_nothing(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let long = "x".repeat(257);
        for (body, word) in [
            (r#"{"prompt":""}"#, "prompt required"),
            (r#"{"prompt":" \n\t"}"#, "prompt required"),
            (r#"{"prompt":"a\u0000b"}"#, "NUL"),
            (r#"{"prompt":"x","system_prompt":"a\u0000"}"#, "NUL"),
            ("{}", "prompt"),
            ("", "object"),
            ("5", "object"),
            (r#"{"prompt":"x""#, "EOF"),
            (r#"{"prompt":"x"} more"#, "trailing"),
            (r#"{"prompt":"x","prompt":"y"}"#, "duplicate"),
            (r#"{"prompt":"x","model":"a","model":"b"}"#, "duplicate"),
            (r#"{"prompt":"x","cwd":"/"}"#, "unknown field"),
            (r#"{"prompt":"x","agent":"claude"}"#, "unknown field"),
            (r#"{"prompt":5}"#, "string"),
            (r#"{"prompt":null}"#, "string"),
            (r#"{"prompt":"x","model":["a"]}"#, "model"),
            (r#"{"prompt":"x","model":"-m"}"#, "dash"),
            (r#"{"prompt":"x","model":"a\nb"}"#, "control"),
            (r#"{"prompt":"x","model":" "}"#, "blank"),
            (r#"{"prompt":"x","allowed_tools":"Read"}"#, "allowed_tools"),
            (r#"{"prompt":"x","allowed_tools":["--x"]}"#, "dash"),
            (r#"{"prompt":"x","allowed_tools":["a\u0000"]}"#, "control"),
            (r#"{"prompt":"x","session_id":""}"#, "blank"),
            (r#"{"prompt":"x","session_id":"--last"}"#, "dash"),
            (r#"{"prompt":"x","session_id":"a b"}"#, "white space"),
            (r#"{"prompt":"x","timeout":"0s"}"#, "24h"),
            (r#"{"prompt":"x","timeout":0.5}"#, "24h"),
            (r#"{"prompt":"x","timeout":"25h"}"#, "24h"),
            (r#"{"prompt":"x","timeout":-1}"#, "24h"),
            (r#"{"prompt":"x","timeout":"soon"}"#, "24h"),
            (r#"{"prompt":"x","timeout":true}"#, "24h"),
            (r#"{"prompt":"x","stream_id":""}"#, "stream_id"),
            (r#"{"prompt":"x","stream_id":"a/b"}"#, "stream_id"),
            (r#"{"prompt":"x","stream_id":"ü"}"#, "stream_id"),
            (&format!(r#"{{"prompt":"x","stream_id":"{}"}}"#, CommandId::new()), "stream_id"),
            (&format!(r#"{{"prompt":"x","session_id":"{}"}}"#, "x".repeat(401)), "400"),
            (r#"{"prompt":"x","permissions":"all"}"#, "permissions"),
            (r#"{"prompt":"x","thinking":1}"#, "thinking"),
            (r#"{"prompt":"x","max_turns":0}"#, "max_turns"),
            (r#"{"prompt":"x","max_turns":-1}"#, "max_turns"),
            (r#"{"prompt":"x","max_turns":99999}"#, "max_turns"),
            (&format!(r#"{{"prompt":"x","model":"{long}"}}"#), "256"),
            (&format!(r#"{{"prompt":"x","stream_id":"{}"}}"#, "x".repeat(65)), "stream_id"),
        ] {
            let answer = send(&rig, project, body).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{body}: {answer:?}");
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(word), "{body}: {message}");
        }
        for query in ["wait=11m", "wait=soon", "wait=0", "wiat=1s", "wait=1s&wait=2s"] {
            let path = format!("/projects/{project}/prompt?{query}");
            let answer = rig.post(&path, json!({ "prompt": "x" })).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{query}");
        }
        let listed = rig.get(&format!("/projects/{project}/commands")).await.data();
        assert_eq!(listed, json!([]));
        rig.stop().await;
    }

    async fn a_prompt_that_is_too_long_or_no_json_is_refused_by_the_words_of_http(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let long = send(&rig, project, json!({ "prompt": "x".repeat(2 << 20) }).to_string()).await;
        assert_eq!((long.status, long.code()), (413, "BAD_REQUEST"));
        let path = format!("/projects/{project}/prompt");
        let plain = rig.request("POST", &path).bearer_auth(&rig.admin).body("prompt=x");
        let plain = answer(plain.send().await.unwrap()).await;
        assert_eq!((plain.status, plain.code()), (415, "BAD_REQUEST"));
        assert_eq!(rig.get(&path).await.status, 405);
        rig.stop().await;
    }

    async fn a_prompt_of_any_characters_but_nul_reaches_the_agent(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        for prompt in ["--help", "日本語 🎉", "a\u{1b}[1mb", "$(id) `id` ; x"] {
            let over = ask(&rig, project, json!({ "prompt": prompt })).await;
            assert_eq!(over["text"], prompt);
            assert_eq!(rig.gateway.calls().last(), Some(&format!("new|{prompt}")));
        }
        rig.stop().await;
    }
}
