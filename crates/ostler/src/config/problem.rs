//! What is wrong with a configuration, and where every value comes from.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    /// A file, and the place in it.
    File {
        path: PathBuf,
        place: Option<Place>,
        is_local: bool,
    },
    /// A variable of the environment.
    Variable(&'static str),
    /// A variable of a `.env` file, and its line.
    DotEnv {
        path: PathBuf,
        line: usize,
        name: &'static str,
    },
    /// A flag of the command line.
    Flag(&'static str),
}

impl Source {
    /// Whether it counts only because it lies in the working directory, which
    /// may be a stranger's.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::File { is_local, .. } => *is_local,
            Self::DotEnv { .. } => true,
            Self::Default | Self::Variable(_) | Self::Flag(_) => false,
        }
    }

    /// Returns the folder from which relative paths are seen, unless it is the working directory.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => path.parent(),
            Self::Default | Self::Variable(_) | Self::DotEnv { .. } | Self::Flag(_) => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, place: Some(place), .. } => write!(f, "{}:{place}", path.display()),
            Self::File { path, place: None, .. } => write!(f, "{}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::DotEnv { path, line, name } => write!(f, "{}:{line}: {name}", path.display()),
        }
    }
}

/// A place in a file, as editors and compilers write it; counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl From<json5::Position> for Place {
    fn from(at: json5::Position) -> Self {
        Self { line: at.line + 1, column: at.column + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) source: Source,
    /// The key, or empty for the whole of a source.
    pub(crate) key: String,
    pub(crate) why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A variable and a flag say which key they mean.
        let is_file = matches!(self.source, Source::File { .. });
        match (&self.source, self.key.is_empty()) {
            (Source::Default, false) => write!(f, "{}: {}", self.key, self.why),
            (_, false) if is_file => write!(f, "{}: {}: {}", self.source, self.key, self.why),
            (_, _) => write!(f, "{}: {}", self.source, self.why),
        }
    }
}

/// Everything that is wrong, at once.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", self.lines().collect::<Vec<_>>().join("\n"))]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    /// Returns them one by one, for people.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Problem::to_string)
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}
