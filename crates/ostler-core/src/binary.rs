//! Finds an agent's program and says clearly when it cannot be run.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::agent::{AgentName, AgentSpec};

/// Why an agent's program cannot be run.
#[derive(Debug, Error)]
pub enum BinaryError {
    /// Nothing of that name in PATH.
    #[error("{agent}: program `{program}` was not found in PATH; {hint}")]
    NotInPath {
        /// Which agent.
        agent: AgentName,
        /// The name that was looked for.
        program: String,
        /// What to do.
        hint: &'static str,
    },
    /// The configured path does not exist.
    #[error("{agent}: program {path:?} does not exist; {hint}")]
    Missing {
        /// Which agent.
        agent: AgentName,
        /// The configured path.
        path: PathBuf,
        /// What to do.
        hint: &'static str,
    },
    /// There is something, but it is no program.
    #[error("{agent}: {path:?} {why}")]
    NotRunnable {
        /// Which agent.
        agent: AgentName,
        /// What was found.
        path: PathBuf,
        /// Why it cannot be run.
        why: String,
    },
}

/// Finds the program: the configured one, else the agent's own name in PATH.
///
/// A bare configured name is looked up in PATH as well. An npm launcher is
/// replaced by the native program that lies beside it, if there is one.
///
/// # Errors
/// When there is none, or none that can be executed.
pub fn find(
    spec: &AgentSpec,
    configured: Option<&Path>,
    path_variable: Option<&OsStr>,
) -> Result<PathBuf, BinaryError> {
    let named = configured.unwrap_or(Path::new(spec.program.as_ref()));
    let found = if named.components().count() > 1 || named.is_absolute() {
        named.to_owned()
    } else {
        search(named, path_variable).ok_or_else(|| BinaryError::NotInPath {
            agent: spec.name.clone(),
            program: named.display().to_string(),
            hint: spec.install_hint,
        })?
    };
    check(spec, &found)?;
    Ok(native(spec, &found).unwrap_or(found))
}

/// Looks for a program by its bare name, in the folders of PATH that are absolute.
#[must_use]
pub fn search(program: &Path, path_variable: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path_variable?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|candidate| is_executable_file(candidate))
}

fn check(spec: &AgentSpec, path: &Path) -> Result<(), BinaryError> {
    let agent = spec.name.clone();
    let not_runnable = |why: String| BinaryError::NotRunnable {
        agent: spec.name.clone(),
        path: path.to_owned(),
        why,
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(BinaryError::Missing { agent, path: path.to_owned(), hint: spec.install_hint })
        }
        Err(error) => Err(not_runnable(format!("cannot be looked at: {error}"))),
        Ok(meta) if meta.is_dir() => Err(not_runnable("is a directory, not a program".to_owned())),
        Ok(meta) if meta.permissions().mode() & 0o111 == 0 => {
            Err(not_runnable("is not executable; `chmod +x` it or name another".to_owned()))
        }
        Ok(_) => Ok(()),
    }
}

fn native(spec: &AgentSpec, launcher: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(launcher).ok()?;
    let folder = real.parent()?;
    spec.natives
        .iter()
        .map(|relative| folder.join(relative))
        .filter_map(|candidate| fs::canonicalize(candidate).ok())
        .find(|candidate| is_executable_file(candidate))
}

fn is_executable_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::claude;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_first_executable_of_path_is_taken_and_relative_folders_are_not() {
        let dir = tempfile::tempdir().unwrap();
        program(&dir.path().join("b/claude"));
        fs::create_dir_all(dir.path().join("a/claude")).unwrap();
        let path =
            std::env::join_paths([PathBuf::from("."), dir.path().join("a"), dir.path().join("b")])
                .unwrap();
        let found = find(&claude::SPEC, None, Some(&path)).unwrap();
        assert_eq!(found, dir.path().join("b/claude"));
    }

    #[test]
    fn what_is_missing_or_no_program_is_named_with_agent_and_path() {
        let dir = tempfile::tempdir().unwrap();
        let say = |path: &Path| find(&claude::SPEC, Some(path), None).unwrap_err().to_string();
        let plain = dir.path().join("plain");
        fs::write(&plain, "x").unwrap();
        assert!(say(&plain).contains("is not executable"), "{}", say(&plain));
        assert!(say(dir.path()).contains("is a directory"), "{}", say(dir.path()));
        let missing = dir.path().join("nothing");
        assert!(say(&missing).contains("does not exist"), "{}", say(&missing));
        assert!(say(&missing).starts_with("claude: "), "{}", say(&missing));
        let in_path = find(&claude::SPEC, None, Some(OsStr::new("/nowhere"))).unwrap_err();
        assert!(in_path.to_string().contains("was not found in PATH"), "{in_path}");
    }

    #[test]
    fn the_native_program_beside_an_npm_launcher_is_run_instead() {
        let dir = tempfile::tempdir().unwrap();
        let scope = dir.path().join("node_modules/@anthropic-ai");
        let launcher = scope.join("claude-code/bin/claude.exe");
        program(&launcher);
        let relative = claude::SPEC.natives.first().unwrap();
        let native = launcher.parent().unwrap().join(relative);
        fs::create_dir_all(native.parent().unwrap()).unwrap();
        program(&native);
        let link = dir.path().join("claude");
        std::os::unix::fs::symlink(&launcher, &link).unwrap();
        let found = find(&claude::SPEC, Some(&link), None).unwrap();
        assert_eq!(found, fs::canonicalize(native).unwrap());
    }
}
