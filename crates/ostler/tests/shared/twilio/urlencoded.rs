//! Forms as `application/x-www-form-urlencoded`, in the order they have.

/// Writes a form.
pub(crate) fn encoded(params: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in params {
        if !text.is_empty() {
            text.push('&');
        }
        escape(name, &mut text);
        text.push('=');
        escape(value, &mut text);
    }
    text
}

fn escape(part: &str, into: &mut String) {
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                into.push(char::from(byte));
            }
            b' ' => into.push('+'),
            _ => into.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// Reads a form.
pub(super) fn decoded(form: &[u8]) -> Vec<(String, String)> {
    let pairs = form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    let pair = |pair: &[u8]| {
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        (plain(&pair[..at]), plain(pair.get(at + 1..).unwrap_or_default()))
    };
    pairs.map(pair).collect()
}

fn plain(part: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let [first, after @ ..] = rest {
        rest = after;
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, code.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_it_was_written() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let form =
            vec![pair("To", "whatsapp:+1"), pair("Body", "ein Roß & 100 % 🐎\n"), pair("Body", "")];
        let text = encoded(&form);
        assert_eq!(text, "To=whatsapp%3A%2B1&Body=ein+Ro%C3%9F+%26+100+%25+%F0%9F%90%8E%0A&Body=");
        assert_eq!(decoded(text.as_bytes()), form);
    }
}
