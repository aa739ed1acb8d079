//! Watches the configuration file while a gateway runs.
//!
//! It looks once in a while, by the file's identity, size and times, which also
//! works where nobody tells of changes. A file that is broken, half-written or
//! gone changes nothing: the configuration that was there stays, and what is
//! wrong is told once.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    load::{Loaded, Loader},
    problem::{Problem, Problems, Source},
    view::{Change, changes},
};

/// How often the file is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// What became of the file.
#[derive(Debug)]
pub(crate) enum Reload {
    /// There is a new configuration. Without changes, what was wrong is right again.
    Changed { loaded: Box<Loaded>, changes: Vec<Change> },
    /// The file cannot be used; what was there before stays.
    Broken(Problems),
}

/// What changes when a file does.
pub(crate) type Stamp = (u64, u64, u64, i64, i64, i64, i64);

/// A watch over the file.
pub(crate) struct Watch {
    loader: Loader,
    interval: Duration,
    current: Loaded,
    /// Where the file is; `None` while there is none.
    path: Option<PathBuf>,
    stamp: Option<Stamp>,
    /// What was told last, if the file is broken.
    told: Option<Problems>,
}

impl Watch {
    /// Reads the configuration, and watches its file from then on.
    pub(crate) fn start(loader: Loader) -> Result<(Loaded, Self), Problems> {
        // Looked at first: what changes while it is read is seen at the next look.
        let path = loader.find().map(|found| found.path);
        let stamp = path.as_deref().and_then(stamp);
        let current = loader.load()?;
        Ok((current.clone(), Self { loader, interval: INTERVAL, current, path, stamp, told: None }))
    }

    /// Waits until something became of the file. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Reload {
        loop {
            tokio::time::sleep(self.interval).await;
            if let Some(reload) = self.look() {
                return reload;
            }
        }
    }

    /// Looks at the file now.
    pub(crate) fn look(&mut self) -> Option<Reload> {
        if self.path.is_none() {
            self.path = self.loader.find().map(|found| found.path);
        }
        let path = self.path.clone()?;
        let stamp = stamp(&path);
        if stamp == self.stamp && self.told.is_none() {
            return None;
        }
        // A broken file is read again and again: what it lacked may come from elsewhere.
        self.stamp = stamp;
        let read = if stamp.is_some() { self.loader.load() } else { Err(gone(&path)) };
        match read {
            Ok(loaded) => {
                let was_broken = self.told.take().is_some();
                let changes = changes(&self.current.config, &loaded.config);
                self.current = loaded.clone();
                let is_news = was_broken || !changes.is_empty();
                is_news.then(|| Reload::Changed { loaded: Box::new(loaded), changes })
            }
            Err(problems) => {
                let is_news = self.told.as_ref() != Some(&problems);
                self.told = Some(problems.clone());
                is_news.then_some(Reload::Broken(problems))
            }
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().as_ref().map(stamp_of)
}

/// Returns what is another when a file is.
pub(crate) fn stamp_of(meta: &fs::Metadata) -> Stamp {
    (
        meta.dev(),
        meta.ino(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec(),
        // A change of the rights is seen by this one alone.
        meta.ctime(),
        meta.ctime_nsec(),
    )
}

fn gone(path: &Path) -> Problems {
    let source = Source::File { path: path.to_owned(), place: None, is_local: false };
    let why = "is gone; the configuration stays as it was".to_owned();
    Problem { source, key: String::new(), why }.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{super::load::Trust, *};

    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new(text: Option<&str>) -> Self {
            let place = Self { folder: tempfile::tempdir().unwrap() };
            if let Some(text) = text {
                fs::write(place.file(), text).unwrap();
            }
            place
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("ostler.json5")
        }

        fn watch(&self) -> Watch {
            let here = self.folder.path().to_owned();
            let environment = Default::default();
            let trust = Trust::Everything;
            Watch::start(Loader { environment, here, file: None, flags: Vec::new(), trust })
                .unwrap()
                .1
        }

        /// Replaces the file as editors and deployments do.
        fn replace(&self, text: &str) {
            let new = self.folder.path().join("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, self.file()).unwrap();
        }
    }

    fn changed(watch: &mut Watch) -> Vec<String> {
        match watch.look() {
            Some(Reload::Changed { loaded, changes }) => {
                assert!(super::changes(&loaded.config, &watch.current.config).is_empty());
                changes.into_iter().map(|c| c.key).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn broken(watch: &mut Watch) -> String {
        match watch.look() {
            Some(Reload::Broken(problems)) => problems.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_that_is_replaced_is_read_again_and_one_that_says_the_same_is_not_told() {
        let place = Place::new(Some("{ busy: 'queue' }"));
        let mut watch = place.watch();
        assert!(watch.look().is_none());
        place.replace("{ busy: 'steer' }");
        assert_eq!(changed(&mut watch), ["busy"]);
        place.replace("{ busy: /* as before */ 'steer' }");
        assert!(watch.look().is_none());
    }

    #[test]
    fn a_half_written_file_keeps_what_was_there_and_is_told_once() {
        let place = Place::new(Some("{ busy: 'steer' }"));
        let mut watch = place.watch();
        place.replace("{ busy: 'interrupt', retry: {");
        assert!(broken(&mut watch).contains("ostler.json5"), "the file is named");
        assert!(watch.look().is_none(), "told once");
        assert_eq!(watch.current.config.busy, super::super::section::Busy::Steer);
        place.replace("{ busy: 'interrupt', retry: { max: 1 } }");
        assert_eq!(changed(&mut watch), ["busy", "retry.max"]);
    }

    #[test]
    fn every_mistake_is_told_and_new_ones_again() {
        let place = Place::new(Some("{}"));
        let mut watch = place.watch();
        place.replace("{ buzy: 'queue', retry: { max: 'three' } }");
        let said = broken(&mut watch);
        assert!(said.contains("buzy") && said.contains("retry.max"), "{said}");
        place.replace("{ buzy: 'queue', retry: { max: 3 } }");
        let said = broken(&mut watch);
        assert!(said.contains("buzy") && !said.contains("retry.max"), "{said}");
    }

    #[test]
    fn a_file_that_is_gone_changes_nothing_and_may_come_back() {
        let place = Place::new(Some("{ busy: 'steer' }"));
        let mut watch = place.watch();
        fs::remove_file(place.file()).unwrap();
        assert!(broken(&mut watch).contains("is gone"));
        assert!(watch.look().is_none());
        place.replace("{ busy: 'steer' }");
        assert!(changed(&mut watch).is_empty(), "well again, and nothing is new");
        assert!(watch.look().is_none());
    }

    #[test]
    fn what_cannot_be_read_changes_nothing() {
        let place = Place::new(Some("{ busy: 'steer' }"));
        let mut watch = place.watch();
        fs::remove_file(place.file()).unwrap();
        fs::create_dir(place.file()).unwrap();
        assert!(broken(&mut watch).contains("is a directory"));
        fs::remove_dir(place.file()).unwrap();
        fs::write(place.file(), "{ busy: 'queue' }").unwrap();
        assert_eq!(changed(&mut watch), ["busy"]);
        fs::set_permissions(place.file(), fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser may read it all the same.
        if fs::read(place.file()).is_err() {
            assert!(broken(&mut watch).contains("could not be read"));
        } else {
            assert!(watch.look().is_none());
        }
    }

    #[tokio::test]
    async fn a_file_that_comes_later_is_found() {
        let place = Place::new(None);
        let mut watch = place.watch();
        watch.interval = Duration::from_millis(1);
        assert!(watch.look().is_none());
        place.replace("{ busy: 'steer' }");
        assert!(
            matches!(watch.next().await, Reload::Changed { changes, .. } if changes.len() == 1)
        );
    }
}
