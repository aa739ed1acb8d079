//! The log of a gateway: one line an event, to standard error, as text or JSON.
//! Decides what is shown and how it is written; what is worth a line is up to
//! those who log.
//!
//! Written here and not by a library, because of what a line may hold: texts of
//! strangers, which must neither end the line nor control a terminal.

mod about;
mod line;

use std::{fmt, io::Write as _};

use serde::{Deserialize, Serialize};
use tracing::{
    Event, Metadata, Subscriber,
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
};

pub(crate) use self::about::about;
use crate::clock::Millis;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    Text,
    Json,
}

impl Level {
    pub(crate) const ALL: [Self; 5] =
        [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    fn of(level: tracing::Level) -> Self {
        match level {
            tracing::Level::ERROR => Self::Error,
            tracing::Level::WARN => Self::Warn,
            tracing::Level::INFO => Self::Info,
            tracing::Level::DEBUG => Self::Debug,
            tracing::Level::TRACE => Self::Trace,
        }
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Logs to standard error from now on, in the whole process. What was started
/// first stays.
pub(crate) fn start(level: Level, form: Form) {
    let logger = Logger { level, form, write: to_stderr };
    tracing::subscriber::set_global_default(logger).ok();
}

/// Writes a line in one piece, so that lines of several threads do not mix. One
/// that cannot be written is lost, not fatal.
fn to_stderr(line: &str) {
    std::io::stderr().lock().write_all(line.as_bytes()).ok();
}

/// Takes events and writes those that are shown.
struct Logger<W> {
    level: Level,
    form: Form,
    write: W,
}

impl<W> Logger<W> {
    /// Decides whether an event is shown. Of libraries, only what is amiss: at
    /// other levels they tell of every packet, and of what is in it.
    fn shows(&self, target: &str, level: tracing::Level) -> bool {
        let is_own = target.starts_with("ostler");
        let most =
            if is_own { self.level.filter() } else { self.level.filter().min(LevelFilter::WARN) };
        level <= most
    }
}

impl<W: Fn(&str) + Send + Sync + 'static> Subscriber for Logger<W> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.shows(metadata.target(), *metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level.filter())
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let level = Level::of(*metadata.level());
        let target = metadata.target();
        let line = line::write(self.form, Millis::now(), level, target, about::now(), |fields| {
            event.record(fields);
        });
        (self.write)(&line);
    }

    // There are no spans: an event says itself what it is about, or its task does.

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Makes what takes the lines of a test.
#[cfg(test)]
pub(crate) fn kept(level: Level) -> (impl Subscriber, std::sync::Arc<std::sync::Mutex<String>>) {
    let lines = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let to = std::sync::Arc::clone(&lines);
    let write = move |line: &str| to.lock().unwrap().push_str(line);
    (Logger { level, form: Form::Json, write }, lines)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn logged(level: Level, form: Form, act: impl FnOnce()) -> String {
        let lines = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&lines);
        let write = move |line: &str| to.lock().unwrap().push_str(line);
        tracing::subscriber::with_default(Logger { level, form, write }, act);
        Arc::try_unwrap(lines).unwrap().into_inner().unwrap()
    }

    #[test]
    fn what_is_logged_is_a_line_with_its_fields() {
        let text = logged(Level::Info, Form::Text, || {
            tracing::warn!(reply = %"out_1", tries = 3, "given up: {}", "no way");
            tracing::debug!("not shown");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert_eq!(rest, "warn logging::tests: given up: no way reply=out_1 tries=3\n");
    }

    #[test]
    fn a_line_says_what_its_task_is_about_unless_it_says_so_itself() {
        let text = logged(Level::Info, Form::Text, || {
            let doing = about(vec![("job", "job_1".to_owned())], async {
                tracing::info!(n = 1, "one");
                tracing::info!(job = "job_2", "two");
            });
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(doing);
            tracing::info!("three");
        });
        let ends: Vec<_> = text.lines().map(|line| line.split_once("tests: ").unwrap().1).collect();
        assert_eq!(ends, ["one n=1 job=job_1", "two job=job_2", "three"]);
    }

    #[test]
    fn of_libraries_only_warnings_are_shown() {
        let text = logged(Level::Trace, Form::Json, || {
            tracing::trace!("own");
            tracing::info!(target: "sqlx::query", "a statement");
            tracing::warn!(target: "sqlx::query", "slow");
            tracing::error_span!("a span").in_scope(|| tracing::info!("within"));
        });
        let messages = text.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["message"].as_str().unwrap().to_owned()
        });
        assert_eq!(messages.collect::<Vec<_>>(), ["own", "slow", "within"]);
        let quiet = logged(Level::Error, Form::Json, || {
            tracing::warn!(target: "sqlx::query", "slow");
        });
        assert_eq!(quiet, "");
    }
}
