//! The OpenAPI document: what it says of the whole, and the finish that the parts
//! get when all are together. The operations document themselves.

use std::{io, sync::LazyLock};

use axum::http::StatusCode;
use utoipa::openapi::{
    InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Schema,
    path::{Operation, PathItem},
    security::{Http, HttpAuthScheme, SecurityScheme},
    tag::TagBuilder,
};

/// How keys, answers, pages and errors work.
const ABOUT: &str = include_str!("document/about.md");

/// The tags in the order in which people want to read them. One that is not here
/// comes after them.
const TAGS: [(&str, &str); 13] = [
    ("projects", "Folders in which agents work."),
    ("commands", "What is to be done in a project: prompts, and programs."),
    ("events", "What happens in a project, as it happens."),
    ("turns", "What agents did."),
    ("permissions", "What agents ask for before they do it."),
    ("agents", "Who can answer."),
    ("keys", "Who may call."),
    ("audit", "Who did what."),
    ("webhooks", "Calls to others when something happened."),
    ("media", "Files that answers send."),
    ("health", "Whether the gateway lives and is ready."),
    ("metrics", "Numbers for those who run it."),
    ("docs", "This document."),
];

/// Returns what the document says of the whole.
pub(super) fn about() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Ostler")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .build();
    let mut about = OpenApiBuilder::new().info(info).build();
    let mut key = Http::new(HttpAuthScheme::Bearer);
    key.description = Some("A key of `ostler keys create`, such as `ost_…`.".to_owned());
    let components = about.components.get_or_insert_default();
    components.add_security_scheme("key", SecurityScheme::Http(key));
    about
}

/// Returns the document as it is sent and kept: pretty, and always in the same order.
pub(crate) fn text() -> Result<&'static str, io::Error> {
    static TEXT: LazyLock<Result<String, String>> = LazyLock::new(|| {
        serde_json::to_string_pretty(&document()).map_err(|error| error.to_string())
    });
    TEXT.as_deref().map_err(|error| io::Error::other(error.as_str()))
}

/// Returns the whole document.
pub(super) fn document() -> OpenApi {
    let mut document = super::routes().into_openapi();
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            name(operation);
            explain(operation);
        }
    }
    let used = document.paths.paths.values_mut().flat_map(operations);
    let mut used: Vec<_> = used.filter_map(|operation| tag(operation).map(str::to_owned)).collect();
    used.sort_unstable_by_key(|tag| place(tag));
    used.dedup();
    let tags = used.into_iter().map(|name| {
        let about = TAGS.iter().find(|(tag, _)| *tag == name).map(|(_, about)| *about);
        TagBuilder::new().name(name).description(about).build()
    });
    document.tags = Some(tags.collect());
    document
}

/// Returns where a tag stands among the others.
fn place(tag: &str) -> (usize, String) {
    let known = TAGS.iter().position(|(name, _)| *name == tag);
    (known.unwrap_or(TAGS.len()), tag.to_owned())
}

fn tag(operation: &Operation) -> Option<&str> {
    operation.tags.as_ref()?.first().map(String::as_str)
}

/// Gives an operation a name that no other has: functions are called alike in
/// different files, such as `list`.
fn name(operation: &mut Operation) {
    if let (Some(tag), Some(function)) = (tag(operation), operation.operation_id.as_deref()) {
        let name = if tag == function { tag.to_owned() } else { format!("{tag}_{function}") };
        operation.operation_id = Some(name.replace('-', "_"));
    }
}

/// Says what answers mean that say it themselves: a document must have words for
/// all. All errors look alike, so that one schema is named instead of written out.
fn explain(operation: &mut Operation) {
    for (status, answer) in &mut operation.responses.responses {
        let RefOr::T(answer) = answer else { continue };
        for content in answer.content.values_mut() {
            if let RefOr::T(content) = content
                && let Some(RefOr::T(Schema::Object(object))) = &content.schema
                && object.properties.contains_key("error")
                && object.properties.contains_key("meta")
            {
                content.schema = Some(Ref::from_schema_name("ErrorBody").into());
            }
        }
        if answer.description.is_empty() {
            let status = status.parse::<StatusCode>().ok();
            let words = status.and_then(|status| status.canonical_reason());
            words.unwrap_or("An answer").clone_into(&mut answer.description);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, options, head, patch, trace, query, .. } = item;
    [get, put, post, delete, options, head, patch, trace, query].into_iter().flatten()
}

#[cfg(test)]
mod tests;
