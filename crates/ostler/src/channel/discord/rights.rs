//! What the bot may do at a place, as Discord counts it: what its roles allow, and
//! what a channel takes from them or adds. Pure.

/// Permissions, each a bit. There are more of them every year.
pub(crate) type Rights = u128;

/// Whoever has it has all.
const ADMINISTRATOR: Rights = 1 << 3;
/// What the bot needs, as Discord calls it.
const NEEDED: [(Rights, &str); 5] = [
    (1 << 10, "View Channels"),
    (1 << 11, "Send Messages"),
    (1 << 38, "Send Messages in Threads"),
    (1 << 15, "Attach Files"),
    (1 << 16, "Read Message History"),
];
/// What it needs to begin threads.
const THREADS: (Rights, &str) = (1 << 35, "Create Public Threads");

/// What the bot is in a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) guild: String,
    pub(crate) bot: String,
    pub(crate) is_owner: bool,
    /// The roles that it has; everybody has that of the server's own id.
    pub(crate) roles: Vec<String>,
    /// What each role of the server allows.
    pub(crate) allowed: Vec<(String, Rights)>,
}

/// What a channel changes for a role or for one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overwrite {
    pub(crate) id: String,
    pub(crate) allow: Rights,
    pub(crate) deny: Rights,
}

impl Member {
    fn has(&self, role: &str) -> bool {
        self.roles.iter().any(|has| has == role)
    }

    /// Returns what it may do in a channel that changes this; in the server as a whole
    /// if nothing is changed.
    pub(crate) fn rights(&self, overwrites: &[Overwrite]) -> Rights {
        let of_roles =
            self.allowed.iter().filter(|(role, _)| *role == self.guild || self.has(role));
        let base = of_roles.fold(0, |all, (_, rights)| all | rights);
        if self.is_owner || base & ADMINISTRATOR != 0 {
            return Rights::MAX;
        }
        let change = |rights: Rights, is_it: &dyn Fn(&str) -> bool| {
            let those = overwrites.iter().filter(|overwrite| is_it(&overwrite.id));
            let (allow, deny) =
                those.fold((0, 0), |(allow, deny), it| (allow | it.allow, deny | it.deny));
            rights & !deny | allow
        };
        // For everybody first, then for roles, then for the one.
        let rights = change(base, &|id| id == self.guild);
        let rights = change(rights, &|id| id != self.guild && self.has(id));
        change(rights, &|id| id == self.bot)
    }
}

/// Returns what of all that it needs is missing.
pub(crate) fn missing(rights: Rights, begins_threads: bool) -> Vec<&'static str> {
    let needed = NEEDED.into_iter().chain(begins_threads.then_some(THREADS));
    needed.filter(|(right, _)| rights & right == 0).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: Rights = 1 << 11;
    const VIEW: Rights = 1 << 10;

    fn member() -> Member {
        Member {
            guild: "1".to_owned(),
            bot: "9".to_owned(),
            is_owner: false,
            roles: vec!["2".to_owned()],
            allowed: vec![("1".into(), VIEW), ("2".into(), SEND), ("3".into(), ADMINISTRATOR)],
        }
    }

    fn overwrite(id: &str, allow: Rights, deny: Rights) -> Overwrite {
        Overwrite { id: id.to_owned(), allow, deny }
    }

    #[test]
    fn roles_add_up_and_those_of_others_do_not_count() {
        assert_eq!(member().rights(&[]), VIEW | SEND);
        let owner = Member { is_owner: true, ..member() };
        assert_eq!(owner.rights(&[overwrite("1", 0, VIEW)]), Rights::MAX);
        let all = Member { roles: vec!["3".to_owned()], ..member() };
        assert_eq!(all.rights(&[overwrite("9", 0, VIEW)]), Rights::MAX);
    }

    #[test]
    fn a_channel_changes_them_for_all_then_for_roles_then_for_one() {
        let all = overwrite("1", 0, SEND | VIEW);
        assert_eq!(member().rights(std::slice::from_ref(&all)), 0);
        let role = overwrite("2", SEND | VIEW, 0);
        assert_eq!(member().rights(&[role.clone(), all.clone()]), SEND | VIEW);
        let one = overwrite("9", 0, SEND);
        assert_eq!(member().rights(&[one, role, all]), VIEW);
        assert_eq!(member().rights(&[overwrite("3", 0, SEND)]), SEND | VIEW);
    }

    #[test]
    fn what_is_missing_is_called_as_discord_calls_it() {
        assert_eq!(missing(Rights::MAX, true), [""; 0]);
        let few = missing(VIEW | SEND, false);
        assert_eq!(few, ["Send Messages in Threads", "Attach Files", "Read Message History"]);
        assert_eq!(missing(0, true).len(), 6);
        // The number in the address by which a bot is invited.
        let all = NEEDED.iter().chain([&THREADS]).fold(0, |all, (right, _)| all | right);
        assert_eq!(all, 309_237_746_688);
    }
}
