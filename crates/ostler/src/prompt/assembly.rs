//! How sections become a text that is never longer than it may be. Pure.
//!
//! What does not fit is not silently gone: a file is cut and says so, a skill is
//! named with its path, so that the agent can read it when it needs it.

use std::path::Path;

use super::markdown::one_line;

/// The room that is kept for the list of what did not fit.
const LIST: usize = 4 * 1024;
/// Less of a file than this is not worth showing.
const LEAST: usize = 256;
/// How long a path or a description may be in the list, in characters.
const ENTRY: usize = 200;

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// Absent for a file that is the whole prompt by itself.
    pub(crate) title: Option<String>,
    /// What stands between the title and the text.
    pub(crate) note: Option<String>,
    /// What the file says, cleaned and not blank.
    pub(crate) text: String,
    /// Where it can be read.
    pub(crate) path: String,
    pub(crate) extent: Extent,
    pub(crate) want: Want,
}

/// How much of a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Its beginning.
    Cut,
    /// Its head, which says what it is about, and no more.
    Head,
}

/// What is done with a section that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// As much of it as possible is shown.
    Beginning,
    /// A half would mislead: it is only named.
    All,
}

/// Returns a path as it is shown to an agent.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}

/// Puts sections together, in their order; `None` if there is nothing to say.
pub(crate) fn assemble(sections: &[Section], limit: usize) -> Option<String> {
    let list_room = LIST.min(limit);
    let mut text = String::new();
    let mut left_out = Vec::new();
    for section in sections {
        let room = (limit - list_room).saturating_sub(text.len() + GAP.len());
        match fitting(section, room) {
            Some(fitting) => push(&mut text, &fitting),
            None => left_out.push(section),
        }
    }
    if let Some(list) = list(&left_out, list_room.saturating_sub(GAP.len())) {
        push(&mut text, &list);
    }
    Some(text).filter(|text| !text.is_empty())
}

/// What stands between two sections.
const GAP: &str = "\n\n";

fn push(text: &mut String, section: &str) {
    if !text.is_empty() {
        text.push_str(GAP);
    }
    text.push_str(section);
}

/// Returns what is shown of a section, if there is room for anything.
fn fitting(section: &Section, room: usize) -> Option<String> {
    if section.extent == Extent::Head {
        return None;
    }
    let is_cut = section.extent == Extent::Cut;
    let whole = written(section, &section.text, is_cut);
    if whole.len() <= room {
        return Some(whole);
    }
    if section.want == Want::All {
        return None;
    }
    let around = written(section, "", true).len();
    let room = room.checked_sub(around).filter(|room| *room >= LEAST)?;
    let beginning = section.text.get(..section.text.floor_char_boundary(room))?;
    Some(written(section, beginning, true))
}

fn written(section: &Section, text: &str, is_cut: bool) -> String {
    let title = section.title.as_ref().map(|title| format!("# {title}"));
    let cut = is_cut
        .then(|| format!("[This is only the beginning. The whole text is in {}]", section.path));
    let parts = [title.as_deref(), section.note.as_deref(), Some(text), cut.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(GAP)
}

/// Names what did not fit, as far as there is room for that.
fn list(left_out: &[&Section], room: usize) -> Option<String> {
    const HEAD: &str =
        "# Not shown\n\nThere was no room for these. Read them when you need them:\n";
    if left_out.is_empty() || room < HEAD.len() {
        return None;
    }
    let mut text = HEAD.to_owned();
    let mut n_named = 0;
    for section in left_out {
        let path = one_line(&section.path, ENTRY);
        let about = section.note.as_ref().or(section.title.as_ref());
        let about = about.map(|about| format!(": {}", one_line(about, ENTRY))).unwrap_or_default();
        let line = format!("\n- {path}{about}");
        let more = format!("\n- and {} more", left_out.len());
        if text.len() + line.len() + more.len() > room {
            break;
        }
        text.push_str(&line);
        n_named += 1;
    }
    let rest = left_out.len() - n_named;
    let more = format!("\n- and {rest} more");
    if rest > 0 && text.len() + more.len() <= room {
        text.push_str(&more);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn section(title: &str, text: &str) -> Section {
        Section {
            title: Some(title.to_owned()),
            note: None,
            text: text.to_owned(),
            path: format!("/p/{title}.md"),
            extent: Extent::Whole,
            want: Want::Beginning,
        }
    }

    fn skill(name: &str, text: &str) -> Section {
        let note = Some(format!("What {name} is for."));
        Section { note, want: Want::All, ..section(name, text) }
    }

    #[test]
    fn sections_come_with_their_titles_in_their_order() {
        let sections = [section("Identity", "I am Ada."), skill("tea", "Boil water.")];
        let text = assemble(&sections, 10_000).unwrap();
        assert_eq!(text, "# Identity\n\nI am Ada.\n\n# tea\n\nWhat tea is for.\n\nBoil water.");
        let alone = [Section { title: None, ..section("x", "Only this.") }];
        assert_eq!(assemble(&alone, 10_000).unwrap(), "Only this.");
        assert_eq!(assemble(&[], 10_000), None);
    }

    #[test]
    fn a_file_that_was_cut_says_where_the_rest_is() {
        let cut = Section { extent: Extent::Cut, ..section("Soul", "Be kind.") };
        let text = assemble(&[cut], 10_000).unwrap();
        assert_eq!(
            text,
            "# Soul\n\nBe kind.\n\n[This is only the beginning. The whole text is in /p/Soul.md]"
        );
    }

    #[test]
    fn what_does_not_fit_is_cut_or_named() {
        let sections = [
            section("Identity", &"é".repeat(4000)),
            skill("large", &"x".repeat(5000)),
            skill("small", "Boil water."),
            Section { extent: Extent::Head, ..skill("unread", "") },
        ];
        let text = assemble(&sections, LIST + 2000).unwrap();
        assert!(text.starts_with("# Identity\n\néé"), "{text}");
        assert!(text.contains("é\n\n[This is only the beginning"), "{text}");
        let list = text.split("# Not shown").nth(1).unwrap();
        for name in ["large", "small", "unread"] {
            assert!(list.contains(&format!("- /p/{name}.md: What {name} is for.")), "{list}");
        }
        // A small one still fits behind a large one that does not.
        let text = assemble(&sections[1..], LIST + 2000).unwrap();
        assert!(text.starts_with("# small"), "{text}");
    }

    #[test]
    fn of_very_many_that_do_not_fit_the_number_is_told() {
        let many: Vec<_> =
            (0..900).map(|number| skill(&format!("s{number}"), &"x".repeat(9000))).collect();
        let text = assemble(&many, LIST + 100).unwrap();
        assert!(text.len() <= LIST + 100);
        let named = text.matches("\n- /p/").count();
        assert!(text.ends_with(&format!("\n- and {} more", 900 - named)), "{text}");
    }

    proptest! {
        #[test]
        fn whatever_is_put_together_is_no_longer_than_it_may_be(
            parts in proptest::collection::vec(
                (any::<Option<String>>(), any::<Option<String>>(), "\\PC{0,600}", "\\PC{0,300}", 0_usize..6),
                0..20,
            ),
            limit in 0_usize..9000,
        ) {
            let sections: Vec<Section> = parts
                .into_iter()
                .map(|(title, note, text, path, sort)| Section {
                    title,
                    note,
                    text,
                    path,
                    extent: [Extent::Whole, Extent::Cut, Extent::Head][sort % 3],
                    want: [Want::Beginning, Want::All][sort % 2],
                })
                .collect();
            let text = assemble(&sections, limit).unwrap_or_default();
            prop_assert!(text.len() <= limit, "{} > {limit}", text.len());
        }
    }
}
