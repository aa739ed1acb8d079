//! What a file is, by what is in it. A name says what somebody wants it to be. Pure.

use super::ending;

/// How much of the beginning of a file is looked at, in bytes.
pub(crate) const HEAD: usize = 1024;

/// What is said of a file of which nothing is known.
const UNKNOWN: &str = "application/octet-stream";

/// How files of one sort begin.
struct Magic {
    kind: &'static str,
    /// Bytes, and where they stand.
    parts: &'static [(usize, &'static [u8])],
}

/// What is known, the more exact before the less exact.
#[rustfmt::skip]
const TABLE: &[Magic] = &[
    magic("image/png", &[(0, b"\x89PNG\r\n\x1a\n")]),
    magic("image/jpeg", &[(0, b"\xff\xd8\xff")]),
    magic("image/gif", &[(0, b"GIF87a")]),
    magic("image/gif", &[(0, b"GIF89a")]),
    magic("image/webp", &[(0, b"RIFF"), (8, b"WEBP")]),
    magic("audio/wav", &[(0, b"RIFF"), (8, b"WAVE")]),
    magic("application/pdf", &[(0, b"%PDF-")]),
    magic("audio/mp4", &[(4, b"ftypM4A ")]),
    magic("audio/mp4", &[(4, b"ftypM4B ")]),
    magic("video/3gpp", &[(4, b"ftyp3g")]),
    magic("image/heic", &[(4, b"ftyphei")]),
    magic("image/heic", &[(4, b"ftypmif1")]),
    magic("image/avif", &[(4, b"ftypavif")]),
    magic("video/quicktime", &[(4, b"ftypqt  ")]),
    magic("video/mp4", &[(4, b"ftyp")]),
    magic("audio/ogg", &[(0, b"OggS")]),
    magic("audio/amr", &[(0, b"#!AMR")]),
    magic("audio/flac", &[(0, b"fLaC")]),
    magic("audio/aac", &[(0, b"\xff\xf1")]),
    magic("audio/aac", &[(0, b"\xff\xf9")]),
    magic("audio/mpeg", &[(0, b"ID3")]),
    magic("audio/mpeg", &[(0, b"\xff\xfb")]),
    magic("audio/mpeg", &[(0, b"\xff\xf3")]),
    magic("audio/mpeg", &[(0, b"\xff\xf2")]),
    magic("video/webm", &[(0, b"\x1a\x45\xdf\xa3")]),
    magic("application/zip", &[(0, b"PK\x03\x04")]),
    magic("application/zip", &[(0, b"PK\x05\x06")]),
    magic("application/x-ole-storage", &[(0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")]),
    magic("text/vcard", &[(0, b"BEGIN:VCARD")]),
];

const fn magic(kind: &'static str, parts: &'static [(usize, &'static [u8])]) -> Magic {
    Magic { kind, parts }
}

/// Returns the media type of a file that begins with these bytes: all of it, or
/// the first [`HEAD`] bytes.
pub(crate) fn of(start: &[u8]) -> &'static str {
    let begins =
        |(at, bytes): &(usize, &[u8])| start.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    match TABLE.iter().find(|magic| magic.parts.iter().all(begins)) {
        Some(magic) => magic.kind,
        None if is_text(start) => "text/plain",
        None => UNKNOWN,
    }
}

/// Files that begin like others, by how their names end.
#[rustfmt::skip]
const NAMED: &[(&str, &str, &str)] = &[
    ("application/zip", "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("application/zip", "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("application/zip", "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("application/x-ole-storage", "doc", "application/msword"),
    ("text/plain", "csv", "text/csv"),
    ("text/plain", "ics", "text/calendar"),
    ("text/plain", "rtf", "text/rtf"),
];

/// Files that hold films or recordings and begin alike: what they are taken for, and
/// what they are if they are said to be recordings.
const RECORDED: [(&str, &str); 3] =
    [("video/mp4", "audio/mp4"), ("video/3gpp", "audio/3gpp"), ("video/webm", "audio/webm")];
/// How the names of recordings of those sorts end.
const RECORDINGS: [&str; 3] = ["m4a", "3ga", "weba"];

/// Returns the media type of a file that came, which begins with these bytes. What it
/// holds says what it is; only whether there is nothing but sound in it, its beginning
/// does not tell, and so its name does, or the type that it was said to be of.
pub(crate) fn of_received(start: &[u8], name: &str, said: Option<&str>) -> &'static str {
    let kind = of(start);
    let is_recording = said.is_some_and(|said| Sort::of(said) == Sort::Audio)
        || ending::of(name).is_some_and(|ending| RECORDINGS.contains(&ending.as_str()));
    let is_it = |(film, _): &&(&str, &str)| is_recording && *film == kind;
    RECORDED.iter().find(is_it).map_or(kind, |(_, recording)| *recording)
}

/// Returns the media type of a file that begins with these bytes, where its name says
/// more than they do.
pub(crate) fn of_named(start: &[u8], name: &str) -> &'static str {
    let kind = of(start);
    let ending = ending::of(name);
    let is_it = |(of, end, _): &&(&str, &str, &str)| *of == kind && ending.as_deref() == Some(*end);
    NAMED.iter().find(is_it).map_or(kind, |(_, _, exact)| *exact)
}

/// Returns how the name of a file of a kind ends that is said to be of a more exact one,
/// where its content does not tell.
pub(super) fn ending_of(kind: &str, said: Option<&str>) -> Option<&'static str> {
    let said = said?.split(';').next()?.trim();
    let is_it =
        |(of, _, exact): &&(&str, &str, &str)| *of == kind && said.eq_ignore_ascii_case(exact);
    NAMED.iter().find(is_it).map(|(_, ending, _)| *ending)
}

/// Returns all these endings.
pub(super) fn exact_endings() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(_, ending, _)| *ending)
}

/// The sorts of files that have a limit of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Image,
    Audio,
    Video,
    /// Everything else.
    Document,
}

impl Sort {
    /// Returns the sort of a media type.
    pub(crate) fn of(kind: &str) -> Self {
        let sort = kind.split_once('/').map(|(sort, _)| sort.to_ascii_lowercase());
        match sort.as_deref() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            Some("video") => Self::Video,
            Some(_) | None => Self::Document,
        }
    }
}

fn is_text(start: &[u8]) -> bool {
    let text = match str::from_utf8(start) {
        Ok(text) => text,
        // The end of what was read may go through a character.
        Err(error) if error.error_len().is_none() && start.len() >= HEAD => {
            let whole = start.get(..error.valid_up_to()).unwrap_or_default();
            str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.contains(|c: char| c.is_control() && !"\t\n\r\x0c\x1b".contains(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_is_what_it_contains() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\n\0\0"[..], "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"GIF89a..", "image/gif"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
            (b"RIFF\x10\0\0\0AVI LIST", UNKNOWN),
            (b"%PDF-1.7\n%\xe2\xe3", "application/pdf"),
            (b"\0\0\0\x20ftypisom\0\0\x02\0", "video/mp4"),
            (b"\0\0\0\x20ftypM4A \0\0\x02\0", "audio/mp4"),
            (b"\0\0\0\x20ftypheic\0\0\x02\0", "image/heic"),
            (b"OggS\0\x02", "audio/ogg"),
            (b"ID3\x04\0", "audio/mpeg"),
            (b"#!AMR\n\x3c", "audio/amr"),
            (b"#!AMR-WB\n", "audio/amr"),
            (b"fLaC\0", "audio/flac"),
            (b"\xff\xf1\x50", "audio/aac"),
            (b"\0\0\0\x20ftyp3gp5\0", "video/3gpp"),
            (b"\x1a\x45\xdf\xa3\x9f", "video/webm"),
            (b"BEGIN:VCARD\r\n", "text/vcard"),
            (b"\xff\xfb\x90\x44", "audio/mpeg"),
            (b"PK\x03\x04\x14\0", "application/zip"),
            (b"\x7fELF\x02\x01", UNKNOWN),
            (b"#!/bin/sh\n\techo \x1b[1m", "text/plain"),
            ("größe\r\n".as_bytes(), "text/plain"),
            (b"caf\xe9", UNKNOWN),
            (b"a\0b", UNKNOWN),
            (b"", "text/plain"),
        ] {
            assert_eq!(of(bytes), kind, "{bytes:?}");
        }
    }

    #[test]
    fn a_text_that_is_cut_within_a_character_is_a_text() {
        let long = "é".repeat(HEAD);
        assert_eq!(of(&long.as_bytes()[..HEAD]), "text/plain");
        assert_eq!(of(&format!("x{long}").as_bytes()[..HEAD]), "text/plain");
        assert_eq!(of(&long.as_bytes()[..3]), UNKNOWN);
    }

    #[test]
    fn a_file_has_the_limit_of_its_sort() {
        for (bytes, sort) in [
            (&b"GIF89a"[..], Sort::Image),
            (b"OggS", Sort::Audio),
            (b"\0\0\0\x20ftypisom", Sort::Video),
            (b"%PDF-1.7", Sort::Document),
            (b"hello", Sort::Document),
            (b"\x7fELF", Sort::Document),
        ] {
            assert_eq!(Sort::of(of(bytes)), sort, "{bytes:?}");
        }
    }

    #[test]
    fn a_name_says_more_only_of_what_begins_alike() {
        let word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        assert_eq!(of_named(b"PK\x03\x04", "a.DOCX"), word);
        assert_eq!(of_named(b"PK\x03\x04", "a.zip"), "application/zip");
        assert_eq!(of_named(b"\x89PNG\r\n\x1a\n", "a.docx"), "image/png");
        assert_eq!(of_named(b"a;b", "a.csv"), "text/csv");
        assert_eq!(of_named(b"\x7fELF", "a.csv"), UNKNOWN);
    }

    #[test]
    fn what_was_said_of_a_file_tells_recordings_from_films_and_nothing_else() {
        let mp42: &[u8] = b"\0\0\0\x20ftypmp42\0\0\x02\0";
        let (threegp, webm): (&[u8], &[u8]) = (b"\0\0\0\x20ftyp3gp4", b"\x1a\x45\xdf\xa3");
        let png: &[u8] = b"\x89PNG\r\n\x1a\n";
        for (start, name, said, kind) in [
            (mp42, "voice.mp4", Some("audio/mp4"), "audio/mp4"),
            (mp42, "voice.M4A", None, "audio/mp4"),
            (mp42, "voice.mp4", Some("video/mp4"), "video/mp4"),
            (mp42, "voice.mp4", None, "video/mp4"),
            (threegp, "voice.3ga", None, "audio/3gpp"),
            (threegp, "voice", Some("Audio/3gpp; codecs=samr"), "audio/3gpp"),
            (threegp, "film.3gp", None, "video/3gpp"),
            (webm, "voice.weba", None, "audio/webm"),
            (webm, "film.webm", Some("application/octet-stream"), "video/webm"),
            (png, "voice.m4a", Some("audio/mp4"), "image/png"),
            (b"\x7fELF", "voice.m4a", Some("audio/mp4"), UNKNOWN),
            (b"OggS", "film.mp4", Some("video/mp4"), "audio/ogg"),
        ] {
            assert_eq!(of_received(start, name, said), kind, "{name} {said:?}");
        }
        // What goes out is offered as what more services take.
        assert_eq!(of_named(mp42, "song.m4a"), "video/mp4");
    }

    proptest! {
        #[test]
        fn any_file_has_a_type(bytes: Vec<u8>) {
            prop_assert!(of(&bytes).contains('/'));
        }
    }
}
