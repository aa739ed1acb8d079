//! The settings of a repository that name programs or lead elsewhere, and what is
//! set over them. Pure: git lists the names, which runs nothing.
//!
//! Settings of the operator's own (`~/.gitconfig`) stay as they are.

use ostler_core::environment::Variables;

/// What becomes of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cure {
    /// It has this value instead.
    Set(&'static str),
    /// Nothing is run in such a repository.
    Refuse,
}

/// The first and the last part of a name (`*` for any), and what becomes of it.
const CURES: [(&str, &str, Cure); 49] = [
    // Run for files that are compared, added or checked out.
    ("filter", "clean", Cure::Set("")),
    ("filter", "smudge", Cure::Set("")),
    ("filter", "process", Cure::Set("")),
    ("filter", "required", Cure::Set("false")),
    ("diff", "external", Cure::Set("false")),
    ("diff", "command", Cure::Set("false")),
    ("diff", "textconv", Cure::Set("cat")),
    ("merge", "driver", Cure::Set("false")),
    ("interactive", "difffilter", Cure::Set("cat")),
    ("tar", "command", Cure::Set("false")),
    ("trailer", "cmd", Cure::Set("false")),
    ("trailer", "command", Cure::Set("false")),
    // Run for signatures.
    ("gpg", "program", Cure::Set("false")),
    ("gpg", "defaultkeycommand", Cure::Set("false")),
    // Run for people.
    ("core", "editor", Cure::Set("false")),
    ("core", "pager", Cure::Set("cat")),
    ("core", "askpass", Cure::Set("false")),
    ("pager", "*", Cure::Set("false")),
    ("sequence", "editor", Cure::Set("false")),
    ("man", "viewer", Cure::Set("false")),
    ("man", "cmd", Cure::Set("false")),
    ("man", "path", Cure::Set("false")),
    ("help", "format", Cure::Set("man")),
    ("help", "browser", Cure::Set("false")),
    ("browser", "*", Cure::Set("false")),
    ("web", "browser", Cure::Set("false")),
    // Run by themselves.
    ("core", "fsmonitor", Cure::Set("false")),
    ("core", "hookspath", Cure::Set("/dev/null")),
    ("hook", "command", Cure::Set("true")),
    ("alias", "*", Cure::Set("")),
    // Run to reach others.
    ("core", "sshcommand", Cure::Set("ssh")),
    ("core", "alternaterefscommand", Cure::Set("true")),
    ("core", "gitproxy", Cure::Refuse),
    ("credential", "helper", Cure::Set("")),
    ("remote", "uploadpack", Cure::Set("git-upload-pack")),
    ("remote", "receivepack", Cure::Set("git-receive-pack")),
    ("remote", "vcs", Cure::Refuse),
    ("submodule", "update", Cure::Set("none")),
    // They lead to other files of the machine.
    ("core", "worktree", Cure::Refuse),
    ("core", "attributesfile", Cure::Set("/dev/null")),
    ("core", "excludesfile", Cure::Set("/dev/null")),
    ("blame", "ignorerevsfile", Cure::Set("")),
    ("diff", "orderfile", Cure::Set("/dev/null")),
    ("mailmap", "file", Cure::Set("/dev/null")),
    ("commit", "template", Cure::Set("/dev/null")),
    ("format", "outputdirectory", Cure::Refuse),
    ("format", "signaturefile", Cure::Set("/dev/null")),
    ("http", "cookiefile", Cure::Set("")),
    ("http", "savecookies", Cure::Set("false")),
];

/// Returns what lists the names of all settings that count in a folder.
pub(crate) fn listing(directory: &str) -> Vec<String> {
    let mut words = ["git", "--no-pager", "-C", directory].map(str::to_owned).to_vec();
    words.extend(super::fixed(directory));
    words.extend(
        ["config", "--list", "--includes", "--show-scope", "--name-only", "-z"].map(str::to_owned),
    );
    words
}

/// What is set over the settings of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    over: Vec<(String, &'static str)>,
    /// Whether there is a repository.
    pub(crate) is_repository: bool,
}

impl Settings {
    /// Reads the names; the error is one that nothing can be set over.
    pub(crate) fn read(listed: &[u8]) -> Result<Self, String> {
        let mut settings = Self::default();
        let mut parts = listed.split(|byte| *byte == 0);
        while let (Some(scope), Some(name)) = (parts.next(), parts.next()) {
            if matches!(scope, b"system" | b"global" | b"command") {
                continue;
            }
            settings.is_repository = true;
            // What is not UTF-8 cannot be named, and is not left as it is.
            let name = std::str::from_utf8(name)
                .map_err(|_| format!("{:?}", String::from_utf8_lossy(name)))?;
            match cure(name) {
                Some(Cure::Refuse) => return Err(name.to_owned()),
                Some(Cure::Set(value)) => settings.over.push((name.to_owned(), value)),
                None => {}
            }
        }
        Ok(settings)
    }

    /// Adds what is set to an environment. Unlike a word it may have any name.
    pub(crate) fn add_to(&self, env: &mut Variables) {
        env.insert("GIT_CONFIG_COUNT".into(), self.over.len().to_string().into());
        for (number, (name, value)) in self.over.iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{number}").into(), name.into());
            env.insert(format!("GIT_CONFIG_VALUE_{number}").into(), (*value).into());
        }
    }
}

fn cure(name: &str) -> Option<Cure> {
    let (section, _) = name.split_once('.')?;
    let (_, variable) = name.rsplit_once('.')?;
    let fits = |known: &str, is: &str| known == "*" || known.eq_ignore_ascii_case(is);
    let mut cures = CURES.iter().filter(|(of, what, _)| fits(of, section) && fits(what, variable));
    cures.next().map(|(_, _, cure)| *cure)
}
