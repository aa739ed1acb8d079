//! Why the store could not do something, in the kinds that callers tell apart.

use std::{error::Error as _, fmt::Write as _, io, path::PathBuf, sync::Arc};

use thiserror::Error;

/// What went wrong. Everything but `Unclear` means that nothing was written.
#[derive(Clone, Debug, Error)]
pub(crate) enum StoreError {
    /// The database does not answer, or does not for now.
    #[error("the store is out of reach")]
    Unavailable(#[source] Arc<sqlx::Error>),
    /// The connection broke, or the time ran out, while the write was being
    /// made durable: it may be there or not.
    #[error("the store did not confirm a write; it may have happened or not")]
    Unclear,
    /// Another program has the database file locked.
    #[error(
        "the store is locked by another program; close what else has the file open, such as a \
         database browser"
    )]
    Locked(#[source] Arc<sqlx::Error>),
    /// No room, on the disk or below a limit.
    #[error("the store cannot grow: the disk is full")]
    Full(#[source] Arc<sqlx::Error>),
    /// The file is not what it was.
    #[error(
        "the store is damaged; stop the gateway, keep a copy of the file, and restore a backup"
    )]
    Damaged(#[source] Arc<sqlx::Error>),
    /// Anything else that the database said.
    #[error("the store refused a statement")]
    Refused(#[source] Arc<sqlx::Error>),
    /// A value is in the store that this version cannot read.
    #[error("column {column} of the store cannot be read: {why}")]
    Unreadable {
        /// Which column.
        column: &'static str,
        /// What is wrong with it.
        why: Arc<str>,
    },
    /// A write panicked; it was undone.
    #[error("a write to the store failed in an unforeseen way")]
    Panicked,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The store was written by a newer Ostler.
    #[error(
        "the store has schema version {found}, and this ostler knows versions up to {known}; \
         start a newer ostler, or restore a backup from before the upgrade"
    )]
    Newer {
        /// What the store has.
        found: i64,
        /// What this program has.
        known: i64,
    },
    /// The store has an older schema than this program, and may not be changed now.
    #[error(
        "the store has schema version {found}, and this ostler needs version {known}; \
         start the gateway once, which upgrades it"
    )]
    Older {
        /// What the store has.
        found: i64,
        /// What this program has.
        known: i64,
    },
    /// The schema is not the one that its number says.
    #[error("the schema of the store cannot be brought up to date: {why}")]
    Schema {
        /// What is wrong.
        why: Arc<str>,
    },
    /// Another gateway uses it.
    #[error(
        "another gateway{} uses the store {}; one at a time can use a SQLite store",
        holder.map(|pid| format!(" (process {pid})")).unwrap_or_default(),
        path.display()
    )]
    InUse {
        /// The store.
        path: PathBuf,
        /// Who has it, if that can be read.
        holder: Option<u32>,
    },
    /// There is none to look at.
    #[error("there is no store at {}; it is made when the gateway first starts", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// A file or folder of the store.
    #[error("could not {doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: Arc<io::Error>,
    },
}

/// An error of a write: one of the store's, or one of the caller's own.
pub(crate) trait WriteError: From<StoreError> + Send + 'static {
    /// Returns the store's error, if it is one.
    fn store_error(&self) -> Option<&StoreError>;
}

impl WriteError for StoreError {
    fn store_error(&self) -> Option<&StoreError> {
        Some(self)
    }
}

impl StoreError {
    /// Whether the same write may succeed later: the store is away, locked, full
    /// or slow. Everything else it will say again.
    pub(crate) fn passes(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Unclear | Self::Locked(_) | Self::Full(_) | Self::Closed
        )
    }

    /// Whether it is about what was to be written, and not about the store.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unreadable { .. } | Self::Panicked)
    }

    /// Puts an error of a database in its kind.
    pub(super) fn from_sqlx(error: sqlx::Error) -> Self {
        let kind = kind(&error);
        let error = Arc::new(error);
        match kind {
            Kind::Unavailable | Kind::Conflict => Self::Unavailable(error),
            Kind::Locked => Self::Locked(error),
            Kind::Full => Self::Full(error),
            Kind::Damaged => Self::Damaged(error),
            Kind::Refused => Self::Refused(error),
            Kind::Closed => Self::Closed,
        }
    }

    pub(super) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source: Arc::new(source) }
    }

    /// Returns what the database calls it, if it was the database that said it.
    pub(super) fn code(&self) -> Option<String> {
        let (Self::Unavailable(source)
        | Self::Locked(source)
        | Self::Full(source)
        | Self::Damaged(source)
        | Self::Refused(source)) = self
        else {
            return None;
        };
        Some(source.as_database_error()?.code()?.into_owned())
    }

    /// Returns whether the same may succeed in a moment.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Locked(_))
    }

    /// Returns the message with what caused it, in one line.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            // Writing to a string cannot fail.
            write!(text, ": {error}").ok();
            source = error.source().filter(|inner| !error.to_string().contains(&inner.to_string()));
        }
        text
    }
}

enum Kind {
    Unavailable,
    /// Two transactions met; this one was undone.
    Conflict,
    Locked,
    Full,
    Damaged,
    Refused,
    Closed,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the list of them is sqlx's, and open")]
fn kind(error: &sqlx::Error) -> Kind {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            match database.try_downcast_ref::<sqlx::postgres::PgDatabaseError>() {
                Some(_) => postgres_kind(&code),
                None => sqlite_kind(code.parse().unwrap_or(0)),
            }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::Protocol(_) => Kind::Unavailable,
        sqlx::Error::PoolClosed => Kind::Closed,
        _ => Kind::Refused,
    }
}

/// Reads a SQLSTATE.
fn postgres_kind(code: &str) -> Kind {
    match code {
        "40001" | "40P01" | "55P03" => Kind::Conflict,
        "25P03" => Kind::Unavailable,
        "53100" => Kind::Full,
        "XX001" | "XX002" => Kind::Damaged,
        // Connections refused, lost, too many, or a server that goes down.
        _ if code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") => {
            Kind::Unavailable
        }
        _ => Kind::Refused,
    }
}

/// Reads an extended result code of SQLite, whose low byte is the plain one.
fn sqlite_kind(code: i32) -> Kind {
    match code & 0xff {
        5 | 6 => Kind::Locked,
        13 => Kind::Full,
        10 | 14 => Kind::Unavailable,
        11 | 26 => Kind::Damaged,
        _ => Kind::Refused,
    }
}
