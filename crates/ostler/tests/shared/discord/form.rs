//! The body of a request: JSON alone, or JSON with files as `multipart/form-data`.

use serde_json::Value;

use super::answer::Refusal;

/// The most that all files of a message may have together.
const FILES: usize = 10 * 1024 * 1024;

/// A body that was read.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) json: Value,
    pub(super) files: Vec<File>,
}

/// A file by the number that `attachments` call it.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Form {
    pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Self, Refusal> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        if content_type.starts_with("application/json") {
            return Ok(Self { json: json(body)?, files: Vec::new() });
        }
        let boundary = content_type
            .strip_prefix("multipart/form-data")
            .and_then(|rest| rest.split_once("boundary="))
            .map(|(_, boundary)| boundary.split(';').next().unwrap_or("").trim_matches('"'));
        let Some(boundary) = boundary else {
            let expected = "Expected \"Content-Type\" header to be one of \
                            {'application/json', 'multipart/form-data'}.";
            return Err(Refusal::form("", "CONTENT_TYPE_INVALID", expected));
        };
        multipart(boundary, body)
    }
}

fn json(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|_| Refusal::invalid_json())
}

fn multipart(boundary: &str, body: &[u8]) -> Result<Form, Refusal> {
    let mut form = Form::default();
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter has no line before it.
    let first = &delimiter.as_bytes()[2..];
    let mut rest = body.strip_prefix(first).ok_or_else(Refusal::invalid_json)?;
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let end = find(part, delimiter.as_bytes()).ok_or_else(Refusal::invalid_json)?;
        let (part, after) = part.split_at(end);
        rest = &after[delimiter.len()..];
        let head = find(part, b"\r\n\r\n").ok_or_else(Refusal::invalid_json)?;
        let (head, content) = (String::from_utf8_lossy(&part[..head]), &part[head + 4..]);
        let name = parameter(&head, "name").ok_or_else(Refusal::invalid_json)?;
        let number = name.strip_prefix("files[").and_then(|rest| rest.strip_suffix(']'));
        if name == "payload_json" {
            form.json = json(content)?;
        } else if let Some(number) = number.and_then(|number| number.parse().ok()) {
            let name = parameter(&head, "filename").unwrap_or_else(|| "unknown".to_owned());
            form.files.push(File { number, name, bytes: content.to_vec() });
        }
    }
    if form.files.iter().map(|file| file.bytes.len()).sum::<usize>() > FILES {
        return Err(Refusal::too_large());
    }
    if form.files.len() > 10 {
        return Err(Refusal::too_long("attachments", 10));
    }
    Ok(form)
}

/// Returns a parameter of `Content-Disposition`.
fn parameter(head: &str, name: &str) -> Option<String> {
    let line = head.lines().find(|line| line.to_lowercase().starts_with("content-disposition:"))?;
    let (_, rest) = line.split_once(&format!("; {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = bytes.get(from..)?.iter().position(|byte| *byte == first) {
        if bytes[from + at..].starts_with(wanted) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_from_the_payload() {
        let body = b"--B\r\nContent-Disposition: form-data; name=\"payload_json\"\r\n\
            Content-Type: application/json\r\n\r\n{\"content\":\"x\"}\r\n--B\r\n\
            Content-Disposition: form-data; name=\"files[3]\"; filename=\"a.bin\"\r\n\r\n\
            \r\n--A\r\n\r\n--B--\r\n";
        let form = Form::read("multipart/form-data; boundary=B", body).unwrap();
        assert_eq!(form.json["content"], "x");
        let [file] = form.files.as_slice() else { panic!("one file") };
        assert_eq!((file.number, file.name.as_str()), (3, "a.bin"));
        assert_eq!(file.bytes, b"\r\n--A\r\n");
    }
}
