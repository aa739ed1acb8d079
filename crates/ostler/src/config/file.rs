//! The configuration file: where it lies, and its text. The first file that is
//! there counts, and no other is read. Its keys are read in `walk`.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use ostler_core::environment::Variables;

/// The name of the file in the working directory and in the user's folder.
const NAME: &str = "ostler.json5";
/// Longer than anybody would write by hand.
const MAX_BYTES: u64 = 1024 * 1024;
/// Deeper than anything in a file is.
const MAX_DEPTH: usize = 64;

/// A file that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// It counts only because it lies in the working directory, which may be a
    /// stranger's.
    pub(crate) is_local: bool,
}

/// Finds the file that counts. One that was named must be there.
pub(super) fn find(flag: Option<&Path>, environment: &Variables, here: &Path) -> Option<Found> {
    let variable = |name: &str| environment.get(OsStr::new(name)).filter(|value| !value.is_empty());
    let named = flag.map(Path::to_owned).or_else(|| variable("OSTLER_CONFIG").map(PathBuf::from));
    if let Some(path) = named {
        return Some(Found { path, is_local: false });
    }
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| Some(Path::new(variable("HOME")?).join(".config")));
    let users = folder.map(|folder| folder.join("ostler").join(NAME));
    let local = Found { path: here.join(NAME), is_local: true };
    let users = users.map(|path| Found { path, is_local: false });
    [Some(local), users].into_iter().flatten().find(|found| is_there(&found.path))
}

/// Whether there is something of that name, even if it is no file.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Reads the text of a file; the error says why it is none of ours.
pub(super) fn text(path: &Path) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("could not be read: {error}");
    let meta = fs::metadata(path).map_err(unreadable)?;
    if meta.is_dir() {
        return Err("is a directory, not a configuration file".to_owned());
    }
    // Anything else could keep us waiting.
    if !meta.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("is larger than 1 MiB, so it is no configuration file".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not valid UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    if is_deep(&text) {
        return Err("is nested too deeply to be a configuration file".to_owned());
    }
    Ok(text)
}

/// Whether reading the text could take more stack than there is. Brackets in
/// texts count as well, which does no harm.
fn is_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > MAX_DEPTH
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_ours_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let say = |path: &Path| text(path).unwrap_err();
        assert!(say(folder.path()).contains("is a directory"));
        assert!(say(&folder.path().join("nothing")).contains("could not be read"));
        assert!(say(Path::new("/dev/zero")).contains("is not a regular file"));
        let path = folder.path().join("x");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(say(&path).contains("UTF-8"));
        fs::File::create(&path).unwrap().set_len(50 * 1024 * 1024).unwrap();
        assert!(say(&path).contains("larger than 1 MiB"));
        fs::write(&path, "[".repeat(100_000)).unwrap();
        assert!(say(&path).contains("too deeply"));
        fs::write(&path, "\u{feff}{}").unwrap();
        assert_eq!(text(&path).unwrap(), "{}");
    }

    #[test]
    fn the_flag_comes_before_the_variable_and_that_before_the_usual_places() {
        let variables = |pairs: &[(&str, &str)]| -> Variables {
            pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let home = tempfile::tempdir().unwrap();
        let find = |flag, environment: &Variables| {
            super::find(flag, environment, home.path()).map(|found| (found.path, found.is_local))
        };
        let named = variables(&[("OSTLER_CONFIG", "/by/variable"), ("HOME", "/nowhere")]);
        let flag = Path::new("/by/flag");
        assert_eq!(find(Some(flag), &named), Some((flag.to_owned(), false)));
        assert_eq!(find(None, &named), Some((PathBuf::from("/by/variable"), false)));
        let place = home.path().join(".config/ostler/ostler.json5");
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let empty = variables(&[("OSTLER_CONFIG", ""), ("HOME", home.path().to_str().unwrap())]);
        assert_eq!(find(None, &empty), None);
        fs::write(&place, "{}").unwrap();
        assert_eq!(find(None, &empty), Some((place, false)));
        let local = home.path().join("ostler.json5");
        fs::write(&local, "{}").unwrap();
        assert_eq!(find(None, &empty), Some((local, true)));
    }
}
