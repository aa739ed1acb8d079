//! How the names of files end. Programs take a file for what its name ends in, and what
//! comes from some chats is called by a number alone. Pure.

use super::{kind, name};

/// How names of files of one kind end.
struct Endings {
    kind: &'static str,
    /// What is put behind a name that does not say what the file is.
    usual: &'static str,
    /// What says it as well.
    others: &'static [&'static str],
    lacking: Lacking,
}

/// Which names of a kind do not say what the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lacking {
    /// Those with another ending, and those with none.
    Another,
    /// Those with none: files that begin like these are of many kinds.
    Any,
}

/// What holds films and recordings of several kinds that begin alike.
const OF_MP4: &[&str] = &["mp4", "m4v", "m4a", "m4b", "m4r", "mov", "qt", "3gp", "3gpp", "3g2"];
const OF_3GP: &[&str] = &["3gpp", "3g2", "3gp", "3ga", "mp4", "m4a", "amr"];
const OF_WEBM: &[&str] = &["webm", "weba", "mkv", "mka"];

/// What is known. Texts are not in it: every program reads them, whatever they are called.
#[rustfmt::skip]
const TABLE: &[Endings] = &[
    always("image/png", "png", &["apng"]),
    always("image/jpeg", "jpg", &["jpeg", "jpe", "jfif"]),
    always("image/gif", "gif", &[]),
    always("image/webp", "webp", &[]),
    always("image/heic", "heic", &["heif", "avif"]),
    always("image/avif", "avif", &["heif"]),
    always("audio/wav", "wav", &["wave"]),
    always("audio/mp4", "m4a", OF_MP4),
    always("audio/3gpp", "3ga", OF_3GP),
    always("audio/webm", "weba", OF_WEBM),
    always("audio/ogg", "ogg", &["oga", "opus", "ogv", "ogx", "spx"]),
    always("audio/amr", "amr", &["awb", "3ga"]),
    always("audio/flac", "flac", &[]),
    always("audio/aac", "aac", &[]),
    always("audio/mpeg", "mp3", &["mp2", "mpga", "aac"]),
    always("video/mp4", "mp4", OF_MP4),
    always("video/3gpp", "3gp", OF_3GP),
    always("video/quicktime", "mov", OF_MP4),
    always("video/webm", "webm", OF_WEBM),
    always("application/pdf", "pdf", &[]),
    if_none("application/zip", "zip"),
    if_none("text/vcard", "vcf"),
];

const fn always(
    kind: &'static str,
    usual: &'static str,
    others: &'static [&'static str],
) -> Endings {
    Endings { kind, usual, others, lacking: Lacking::Another }
}

const fn if_none(kind: &'static str, usual: &'static str) -> Endings {
    Endings { kind, usual, others: &[], lacking: Lacking::Any }
}

/// Returns what a file is called that came under a harmless name, is of a kind, and is
/// said to be of another: the same, or with the ending of its kind behind it. What is
/// said counts where neither name nor content say more.
pub(crate) fn named(name: &str, kind: &str, said: Option<&str>) -> String {
    let ending = of(name);
    if ending.is_none()
        && let Some(exact) = kind::ending_of(kind, said)
    {
        return with(name, exact);
    }
    let says_it = |it: &Endings| {
        ending.as_deref().is_some_and(|ending| {
            it.lacking == Lacking::Any || it.usual == ending || it.others.contains(&ending)
        })
    };
    match TABLE.iter().find(|it| it.kind == kind && !says_it(it)) {
        Some(it) => with(name, it.usual),
        None => name.to_owned(),
    }
}

/// Returns everything that a file may be called that came under a harmless name.
pub(crate) fn possible(name: &str) -> impl Iterator<Item = String> {
    let others = TABLE.iter().map(|it| it.usual).chain(kind::exact_endings());
    [name.to_owned()].into_iter().chain(others.map(move |ending| with(name, ending)))
}

/// Returns how a name ends, in small letters, if it has an ending.
pub(crate) fn of(name: &str) -> Option<String> {
    name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase())
}

/// Puts an ending behind a name, which stays harmless.
fn with(name: &str, ending: &str) -> String {
    name::harmless(&format!("{name}.{ending}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

    #[test]
    fn what_is_said_counts_where_nothing_else_says_more() {
        for (name, kind, said, becomes) in [
            ("ME0123", "application/zip", WORD, "ME0123.docx"),
            ("ME0123", "text/plain", "Text/CSV; charset=utf-8", "ME0123.csv"),
            ("offer.docm", "application/zip", WORD, "offer.docm"),
            ("ME0123", "image/png", WORD, "ME0123.png"),
            ("ME0123", "application/zip", "application/x-msdownload", "ME0123.zip"),
            ("ME0123", "text/plain", WORD, "ME0123"),
        ] {
            assert_eq!(named(name, kind, Some(said)), becomes, "{said}");
        }
    }

    #[test]
    fn a_name_without_an_ending_gets_that_of_what_is_in_the_file() {
        for (kind, becomes) in [
            ("image/png", "ME0123.png"),
            ("image/jpeg", "ME0123.jpg"),
            ("audio/ogg", "ME0123.ogg"),
            ("audio/3gpp", "ME0123.3ga"),
            ("video/mp4", "ME0123.mp4"),
            ("application/pdf", "ME0123.pdf"),
            ("application/zip", "ME0123.zip"),
            ("text/vcard", "ME0123.vcf"),
            ("text/plain", "ME0123"),
            ("application/octet-stream", "ME0123"),
        ] {
            assert_eq!(named("ME0123", kind, None), becomes);
        }
    }

    #[test]
    fn a_name_that_says_what_the_file_is_stays_as_it_is() {
        for (name, kind) in [
            ("chart.png", "image/png"),
            ("chart.PNG", "image/png"),
            ("me.jpeg", "image/jpeg"),
            ("voice.opus", "audio/ogg"),
            ("voice.mp4", "audio/mp4"),
            ("film.mkv", "video/webm"),
            ("Makefile", "text/plain"),
            ("notes.md", "text/plain"),
            // Files of many kinds are ZIP inside, and their names tell them apart.
            ("report.docx", "application/zip"),
        ] {
            assert_eq!(named(name, kind, None), name, "{kind}");
        }
    }

    #[test]
    fn a_picture_a_recording_a_film_and_a_pdf_are_called_what_they_are() {
        for (name, kind, becomes) in [
            ("run.exe", "image/png", "run.exe.png"),
            ("photo.jpg", "image/webp", "photo.jpg.webp"),
            ("notes.txt", "audio/ogg", "notes.txt.ogg"),
            ("page.html", "video/mp4", "page.html.mp4"),
            ("offer_1.2", "application/pdf", "offer_1.2.pdf"),
        ] {
            assert_eq!(named(name, kind, None), becomes);
        }
    }

    #[test]
    fn a_long_name_makes_room_for_its_ending() {
        let long = name::harmless(&"x".repeat(5000));
        let named = named(&long, "image/png", None);
        assert_eq!((named.len(), named.ends_with("x.png")), (long.len(), true), "{named}");
    }

    proptest! {
        #[test]
        fn a_name_stays_harmless_says_what_the_file_is_and_can_be_found(
            name in "(?s).{0,120}",
            kind in proptest::sample::select(TABLE.iter().map(|it| it.kind).collect::<Vec<_>>()),
            said in proptest::sample::select(&[None, Some(WORD), Some("image/png")][..]),
        ) {
            let name = name::harmless(&name);
            let becomes = named(&name, kind, said);
            prop_assert_eq!(&name::harmless(&becomes), &becomes);
            prop_assert_eq!(&named(&becomes, kind, said), &becomes);
            prop_assert!(of(&becomes).is_some());
            prop_assert!(possible(&name).any(|it| it == becomes));
        }
    }
}
