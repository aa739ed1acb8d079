//! A command line without a shell: words by the rules of POSIX quoting, and a
//! program that is allowed by its exact name. Pure.

use super::{Refused, listed};

/// What a shell would do something about outside of quotes.
const SPECIAL: [char; 9] = ['|', '&', ';', '<', '>', '$', '`', '(', ')'];

/// Returns the words of a command line whose program is among those that are allowed.
pub(crate) fn allow(line: &str, allowed: &[String]) -> Result<Vec<String>, Refused> {
    if allowed.is_empty() {
        return Err(Refused::forbidden(
            "no programs may be run here; the operator lists those that may in `api.shell`",
        ));
    }
    let words = words(line)?;
    let program = words.first().ok_or_else(|| Refused::wrong("the command is empty"))?;
    if allowed.contains(program) {
        return Ok(words);
    }
    let may = listed(allowed);
    Err(Refused::forbidden(format!("{program:?} may not be run here; these may: {may}")))
}

/// Splits a line. What only a shell could do is an error, not an argument: who
/// writes it expects something else to happen.
fn words(line: &str) -> Result<Vec<String>, Refused> {
    // A space at the end may be a word's, behind a backslash.
    let line = line.trim_start_matches([' ', '\t', '\n']).trim_end_matches('\n');
    check(line)?;
    let unclosed = || Refused::wrong("a quotation mark or backslash in the command is not closed");
    shlex::split(line).ok_or_else(unclosed)
}

/// Where in a line a character stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Between words.
    Gap,
    Word,
    Single,
    Double,
}

fn check(line: &str) -> Result<(), Refused> {
    let mut within = Within::Gap;
    let mut rest = line.chars();
    while let Some(char) = rest.next() {
        if char == '\0' {
            return Err(Refused::wrong("the command has a NUL character in it"));
        }
        within = match (within, char) {
            (Within::Single, '\'') | (Within::Double, '"') => Within::Word,
            (Within::Double, '$' | '`') => return Err(special(char)),
            (Within::Double, '\\') => {
                // Whatever it is, it means nothing more.
                rest.next();
                Within::Double
            }
            (Within::Single | Within::Double, _) => within,
            (Within::Gap | Within::Word, '\'') => Within::Single,
            (Within::Gap | Within::Word, '"') => Within::Double,
            (Within::Gap | Within::Word, '\\') => match rest.next() {
                Some('\n') => return Err(special('\n')),
                Some('\0') => return Err(Refused::wrong("the command has a NUL character in it")),
                Some(_) | None => Within::Word,
            },
            (Within::Gap | Within::Word, ' ' | '\t') => Within::Gap,
            (Within::Gap | Within::Word, '\n') => return Err(special(char)),
            (Within::Gap, '#') => return Err(special(char)),
            (Within::Gap | Within::Word, _) if SPECIAL.contains(&char) => {
                return Err(special(char));
            }
            (Within::Gap | Within::Word, _) => Within::Word,
        };
    }
    Ok(())
}

fn special(char: char) -> Refused {
    Refused::wrong(format!(
        "no shell reads the command, so {char:?} would not do what it does there; \
         put it in single quotes if it is meant as it is, and give one program with its arguments"
    ))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn split(line: &str) -> Result<Vec<String>, Refused> {
        words(line)
    }

    fn allowed() -> Vec<String> {
        ["cargo", "./gradlew", "/usr/bin/make"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_line_is_words_as_posix_quotes_them() {
        for (line, expected) in [
            ("cargo test --all", vec!["cargo", "test", "--all"]),
            (" \tcargo   build \n", vec!["cargo", "build"]),
            (r#"echo 'a b' "c d" e\ f g"h"'i'"#, vec!["echo", "a b", "c d", "e f", "ghi"]),
            (r#"echo "\$x \" \\ \n" '$x'"#, vec!["echo", "$x \" \\ \\n", "$x"]),
            (
                "ls *.rs ?x [ab] ~ {a,b} a#b !",
                vec!["ls", "*.rs", "?x", "[ab]", "~", "{a,b}", "a#b", "!"],
            ),
            ("echo '' \"\"", vec!["echo", "", ""]),
            ("printf 'two\nlines'", vec!["printf", "two\nlines"]),
        ] {
            assert_eq!(split(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn what_only_a_shell_could_do_is_refused_and_said_so() {
        for line in [
            "cat x | sh",
            "a && b",
            "a; b",
            "a > b",
            "a < b",
            "echo $HOME",
            "echo `id`",
            "(a)",
            "a\nb",
            "a \\\n b",
            "echo \"$HOME\"",
            "echo \"`id`\"",
            "echo a # b",
            "a&",
        ] {
            let refused = split(line).unwrap_err();
            assert!(matches!(&refused, Refused::Wrong(why) if why.contains("no shell")), "{line}");
        }
        for line in ["echo 'x", "echo \"x", "echo x\\", "echo \0", "echo \\\0"] {
            assert!(matches!(split(line), Err(Refused::Wrong(_))), "{line:?}");
        }
    }

    #[test]
    fn a_program_is_allowed_by_its_exact_name() {
        let allowed = allowed();
        for line in ["cargo test", "'cargo' test", "./gradlew build", "/usr/bin/make"] {
            assert!(allow(line, &allowed).is_ok(), "{line}");
        }
        for line in [
            "make",
            "gradlew",
            "./cargo",
            "/bin/cargo",
            "Cargo",
            "cargo\\ ",
            "cargo-x",
            "X=1 cargo",
            "''",
            "env cargo",
            ".//gradlew",
        ] {
            let refused = allow(line, &allowed).unwrap_err();
            assert!(
                matches!(&refused, Refused::Forbidden(why) if why.contains("`cargo`, `./gradlew`")),
                "{line} {refused}"
            );
        }
        assert!(matches!(allow("  ", &allowed), Err(Refused::Wrong(_))));
        let nothing = allow("cargo", &[]).unwrap_err();
        assert!(matches!(nothing, Refused::Forbidden(why) if why.contains("api.shell")));
    }

    /// What a real shell makes of a line, with neither patterns nor home folders.
    fn by_shell(line: &str) -> Vec<String> {
        #[expect(clippy::disallowed_methods, reason = "the shell is what is compared with")]
        let output = Command::new("sh")
            .args(["-f", "-c", &format!("printf '%s\\0' x {line}")])
            .env_clear()
            .output()
            .unwrap();
        assert!(output.status.success(), "{line:?}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').skip(1).map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn no_text_makes_other_words_than_a_shell_would(
            line in "[a-c \\t\n'\"\\\\$`|&;<>()#*?=!{}%-]{0,14}",
        ) {
            if let Ok(words) = split(&line) {
                let line = line.trim_start_matches([' ', '\t', '\n']);
                prop_assert_eq!(words, by_shell(line));
            }
        }

        #[test]
        fn words_that_are_quoted_come_back_as_they_were(
            words in proptest::collection::vec("[^\0]{0,12}", 1..6),
        ) {
            let quoted: Vec<_> =
                words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(split(&quoted.join(" ")).unwrap(), words);
        }

        #[test]
        fn whatever_is_allowed_begins_with_a_listed_program(line in ".{0,40}", tail in ".{0,20}") {
            for line in [line, format!("cargo {tail}")] {
                if let Ok(words) = allow(&line, &allowed()) {
                    prop_assert!(allowed().contains(&words[0]));
                    prop_assert!(words.iter().all(|word| !word.contains('\0')));
                }
            }
        }
    }
}
