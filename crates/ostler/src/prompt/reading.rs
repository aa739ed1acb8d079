//! Reads a folder of prompt files: which of them count this time, and what each
//! of them comes to. Blocks; whatever lies there, it ends and never fails.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    assembly::{Extent, Section, Want, shown},
    file,
    markdown::{clean, front_matter, one_line, without_title},
    table::{FILES, File, Occasion, Place, SKILL, SKILLS},
};

/// The most that counts of a file, in bytes.
pub(crate) const LONGEST_FILE: usize = 64 * 1024;
/// The longest text that is made, in bytes. As a setting of Codex, where quotes
/// and line ends become two characters, it still is below the 128 KiB that the
/// kernel takes for an argument.
pub(crate) const LONGEST: usize = 96 * 1024;
/// How much is read of skills for which there is no room.
const HEAD: usize = 4 * 1024;
/// How many skills are looked at.
const MOST_SKILLS: usize = 256;
/// How many entries of a folder are looked at.
const MOST_ENTRIES: usize = 100_000;

/// What a folder says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// What goes into the system prompt.
    pub(crate) system: Vec<Section>,
    /// What goes before the prompt of this turn only.
    pub(crate) before: Vec<Section>,
    pub(crate) troubles: Vec<Trouble>,
}

/// Something that is not used, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trouble {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// Reads a folder. One that is not there says nothing.
pub(crate) fn read(folder: &Path, occasion: Occasion) -> Found {
    let mut reader = Reader { folder, names: Vec::new(), troubles: Vec::new(), left: LONGEST };
    reader.names = reader.entries(folder);
    let mut system = reader.sections(Place::Persona);
    let mut guide = reader.sections(Place::Guide);
    if system.is_empty() {
        // One file that says everything needs no title.
        let alone = reader.sections(Place::Alone).pop().or(guide.pop());
        system.extend(alone.map(|section| Section { title: None, ..section }));
    } else {
        system.extend(guide);
    }
    system.extend(reader.sections(Place::Memory));
    system.extend(reader.skills());
    // Last: what counts at times must not take room from what always counts, or
    // the system prompt of a session would change from turn to turn.
    let mut before = Vec::new();
    for place in [Place::Boot, Place::Heartbeat] {
        if place.applies(occasion) {
            before.extend(reader.sections(place));
        }
    }
    Found { system, before, troubles: reader.troubles }
}

struct Reader<'a> {
    folder: &'a Path,
    /// What is in the folder.
    names: Vec<OsString>,
    troubles: Vec<Trouble>,
    /// How much room there still may be, in bytes.
    left: usize,
}

impl Reader<'_> {
    /// Returns what the files of a place say, in the order of the table.
    fn sections(&mut self, place: Place) -> Vec<Section> {
        let files = FILES.iter().filter(|file| file.place == place);
        files.filter_map(|file| self.section(file)).collect()
    }

    fn section(&mut self, file: &File) -> Option<Section> {
        let path = self.find(file.name)?;
        let read = self.text(&path, LONGEST_FILE)?;
        let text = clean(&read.text);
        let text = without_title(&text, file.title).to_owned();
        if text.is_empty() {
            return None;
        }
        let extent = if read.is_cut { Extent::Cut } else { Extent::Whole };
        // An agent cannot be told a path that is no text.
        let is_its_own = file.place == Place::Memory && !read.is_read_only;
        let note = path.to_str().filter(|_| is_its_own).map(|_| {
            format!(
                "This is what you remember. It is kept in the file {}, which you may change: what \
                 it says counts from the next message on. Keep it short and true.",
                shown(&path)
            )
        });
        let title = Some(file.title.to_owned());
        Some(Section { title, note, text, path: shown(&path), extent, want: Want::Beginning })
    }

    /// Returns the path of a file, whose name may be in capitals or not.
    fn find(&mut self, name: &str) -> Option<PathBuf> {
        let (found, others) = pick(&self.names, name)?;
        for other in others {
            let why = format!("{} counts instead", Path::new(&found).display());
            self.troubles.push(Trouble { path: self.folder.join(other), why });
        }
        Some(self.folder.join(found))
    }

    /// Reads a file, if that can be done.
    fn text(&mut self, path: &Path, limit: usize) -> Option<file::Text> {
        match file::text(path, limit) {
            Ok(read) => {
                if read.is_cut && limit == LONGEST_FILE {
                    let why = format!("only its first {limit} bytes are used");
                    self.troubles.push(Trouble { path: path.to_owned(), why });
                }
                self.left = self.left.saturating_sub(read.text.len());
                Some(read)
            }
            Err(why) => {
                self.troubles.push(Trouble { path: path.to_owned(), why });
                None
            }
        }
    }

    /// Returns the names in a folder, sorted.
    fn entries(&mut self, folder: &Path) -> Vec<OsString> {
        let trouble = |error: io::Error| Trouble {
            path: folder.to_owned(),
            why: format!("the folder cannot be read: {error}"),
        };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                self.troubles.push(trouble(error));
                return Vec::new();
            }
        };
        let mut names = Vec::new();
        for entry in entries.take(MOST_ENTRIES) {
            match entry {
                Ok(entry) => names.push(entry.file_name()),
                Err(error) => {
                    self.troubles.push(trouble(error));
                    break;
                }
            }
        }
        names.sort_unstable();
        names
    }

    /// Returns the skills, by the names of their folders.
    fn skills(&mut self) -> Vec<Section> {
        let Some(folder) = self.find(SKILLS) else { return Vec::new() };
        let names = self.entries(&folder);
        // What is hidden is somebody else's; files beside the folders are notes.
        let is_hidden = |name: &OsString| name.as_encoded_bytes().starts_with(b".");
        let names = names.into_iter().filter(|name| !is_hidden(name));
        let mut skills: Vec<_> =
            names.map(|name| folder.join(name)).filter(|path| !path.is_file()).collect();
        if skills.len() > MOST_SKILLS {
            let why = format!("of {} skills only the first {MOST_SKILLS} count", skills.len());
            self.troubles.push(Trouble { path: folder, why });
            skills.truncate(MOST_SKILLS);
        }
        skills.iter().filter_map(|folder| self.skill(folder)).collect()
    }

    fn skill(&mut self, folder: &Path) -> Option<Section> {
        let names = self.entries(folder);
        let (name, _) = pick(&names, SKILL)?;
        let path = folder.join(name);
        let limit = if self.left == 0 { HEAD } else { LONGEST_FILE };
        let read = self.text(&path, limit)?;
        let (matter, body) = front_matter(&read.text);
        let text = clean(body);
        let extent = match (read.is_cut, limit) {
            (false, _) => Extent::Whole,
            (true, HEAD) => Extent::Head,
            (true, _) => Extent::Cut,
        };
        // Of one that is only named, the text may be further behind.
        if text.is_empty() && extent != Extent::Head {
            return None;
        }
        let own = folder.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        let name = matter.name.unwrap_or_else(|| one_line(&own, 100));
        let title = Some(format!("Skill: {name}"));
        let note = matter.description;
        Some(Section { title, note, text, path: shown(&path), extent, want: Want::All })
    }
}

/// Returns the name that counts, and others that differ in capitals only.
fn pick<'a>(names: &'a [OsString], wanted: &str) -> Option<(OsString, Vec<&'a OsString>)> {
    let is_like = |name: &&OsString| name.eq_ignore_ascii_case(wanted);
    let alike: Vec<_> = names.iter().filter(is_like).collect();
    let exact = alike.iter().position(|name| *name == wanted).unwrap_or(0);
    let found = (*alike.get(exact)?).clone();
    let others = alike.into_iter().filter(|name| **name != found).collect();
    Some((found, others))
}
