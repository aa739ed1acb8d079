//! What a played CLI was called with, where the order of flags does not matter.

use std::collections::BTreeMap;

use super::flags::{self, Argument, Flag, FlagError};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// The last value of each flag; empty for a flag that takes none.
    flags: BTreeMap<&'static str, String>,
    pub(super) words: Vec<String>,
}

impl Given {
    /// Leaves out the flags that are not in the table; fails with the name of one
    /// that lacks its value.
    pub(super) fn read(table: &[Flag], argv: &[String]) -> Result<Self, String> {
        let arguments = flags::parse_known(table, argv).map_err(|error| match error {
            FlagError::MissingValue(name) => name.to_owned(),
            FlagError::Unknown(name) => name,
        })?;
        Ok(Self::of(arguments))
    }

    pub(super) fn of(arguments: Vec<Argument>) -> Self {
        let mut given = Self::default();
        for argument in arguments {
            match argument {
                Argument::Flag { name, value } => {
                    given.flags.insert(name, value.unwrap_or_default());
                }
                Argument::Word(word) | Argument::Literal(word) => given.words.push(word),
            }
        }
        given
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.flags.contains_key(name)
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.flags.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::Takes;
    use super::*;

    #[test]
    fn flags_are_found_by_their_first_name_and_the_last_value_counts() {
        let table = [
            Flag { names: &["--model", "-m"], takes: Takes::One },
            Flag { names: &["--yolo", "-y"], takes: Takes::Nothing },
        ];
        let argv = ["-m", "a", "--new-flag", "hello", "--model=b", "-y", "--", "-z"];
        let given = Given::read(&table, &argv.map(str::to_owned)).unwrap();
        assert_eq!((given.value("--model"), given.value("--yolo")), (Some("b"), Some("")));
        assert!(given.has("--yolo") && !given.has("--new-flag"));
        assert_eq!(given.words, ["hello", "-z"]);
        assert_eq!(Given::read(&table, &["-m".to_owned()]), Err("--model".to_owned()));
    }
}
