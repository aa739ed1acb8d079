//! Reads a CLI's arguments by a table of its flags. The order of the arguments
//! is kept, because some CLIs care where a flag stands.

/// One flag: its names, the first of which is used to refer to it.
#[derive(Debug)]
pub(super) struct Flag {
    pub(super) names: &'static [&'static str],
    pub(super) takes: Takes,
}

/// One line of a CLI's table of flags.
pub(super) const fn flag(names: &'static [&'static str], takes: Takes) -> Flag {
    Flag { names, takes }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    One,
    /// A value, unless the next argument is a flag.
    Optional,
    /// Every argument up to the next flag, also one that was meant as the
    /// prompt.
    Many,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    Flag {
        name: &'static str,
        value: Option<String>,
    },
    Word(String),
    /// A word after `--`, which is never a command.
    Literal(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FlagError {
    Unknown(String),
    MissingValue(&'static str),
}

pub(super) fn parse(table: &[Flag], argv: &[String]) -> Result<Vec<Argument>, FlagError> {
    parse_with(table, argv, |name| Err(FlagError::Unknown(name.into())))
}

/// Reads arguments and leaves out the flags that are not in the table.
pub(super) fn parse_known(table: &[Flag], argv: &[String]) -> Result<Vec<Argument>, FlagError> {
    parse_with(table, argv, |_| Ok(()))
}

fn parse_with(
    table: &[Flag],
    argv: &[String],
    unknown: impl Fn(&str) -> Result<(), FlagError>,
) -> Result<Vec<Argument>, FlagError> {
    let mut arguments = Vec::new();
    let mut words = argv.iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            arguments.extend(words.map(|word| Argument::Literal(word.clone())));
            break;
        }
        if !looks_like_flag(word) {
            arguments.push(Argument::Word(word.clone()));
            continue;
        }
        let (name, inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let Some((name, takes)) = find(table, name) else {
            unknown(name)?;
            continue;
        };
        let value = match (takes, inline) {
            (_, Some(value)) => Some(value),
            (Takes::Nothing, None) => None,
            (Takes::One, None) => Some(words.next().cloned().ok_or(FlagError::MissingValue(name))?),
            (Takes::Optional, None) => words.next_if(|word| !looks_like_flag(word)).cloned(),
            (Takes::Many, None) => {
                let mut values = Vec::new();
                while let Some(value) = words.next_if(|word| !looks_like_flag(word)) {
                    values.push(value.as_str());
                }
                Some(values.join(","))
            }
        };
        arguments.push(Argument::Flag { name, value });
    }
    Ok(arguments)
}

fn find(table: &[Flag], name: &str) -> Option<(&'static str, Takes)> {
    let flag = table.iter().find(|flag| flag.names.contains(&name))?;
    flag.names.first().map(|first| (*first, flag.takes))
}

/// A lone dash is a word: it stands for standard input.
fn looks_like_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [Flag; 4] = [
        Flag { names: &["--verbose"], takes: Takes::Nothing },
        Flag { names: &["--model", "-m"], takes: Takes::One },
        Flag { names: &["--resume"], takes: Takes::Optional },
        Flag { names: &["--tools"], takes: Takes::Many },
    ];

    fn flag(name: &'static str, value: Option<&str>) -> Argument {
        Argument::Flag { name, value: value.map(str::to_owned) }
    }

    fn parse_words(words: &[&str]) -> Result<Vec<Argument>, FlagError> {
        parse(&TABLE, &words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn flags_take_what_their_kind_says() {
        let arguments =
            parse_words(&["--verbose", "-m", "x", "--resume", "--model=y", "-", "--", "--z"]);
        let expected = [
            flag("--verbose", None),
            flag("--model", Some("x")),
            flag("--resume", None),
            flag("--model", Some("y")),
            Argument::Word("-".into()),
            Argument::Literal("--z".into()),
        ];
        assert_eq!(arguments.unwrap(), expected);
    }

    #[test]
    fn a_flag_with_many_values_eats_the_prompt() {
        let arguments = parse_words(&["--tools", "Bash", "hello", "--verbose"]).unwrap();
        assert_eq!(arguments, [flag("--tools", Some("Bash,hello")), flag("--verbose", None)]);
    }

    #[test]
    fn unknown_flags_and_missing_values_are_refused() {
        assert_eq!(parse_words(&["--nope=1"]), Err(FlagError::Unknown("--nope".into())));
        assert_eq!(parse_words(&["-m"]), Err(FlagError::MissingValue("--model")));
    }

    #[test]
    fn unknown_flags_can_be_left_out() {
        let words = ["--nope=1", "--verbose", "-x", "hello"].map(str::to_owned);
        let expected = [flag("--verbose", None), Argument::Word("hello".into())];
        assert_eq!(parse_known(&TABLE, &words).unwrap(), expected);
    }
}
