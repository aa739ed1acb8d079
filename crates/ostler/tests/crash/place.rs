//! A folder with everything that a gateway and its agents need and leave, and a
//! look at who still runs in it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::json;
use tempfile::TempDir;

pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    /// Makes the folders, an agent that is played, and the configuration.
    pub(crate) fn new() -> Self {
        // Short: paths of sockets have little room.
        let place = Self { dir: tempfile::Builder::new().prefix("oc").tempdir().unwrap() };
        for folder in ["home", "tmp", "work"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        let agent = place.path("agent");
        let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
        let text = format!("#!/bin/sh\nexec '{ostler}' scripted --as claude -- \"$@\"\n");
        fs::write(&agent, text).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let settings = json!({
            "gateway": {
                "listen": "127.0.0.1:0",
                "max_concurrent_turns": 8,
                "max_queue_depth": 1000,
                // On PostgreSQL, the conversations of a killed gateway wait this long.
                "lease": "1s",
            },
            "agent": { "default": "claude", "path": agent, "permissions": "bypass" },
            // A turn that fails is found by its reply; waiting for more would hide it.
            "retry": { "first_delay": "100ms" },
        });
        fs::write(place.config(), settings.to_string()).unwrap();
        place
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path("ostler.json5")
    }

    /// Returns the command lines of processes that belong to this place: by where
    /// they are, by their environment or by their arguments.
    pub(crate) fn processes(&self) -> Vec<String> {
        let own = std::process::id().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter(|entry| {
                let name = entry.file_name();
                let pid = name.to_string_lossy();
                pid.bytes().all(|byte| byte.is_ascii_digit()) && *pid != *own
            })
            .filter(|entry| self.has(&entry.path()))
            .map(|entry| {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                format!("{}: {line}", entry.file_name().display())
            })
            .collect()
    }

    fn has(&self, process: &Path) -> bool {
        let here = self.dir.path();
        let mark = here.to_string_lossy();
        let is_marked = |name: &str| {
            let bytes = fs::read(process.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(&*mark)
        };
        let cwd = fs::read_link(process.join("cwd")).unwrap_or_default();
        cwd.starts_with(here) || is_marked("environ") || is_marked("cmdline")
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_found_by_its_place_its_variable_and_its_arguments() {
        let place = Place::new();
        assert_eq!(place.processes(), Vec::<String>::new());
        let mut by_place = Command::new("cat");
        by_place.current_dir(place.path("work"));
        let mut by_variable = Command::new("cat");
        by_variable.env("HOME", place.path("home"));
        let mut by_arguments = Command::new("cat");
        by_arguments.args([Path::new("-"), &place.config()]);
        for mut command in [by_place, by_variable, by_arguments] {
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            let found = place.processes();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(matches!(found.as_slice(), [one] if one.contains("cat")), "{found:?}");
            assert_eq!(place.processes(), Vec::<String>::new());
        }
    }
}
