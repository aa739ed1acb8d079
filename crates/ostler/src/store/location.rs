//! Where a store is: a file, or a server.

use std::{
    fmt,
    path::{self, Path, PathBuf},
    str::FromStr,
};

use sqlx::postgres::PgConnectOptions;
use thiserror::Error;

/// The name of the SQLite file in the data folder.
const FILE: &str = "ostler.db";

/// A file, or a server. What is printed of it never has a password.
#[derive(Clone)]
pub(crate) enum Location {
    /// A SQLite file, by its absolute path.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(Box<PgConnectOptions>),
}

/// A database URL that cannot be used. Has no part of the URL in it: there may
/// be a password.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum LocationError {
    /// Another database, or no URL.
    #[error(
        "give a file as sqlite:/path/to/ostler.db, or a server as \
         postgres://user:password@host/database"
    )]
    Scheme,
    /// Nothing in it would outlive the process.
    #[error("a store in memory would lose what was acknowledged; name a file")]
    Memory,
    /// A PostgreSQL URL with a mistake.
    #[error("it is no valid postgres:// URL: {0}")]
    Postgres(String),
}

impl Location {
    /// Returns the store that a data folder has.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self::Sqlite(folder.join(FILE))
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(url: &str) -> Result<Self, LocationError> {
        let (scheme, rest) = url.split_once(':').ok_or(LocationError::Scheme)?;
        match scheme {
            "sqlite" => {
                let file = rest.strip_prefix("//").unwrap_or(rest);
                if file.is_empty() {
                    return Err(LocationError::Scheme);
                }
                if file.starts_with(":memory:") {
                    return Err(LocationError::Memory);
                }
                let file = Path::new(file);
                Ok(Self::Sqlite(path::absolute(file).unwrap_or_else(|_| file.to_owned())))
            }
            "postgres" | "postgresql" => match PgConnectOptions::from_str(url) {
                Ok(options) => Ok(Self::Postgres(Box::new(options))),
                Err(error) => Err(LocationError::Postgres(error.to_string())),
            },
            _ => Err(LocationError::Scheme),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(options) => write!(
                f,
                "postgres://{}:{}/{}",
                options.get_host(),
                options.get_port(),
                options.get_database().unwrap_or_default()
            ),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_in_any_usual_way() {
        for url in ["sqlite:/data/o.db", "sqlite:///data/o.db"] {
            assert_eq!(url.parse::<Location>().unwrap().to_string(), "sqlite:/data/o.db");
        }
        let Ok(Location::Sqlite(relative)) = "sqlite:o.db".parse() else { panic!() };
        assert!(relative.is_absolute() && relative.ends_with("o.db"));
    }

    #[test]
    fn no_text_about_a_server_has_its_password() {
        let location: Location =
            "postgres://me:very-secret@db.example:5433/ostler".parse().unwrap();
        assert_eq!(location.to_string(), "postgres://db.example:5433/ostler");
        assert!(!format!("{location:?}").contains("secret"));
        for url in ["postgres://me:very-secret@host:port/", "mysql://me:very-secret@host/"] {
            let error = url.parse::<Location>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
        }
    }

    #[test]
    fn what_is_no_database_is_refused_with_what_would_be_right() {
        for url in ["", "ostler.db", "/data/ostler.db", "sqlite:", "sqlite://", "mysql://h/d"] {
            let error = url.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains("sqlite:/") && error.contains("postgres://"), "{error}");
        }
        assert_eq!("sqlite::memory:".parse::<Location>().unwrap_err(), LocationError::Memory);
    }
}
