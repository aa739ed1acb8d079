//! The page: a list of what there is beside the operations, grouped by tag, and
//! the schemas after them.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    html::{anchor, code, escape},
    markdown, sample,
    schema::{fields, row, shape},
    source::{content, data_of, name_of, schemas},
};

const STYLE: &str = include_str!("style.css");
/// In the order in which they are told.
const METHODS: [&str; 8] = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];

/// An operation and where it is.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    of: &'a Value,
}

/// Returns the page of a document, and the name of its style for the policy of
/// what it may load.
pub(super) fn page(document: &Value) -> (String, String) {
    let operations = operations(document);
    let tags = document["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
    let groups = tags.iter().map(|tag| {
        let name = tag["name"].as_str().unwrap_or_default();
        let has_it = |operation: &&Operation<'_>| {
            operation.of.pointer("/tags/0").is_some_and(|tag| tag == name)
        };
        (name, tag, operations.iter().filter(has_it).collect::<Vec<_>>())
    });
    let (mut list, mut body) = (String::new(), String::new());
    for (name, tag, operations) in groups {
        let id = anchor(name);
        list.push_str(&format!("<h2><a href=\"#tag-{id}\">{}</a></h2><ul>", escape(name)));
        body.push_str(&format!("<section id=\"tag-{id}\"><h2>{}</h2>", escape(name)));
        body.push_str(&text(&tag["description"]));
        for operation in operations {
            list.push_str(&operation.entry());
            body.push_str(&operation.article(document));
        }
        list.push_str("</ul>");
        body.push_str("</section>");
    }
    let info = &document["info"];
    let (title, version) = (info["title"].as_str(), info["version"].as_str());
    let (title, version) = (title.unwrap_or_default(), version.unwrap_or_default());
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width\">\
         <meta name=color-scheme content=\"light dark\"><title>{title}</title>\
         <style>{STYLE}</style>\
         <nav><a class=home href=\"#top\">{title}</a> <small>{version}</small>\
         <p><a href=\"/openapi.json\">openapi.json</a></p>{list}\
         <h2><a href=\"#schemas\">schemas</a></h2></nav>\
         <main id=top><h1>{title} <small>{version}</small></h1><div class=about>{about}</div>\
         {body}<section id=schemas><h2>schemas</h2>{schemas}</section></main></html>\n",
        title = escape(title),
        version = escape(version),
        about = text(&info["description"]),
        schemas = all_schemas(document),
    );
    (html, format!("sha256-{}", base64(&Sha256::digest(STYLE.as_bytes()))))
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        let there = METHODS.iter().filter_map(|method| Some((*method, item.get(*method)?)));
        there.map(|(method, of)| Operation { method, path, of })
    });
    all.collect()
}

/// Returns the schemas that are not only around others.
fn all_schemas(document: &Value) -> String {
    let named = schemas(document).into_iter().flatten();
    let told = named.filter(|(_, schema)| data_of(document, schema).is_none());
    let told = told.map(|(name, schema)| {
        format!(
            "<article id=\"schema-{}\"><h3>{}</h3>{}{}</article>",
            anchor(name),
            code(name),
            text(&schema["description"]),
            fields(document, schema)
        )
    });
    told.collect()
}

/// Returns a description as HTML.
fn text(description: &Value) -> String {
    description.as_str().map(markdown::render).unwrap_or_default()
}

impl Operation<'_> {
    fn id(&self) -> String {
        anchor(&format!("{}{}", self.method, self.path))
    }

    fn summary(&self) -> String {
        escape(self.of["summary"].as_str().unwrap_or_default())
    }

    /// Returns its line in the list.
    fn entry(&self) -> String {
        let Self { method, path, .. } = self;
        format!(
            "<li><a href=\"#{}\"><i class={method}>{method}</i> {}</a></li>",
            self.id(),
            escape(path)
        )
    }

    fn article(&self, document: &Value) -> String {
        let Self { method, path, of } = self;
        let scopes = match self.scopes() {
            Some(scopes) => format!("<p class=scope>a key with {scopes}</p>"),
            None => "<p class=scope>no key is needed</p>".to_owned(),
        };
        format!(
            "<article id=\"{id}\"><h3><i class={method}>{method}</i> {path} \
             <span>{summary}</span></h3>{scopes}{about}{parameters}{body}{answers}\
             <pre>{curl}</pre></article>",
            id = self.id(),
            path = code(path),
            summary = self.summary(),
            about = text(&of["description"]),
            parameters = self.parameters(document),
            body = self.body(document),
            answers = self.answers(document),
            curl = escape(&sample::curl(document, method, path, of)),
        )
    }

    fn scopes(&self) -> Option<String> {
        let wanted = self.of["security"].as_array()?.iter();
        let scopes = wanted.filter_map(|one| one["key"].as_array()).flatten();
        let scopes: Vec<_> = scopes.filter_map(Value::as_str).map(code).collect();
        Some(if scopes.is_empty() { "any scope".to_owned() } else { scopes.join(" ") })
    }

    fn parameters(&self, document: &Value) -> String {
        let Some(parameters) = self.of["parameters"].as_array() else { return String::new() };
        let rows = parameters.iter().map(|parameter| {
            let name = parameter["name"].as_str().unwrap_or_default();
            let name = match parameter["in"].as_str() {
                Some("query") => format!("?{name}="),
                Some("header") => format!("{name}:"),
                _ => format!("{{{name}}}"),
            };
            let is_required = parameter["required"] == true;
            row(document, &name, &parameter["schema"], is_required, &parameter["description"])
        });
        format!("<h4>parameters</h4><table class=fields>{}</table>", rows.collect::<String>())
    }

    fn body(&self, document: &Value) -> String {
        let Some((sort, schema)) = content(&self.of["requestBody"]) else { return String::new() };
        format!("<h4>body <small>{}</small></h4>{}", escape(sort), fields(document, schema))
    }

    /// Returns the answers, each with what is in it, and the errors in one line.
    fn answers(&self, document: &Value) -> String {
        let (mut rows, mut errors) = (String::new(), Vec::new());
        for (status, answer) in self.of["responses"].as_object().into_iter().flatten() {
            let content = content(answer);
            if content.and_then(|(_, schema)| name_of(schema)) == Some("ErrorBody") {
                errors.push(code(status));
                continue;
            }
            let shape = match content {
                Some(("application/json", schema)) => shape(document, schema),
                Some((sort, _)) => escape(sort),
                None => String::new(),
            };
            let about = text(&answer["description"]);
            let inner =
                content.map(|(_, schema)| written_out(document, schema)).unwrap_or_default();
            rows.push_str(&format!(
                "<tr><td>{}</td><td><span class=type>{shape}</span>{about}{inner}</td></tr>",
                code(status)
            ));
        }
        if !errors.is_empty() {
            rows.push_str(&format!(
                "<tr><td>errors</td><td>{} · <a href=\"#schema-ErrorBody\">ErrorBody</a></td></tr>",
                errors.join(" ")
            ));
        }
        format!("<h4>answers</h4><table class=fields>{rows}</table>")
    }
}

/// Returns the fields of what is in an answer, unless it has a name, by which they
/// are found.
fn written_out(document: &Value, schema: &Value) -> String {
    let data = data_of(document, schema).unwrap_or(schema);
    let data = if data["items"].is_object() { &data["items"] } else { data };
    if data["properties"].is_object() { fields(document, data) } else { String::new() }
}

/// Returns bytes as the policy names them.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks(3).flat_map(|group| {
        let bits = (0..3).fold(0, |bits, place| {
            bits << 8 | usize::from(group.get(place).copied().unwrap_or_default())
        });
        let letters = [18, 12, 6, 0].map(|shift| LETTERS.get(bits >> shift & 63));
        let used = group.len() + 1;
        let letter = move |(place, letter): (usize, Option<&u8>)| {
            letter.filter(|_| place < used).map_or('=', |letter| char::from(*letter))
        };
        letters.into_iter().enumerate().map(letter)
    });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_named_as_everywhere() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
