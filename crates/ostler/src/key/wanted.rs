//! A key that somebody wants: what is wrong with it, what he may not give, and the
//! key that it becomes. The same for callers and for the command line.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{KeyText, NoRandomness, Scope};
use crate::{
    clock::Millis,
    id::{KeyId, ProjectId},
    store::keys::NewKey,
};

/// The longest name, in bytes.
pub(crate) const LONGEST_NAME: usize = 64;
/// How many projects or networks a key may be for.
pub(crate) const MOST: usize = 100;

/// What somebody wants a key to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    /// `None` for all.
    pub(crate) projects: Option<Vec<ProjectId>>,
    /// `None` for all.
    pub(crate) networks: Option<Vec<IpNet>>,
    pub(crate) expires_at: Option<Millis>,
}

/// What the one who makes a key has himself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<'a> {
    pub(crate) scopes: &'a [Scope],
    pub(crate) projects: Option<&'a [ProjectId]>,
    pub(crate) networks: Option<&'a [IpNet]>,
    pub(crate) expires_at: Option<Millis>,
}

impl Wanted {
    /// Puts it in order, or says what is wrong with it.
    pub(crate) fn checked(mut self, now: Millis) -> Result<Self, String> {
        let name = &self.name;
        if name.is_empty() || name.len() > LONGEST_NAME || name.trim() != name {
            return Err(format!(
                "a key needs a name of 1 to {LONGEST_NAME} bytes, without spaces around it"
            ));
        }
        if name.chars().any(char::is_control) {
            return Err("the name must not have control characters".to_owned());
        }
        if self.scopes.is_empty() {
            let all = Scope::ALL.map(Scope::as_str).join(", ");
            return Err(format!("a key needs at least one scope of {all}"));
        }
        self.scopes.sort_unstable();
        self.scopes.dedup();
        if let Some(projects) = &mut self.projects {
            projects.sort_unstable();
            projects.dedup();
            check_length(projects, "projects")?;
        }
        if let Some(networks) = &mut self.networks {
            *networks = IpNet::aggregate(networks);
            check_length(networks, "networks")?;
        }
        if self.expires_at.is_some_and(|end| end <= now) {
            return Err("the key would have expired already".to_owned());
        }
        Ok(self)
    }

    /// Limits it to what its maker has where it is not limited itself, or says
    /// what he cannot give.
    pub(crate) fn within(mut self, own: Own<'_>) -> Result<Self, String> {
        let beyond = |scope: &&Scope| !own.scopes.contains(scope);
        if !own.scopes.contains(&Scope::Admin)
            && let Some(scope) = self.scopes.iter().find(beyond)
        {
            return Err(format!("the key has not the scope {scope} to give"));
        }
        if let Some(own) = own.projects {
            let wanted = self.projects.get_or_insert_with(|| own.to_vec());
            if let Some(project) = wanted.iter().find(|project| !own.contains(project)) {
                return Err(format!("the key is not for the project {project}"));
            }
        }
        if let Some(own) = own.networks {
            let wanted = self.networks.get_or_insert_with(|| own.to_vec());
            let is_within = |network: &IpNet| own.iter().any(|own| own.contains(network));
            if let Some(network) = wanted.iter().find(|network| !is_within(network)) {
                return Err(format!("the key cannot be used from all of {network} itself"));
            }
        }
        if let Some(end) = own.expires_at
            && *self.expires_at.get_or_insert(end) > end
        {
            return Err(format!("the key expires itself at {end}"));
        }
        Ok(self)
    }

    /// Makes the key: its word, and what is kept of it.
    pub(crate) fn make(
        self,
        created_by: String,
        now: Millis,
    ) -> Result<(KeyText, NewKey), NoRandomness> {
        let text = KeyText::make()?;
        let Self { name, scopes, projects, networks, expires_at } = self;
        let key = NewKey {
            id: KeyId::new(),
            name,
            prefix: text.prefix().to_owned(),
            hash: text.hash(),
            scopes,
            projects,
            networks,
            created_by,
            created_at: now,
            expires_at,
        };
        Ok((text, key))
    }
}

fn check_length<T>(list: &[T], what: &str) -> Result<(), String> {
    if (1..=MOST).contains(&list.len()) {
        return Ok(());
    }
    Err(format!("a key is for 1 to {MOST} {what}, or for all if none are given"))
}

/// Reads a network, or an address as a network of one.
pub(crate) fn read_network(text: &str) -> Result<IpNet, String> {
    let single = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let read = text.parse().ok().or_else(single).map(|network: IpNet| network.trunc());
    read.ok_or_else(|| format!("{text:?} is no network; give one such as 10.0.0.0/8 or 192.0.2.7"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000);

    fn wanted() -> Wanted {
        Wanted {
            name: "ci".to_owned(),
            scopes: vec![Scope::ProjectsRead],
            projects: None,
            networks: None,
            expires_at: None,
        }
    }

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| read_network(text).unwrap()).collect()
    }

    #[test]
    fn what_is_wrong_with_a_key_is_said() {
        let long = "n".repeat(LONGEST_NAME + 1);
        for (wrong, says) in [
            (Wanted { name: String::new(), ..wanted() }, "name"),
            (Wanted { name: " x".to_owned(), ..wanted() }, "spaces"),
            (Wanted { name: "a\nb".to_owned(), ..wanted() }, "control"),
            (Wanted { name: long, ..wanted() }, "64"),
            (Wanted { scopes: Vec::new(), ..wanted() }, "projects:read"),
            (Wanted { projects: Some(Vec::new()), ..wanted() }, "projects"),
            (Wanted { networks: Some(Vec::new()), ..wanted() }, "networks"),
            (Wanted { expires_at: Some(NOW), ..wanted() }, "expired"),
        ] {
            let error = wrong.checked(NOW).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        for text in ["", "10.0.0.0/33", "example.org", "1.2.3.4:80"] {
            assert!(read_network(text).unwrap_err().contains("10.0.0.0/8"), "{text}");
        }
    }

    #[test]
    fn a_key_is_put_in_order() {
        let scopes = vec![Scope::Admin, Scope::ProjectsRead, Scope::Admin];
        let networks = Some(nets(&["10.1.2.3/8", "10.0.0.1", "192.0.2.7"]));
        let checked = Wanted { scopes, networks, ..wanted() }.checked(NOW).unwrap();
        assert_eq!(checked.scopes, [Scope::ProjectsRead, Scope::Admin]);
        assert_eq!(checked.networks, Some(nets(&["10.0.0.0/8", "192.0.2.7/32"])));
    }

    #[test]
    fn nobody_gives_more_than_he_has() {
        let (mine, other) = (ProjectId::new(), ProjectId::new());
        let networks = nets(&["10.0.0.0/8"]);
        let own = Own {
            scopes: &[Scope::KeysWrite, Scope::ProjectsRead],
            projects: Some(&[mine]),
            networks: Some(&networks),
            expires_at: Some(Millis(5_000)),
        };
        for (more, says) in [
            (Wanted { scopes: vec![Scope::ProjectsExecute], ..wanted() }, "projects:execute"),
            (Wanted { scopes: vec![Scope::Admin], ..wanted() }, "admin"),
            (Wanted { projects: Some(vec![mine, other]), ..wanted() }, "project"),
            (Wanted { networks: Some(nets(&["10.0.0.0/7"])), ..wanted() }, "10.0.0.0/7"),
            (Wanted { networks: Some(nets(&["::/0"])), ..wanted() }, "::/0"),
            (Wanted { expires_at: Some(Millis(5_001)), ..wanted() }, "expires"),
        ] {
            let error = more.within(own).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let inherited = wanted().within(own).unwrap();
        assert_eq!(inherited.projects, Some(vec![mine]));
        assert_eq!(inherited.networks, Some(networks.clone()));
        assert_eq!(inherited.expires_at, Some(Millis(5_000)));
        let less = Wanted {
            networks: Some(nets(&["10.2.0.0/16"])),
            expires_at: Some(Millis(2_000)),
            ..wanted()
        };
        let narrowed = less.clone().within(own).unwrap();
        assert_eq!(narrowed, Wanted { projects: Some(vec![mine]), ..less });
    }

    #[test]
    fn an_admin_without_limits_gives_everything() {
        let own = Own { scopes: &[Scope::Admin], projects: None, networks: None, expires_at: None };
        let everything = Wanted { scopes: Scope::ALL.to_vec(), ..wanted() };
        assert_eq!(everything.clone().within(own), Ok(everything));
    }
}
