//! What both forms of the documentation are when they are asked for.

use serde_json::{Value, json};

use crate::{
    api::{
        docs::{html, page},
        document,
        testing::{Rig, answer},
    },
    store::testing::on_both,
};

on_both! {
    async fn anybody_may_read_the_document(store: Store) {
        let rig = Rig::new(store).await;
        let read = answer(rig.request("GET", "/openapi.json").send().await.unwrap()).await;
        assert_eq!((read.status, &read.headers["content-type"]), (200, &"application/json".parse().unwrap()));
        let kept: Value = serde_json::from_str(document::text().unwrap()).unwrap();
        assert_eq!(read.body, kept);
        assert_eq!(read.body["paths"]["/openapi.json"]["get"]["operationId"], "docs_openapi");
        rig.stop().await;
    }

    async fn the_page_has_every_operation_and_loads_nothing(store: Store) {
        let rig = Rig::new(store).await;
        let response = rig.request("GET", "/docs").send().await.unwrap();
        let headers = response.headers().clone();
        assert_eq!((response.status().as_u16(), &headers["content-type"]), (200, &"text/html; charset=utf-8".parse().unwrap()));
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
        let page = response.text().await.unwrap();
        let told: Value = serde_json::from_str(document::text().unwrap()).unwrap();
        for (path, item) in told["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                let summary = html::escape(operation["summary"].as_str().unwrap());
                assert!(page.contains(&format!("<span>{summary}</span>")), "{path}");
            }
        }
        for outside in ["<script", "src=", "url(", "@import", "<link", " style=", "href=\"http"] {
            assert!(!page.contains(outside), "the page has {outside:?}");
        }
        rig.stop().await;
    }
}

#[test]
fn nothing_that_the_document_says_is_markup() {
    let bad = "<script>alert('\"&')</script>";
    let document = json!({
        "info": { "title": bad, "version": bad, "description": bad },
        "tags": [{ "name": bad, "description": bad }],
        "paths": { "/<script>{x}": { "post": {
            "tags": [bad], "summary": bad, "description": bad,
            "security": [{ "key": [bad] }],
            "parameters": [{ "name": bad, "in": "query", "description": bad,
                "schema": { "type": bad, "pattern": bad } }],
            "requestBody": { "content": { bad: { "schema": { "type": "object", "required": [bad],
                "properties": { bad: { "type": ["array", bad], "items": { "enum": [bad] }, "description": bad } } } } } },
            "responses": { bad: { "description": bad, "content": { bad: {} } } },
        } } },
        "components": { "schemas": { bad: { "description": bad, "oneOf": [{ "$ref": format!("#/components/schemas/{bad}") }] } } },
    });
    let (html, _) = page::page(&document);
    assert!(!html.contains("<script") && !html.contains("alert('"), "{html}");
    assert!(html.contains("&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;"));
}
