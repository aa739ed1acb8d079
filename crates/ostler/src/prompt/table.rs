//! The table of prompt files: their names, their titles and when they count, in
//! their order. docs/prompt-files.md has the same table; a test compares them.

/// A file.
#[derive(Debug)]
pub(crate) struct File {
    /// Its name; capitals do not matter.
    pub(crate) name: &'static str,
    /// The title of its section.
    pub(crate) title: &'static str,
    pub(crate) place: Place,
    /// What it is for, in a few words.
    #[cfg_attr(not(test), expect(dead_code, reason = "the documentation is held against it"))]
    pub(crate) about: &'static str,
}

/// Where a file is said, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the system prompt.
    Persona,
    /// The same, and without a title if no persona is there.
    Guide,
    /// In the system prompt, if no persona is there.
    Alone,
    /// In the system prompt; the agent may write it.
    Memory,
    /// Before the first prompt of a session.
    Boot,
    /// Before the prompt of a heartbeat.
    Heartbeat,
}

/// What kind of turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occasion {
    /// Whether a session begins.
    pub(crate) is_first: bool,
    pub(crate) is_heartbeat: bool,
}

impl Place {
    /// Whether what is there is said at this time.
    pub(crate) fn applies(self, occasion: Occasion) -> bool {
        match self {
            Self::Persona | Self::Guide | Self::Alone | Self::Memory => true,
            Self::Boot => occasion.is_first,
            Self::Heartbeat => occasion.is_heartbeat,
        }
    }
}

/// The folder of skills, and the file in each of its folders.
pub(crate) const SKILLS: &str = "skills";
pub(crate) const SKILL: &str = "SKILL.md";

const fn file(name: &'static str, title: &'static str, place: Place, about: &'static str) -> File {
    File { name, title, place, about }
}

/// Every file, in the order of the sections.
pub(crate) const FILES: &[File] = &[
    file("IDENTITY.md", "Identity", Place::Persona, "who the agent is: its name, its part"),
    file("SOUL.md", "Soul", Place::Persona, "how it behaves: tone, values, limits"),
    file("USER.md", "User", Place::Persona, "whom it works for"),
    file("TOOLS.md", "Tools", Place::Persona, "what it can use here, and how"),
    file("AGENTS.md", "Agents", Place::Guide, "how it works: rules, habits, conventions"),
    file("CLAUDE.md", "Instructions", Place::Alone, "everything in one file, instead of these"),
    file("MEMORY.md", "Memory", Place::Memory, "what it remembers; it may write it itself"),
    file("BOOT.md", "Boot", Place::Boot, "what it does when a session begins"),
    file("HEARTBEAT.md", "Heartbeat", Place::Heartbeat, "what it looks after at each heartbeat"),
];
