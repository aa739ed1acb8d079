//! Names of files that others chose, made harmless. Pure.

use reqwest::Url;

use crate::unruly::is_unruly;

/// The longest name, in bytes.
const LONGEST: usize = 100;
/// The longest ending that is kept when a name is cut.
const EXTENSION: usize = 10;
/// What a file is called whose name has nothing to keep.
const NAMELESS: &str = "file";
/// Names that are devices on some systems, whatever their ending.
const RESERVED: [&str; 22] = [
    "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8",
    "COM9", "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
];

/// Returns the name of the file at a URL, made harmless.
pub(crate) fn of_url(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    harmless(&decoded(last))
}

/// Returns a name that is a name and nothing else: no path, nothing hidden, no
/// option, nothing that is shown otherwise than it is, and not too long.
pub(crate) fn harmless(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    // There are letters that nobody sees.
    let is_letter = |c: char| c.is_alphanumeric() && !is_unruly(c);
    let is_plain = |c: char| is_letter(c) || ['.', '-', '_'].contains(&c);
    let name: String = name
        .chars()
        .filter(|c| !c.is_control())
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    let name = name.trim_start_matches(['.', '-']).trim_end_matches('.');
    if !name.contains(char::is_alphanumeric) {
        return NAMELESS.to_owned();
    }
    let stem = name.split('.').next().unwrap_or_default();
    let is_reserved = RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(stem));
    let name = if is_reserved { format!("_{name}") } else { name.to_owned() };
    if name.len() <= LONGEST {
        return name;
    }
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, end)) if is_extension(end) => (stem, format!(".{end}")),
        Some(_) | None => (name.as_str(), String::new()),
    };
    let end = stem.floor_char_boundary(LONGEST - extension.len());
    let stem = stem.get(..end).unwrap_or_default().trim_end_matches('.');
    format!("{stem}{extension}")
}

fn is_extension(text: &str) -> bool {
    (1..=EXTENSION).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Resolves `%20` and the like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        if let (b'%', [high, low, after @ ..]) = (first, behind)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            bytes.push(high * 16 + low);
            rest = after;
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hostile_name_becomes_a_harmless_one() {
        for (name, becomes) in [
            ("photo.png", "photo.png"),
            ("../../etc/passwd", "passwd"),
            ("/etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("a/b/", "file"),
            ("a\u{202e}gpj.exe", "a_gpj.exe"),
            ("a\u{200b}\u{2066}b.txt", "a__b.txt"),
            ("a\u{3164}\u{115f}b\u{1160}.txt", "a__b_.txt"),
            ("\u{ffa0}\u{17b4}", "file"),
            (".", "file"),
            ("..", "file"),
            ("...", "file"),
            ("", "file"),
            ("_", "file"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("a\nb\0c\u{1b}.txt", "abc.txt"),
            ("my file [1], so.png", "my_file__1___so.png"),
            ("größe.jpg", "größe.jpg"),
            ("CON", "_CON"),
            ("nul.tar.gz", "_nul.tar.gz"),
            ("com10.txt", "com10.txt"),
            ("end. . .", "end._._"),
        ] {
            assert_eq!(harmless(name), becomes, "{name:?}");
        }
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_a_plain_ending() {
        let long = "ü".repeat(5000);
        let cut = harmless(&format!("{long}.jpeg"));
        assert!(cut.len() <= LONGEST && cut.ends_with("ü.jpeg"), "{cut}");
        assert_eq!(harmless(&"x".repeat(5000)).len(), LONGEST);
        assert_eq!(harmless(&format!("a.{}", "x".repeat(5000))).len(), LONGEST);
    }

    #[test]
    fn the_name_of_a_url_is_its_last_part() {
        for (url, name) in [
            ("https://cdn.example/attachments/1/2/my%20photo.png?ex=a/b#c", "my_photo.png"),
            ("https://cdn.example/..%2f..%2fetc%2fpasswd", "passwd"),
            ("https://cdn.example/a%E2%80%AEgpj.exe", "a_gpj.exe"),
            ("https://cdn.example/100%25%", "100__"),
            ("https://cdn.example/%ff%zz", "__zz"),
            ("https://cdn.example/", "file"),
            ("https://cdn.example", "file"),
        ] {
            assert_eq!(of_url(&Url::parse(url).unwrap()), name, "{url}");
        }
    }

    proptest! {
        #[test]
        fn any_name_becomes_one_that_stays_as_it_is(name in "(?s).{0,300}") {
            let becomes = harmless(&name);
            prop_assert!((1..=LONGEST).contains(&becomes.len()));
            prop_assert!(!becomes.starts_with(['.', '-']));
            let is_letter = |c: char| c.is_alphanumeric() && !is_unruly(c);
            let is_good = |c: char| is_letter(c) || "._-".contains(c);
            prop_assert!(becomes.chars().all(is_good), "{:?}", becomes);
            prop_assert_eq!(harmless(&becomes), becomes);
        }
    }
}
