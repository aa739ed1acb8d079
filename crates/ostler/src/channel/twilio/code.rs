//! What Twilio's errors mean: by their codes, as its documentation has them. Pure.

use std::time::Duration;

use crate::channel::{Next, SendError};

/// What an error means for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It may pass.
    Passing,
    /// Its file was not to be had; another link may be.
    File,
    /// The person has not written for a day.
    Window,
    /// Its template is not taken; what it says may be.
    Template,
    /// It will not pass, unless somebody does something about it.
    Lasting,
}

/// One error.
struct Code {
    code: u32,
    meaning: Meaning,
    /// For the operator: what it is, and what to do.
    about: &'static str,
}

const fn code(code: u32, meaning: Meaning, about: &'static str) -> Code {
    Code { code, meaning, about }
}

/// The errors that something can be said of.
#[rustfmt::skip]
const CODES: &[Code] = &[
    code(11200, Meaning::File, "Twilio could not fetch a file from this gateway; check twilio.public_url"),
    code(11751, Meaning::Lasting, "the files are too large together"),
    code(12300, Meaning::Lasting, "the file is of a type that Twilio does not take"),
    code(14107, Meaning::Passing, "too many messages are sent from this number"),
    code(20003, Meaning::Lasting, "Twilio does not take the login; check twilio.account_sid, twilio.auth_token or the API key"),
    code(20404, Meaning::Lasting, "Twilio knows no such thing; check twilio.account_sid"),
    code(20429, Meaning::Passing, "Twilio has no time for it now"),
    code(21211, Meaning::Lasting, "the number does not exist"),
    code(21212, Meaning::Lasting, "the number to send from cannot be used; check twilio.sms_from"),
    code(21408, Meaning::Lasting, "the account may not send to that country; allow it under Messaging → Settings → Geo permissions"),
    code(21606, Meaning::Lasting, "the number to send from is not the account's; check twilio.sms_from"),
    code(21608, Meaning::Lasting, "a trial account sends to verified numbers only"),
    code(21610, Meaning::Lasting, "the person has sent STOP, and gets nothing until he sends START"),
    code(21611, Meaning::Passing, "too many messages wait to be sent from this number"),
    code(21612, Meaning::Lasting, "that number cannot be reached from this one"),
    code(21614, Meaning::Lasting, "the number is not a mobile one"),
    code(21617, Meaning::Lasting, "the text is too long"),
    code(21620, Meaning::Lasting, "Twilio takes no file from this gateway's address; check twilio.public_url"),
    code(21635, Meaning::Lasting, "the number is that of a landline"),
    code(21655, Meaning::Template, "there is no such template; check twilio.window_template and twilio.approval_template"),
    code(21656, Meaning::Template, "the template takes other variables"),
    code(21659, Meaning::Lasting, "the number to send from is none of Twilio's; check twilio.sms_from"),
    code(21660, Meaning::Lasting, "the number to send from is another account's; check twilio.sms_from and twilio.account_sid"),
    code(21661, Meaning::Lasting, "the number to send from cannot send SMS; check twilio.sms_from"),
    code(30001, Meaning::Passing, "too many messages wait at Twilio"),
    code(30002, Meaning::Lasting, "the account is suspended"),
    code(30003, Meaning::Passing, "the telephone cannot be reached now"),
    code(30004, Meaning::Lasting, "the person or his network blocks messages"),
    code(30005, Meaning::Lasting, "the number is not in service"),
    code(30006, Meaning::Lasting, "the number is that of a landline"),
    code(30007, Meaning::Lasting, "the network took it for spam"),
    code(30008, Meaning::Passing, "the network does not say why"),
    code(30019, Meaning::Lasting, "it is too large for the network"),
    code(30021, Meaning::Passing, "something went wrong in the messaging service"),
    code(30022, Meaning::Passing, "too many messages were sent to the United States"),
    code(30034, Meaning::Lasting, "the number is not registered for messages to the United States"),
    code(30410, Meaning::Passing, "the network did not answer in time"),
    code(30500, Meaning::Passing, "something went wrong at Twilio"),
    code(63001, Meaning::Lasting, "WhatsApp does not take the account's login"),
    code(63003, Meaning::Lasting, "the person has no WhatsApp"),
    code(63005, Meaning::Lasting, "WhatsApp does not take what is in it"),
    code(63007, Meaning::Lasting, "the number to send from has no WhatsApp; check twilio.whatsapp_from"),
    code(63010, Meaning::Passing, "something went wrong at WhatsApp"),
    code(63012, Meaning::Passing, "WhatsApp answered with an error of its own"),
    code(63013, Meaning::Lasting, "WhatsApp's rules were broken"),
    code(63014, Meaning::Lasting, "the person blocks messages from this number"),
    code(63015, Meaning::Lasting, "the person has not joined the sandbox, and has to send its join code"),
    code(63016, Meaning::Window, "the person has not written for a day; set twilio.window_template"),
    code(63017, Meaning::Passing, "too many messages were sent"),
    code(63018, Meaning::Passing, "too many messages were sent"),
    code(63019, Meaning::File, "WhatsApp could not fetch a file; check twilio.public_url"),
    code(63020, Meaning::Lasting, "Meta's business manager has not accepted Twilio's invitation, or its billing is not set up"),
    code(63021, Meaning::Lasting, "WhatsApp does not take what is in it, mostly the type of a file"),
    code(63024, Meaning::Lasting, "the person has no WhatsApp, or an old one"),
    code(63027, Meaning::Template, "the template is not there in that language"),
    code(63028, Meaning::Template, "the template takes another number of variables"),
    code(63032, Meaning::Lasting, "WhatsApp holds it back from this person"),
    code(63038, Meaning::Passing, "the account has sent as many messages as it may today"),
    code(63049, Meaning::Lasting, "WhatsApp holds it back from this person"),
    code(92007, Meaning::Template, "the template does not take these variables"),
];

/// Returns what an error means; one that is not known lasts.
pub(crate) fn meaning(code: u32) -> Meaning {
    find(code).map_or(Meaning::Lasting, |code| code.meaning)
}

/// Says what an error is, with its number.
pub(crate) fn words(code: u32) -> String {
    match find(code) {
        None if code == 0 => "Twilio does not say why".to_owned(),
        Some(found) => format!("{} (Twilio's error {code})", found.about),
        None => format!("Twilio's error {code}; its documentation says what that is"),
    }
}

/// Returns how long nothing is to be tried after an error, if that is longer than usual.
pub(crate) fn pause(code: u32) -> Option<Duration> {
    (code == DAILY).then_some(TODAY)
}

fn find(code: u32) -> Option<&'static Code> {
    CODES.iter().find(|known| known.code == code)
}

/// What went wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Twilio refused it; 0 if it gave no code.
    Refused {
        status: u16,
        code: u32,
        after: Option<Duration>,
    },
    /// Nobody was there to take it.
    Unreachable,
    /// The connection was lost before there was an answer.
    Cut,
    Late,
    /// It was done, but the answer makes no sense.
    Garbled,
    /// It never left, and never will.
    Unmade(String),
}

/// How long nothing is tried after the login was refused: somebody has to do
/// something about it first.
const REFUSED: Duration = Duration::from_secs(60);
/// The error that says that enough was sent for today, and how long nothing is tried
/// after it, unless the outbox allows no wait as long: the limit is that of the last 24
/// hours.
const DAILY: u32 = 63038;
const TODAY: Duration = Duration::from_secs(3 * 60 * 60);
/// How long nothing is tried if Twilio has no time and does not say until when.
const LIMITED: Duration = Duration::from_secs(5);

impl Trouble {
    /// Says whether the login was refused.
    pub(crate) fn is_login_refused(&self) -> bool {
        matches!(self, Self::Refused { status: 401, .. })
    }

    /// Says whether it would be refused again, whoever asks.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 403..=428 | 430..=499, .. })
    }

    /// Says whether it was refused because the person has not written for a day.
    pub(crate) fn is_window(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if meaning(*code) == Meaning::Window)
    }

    /// Says whether it is not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&judge(self).reason)
    }
}

impl From<Trouble> for SendError {
    fn from(trouble: Trouble) -> Self {
        judge(&trouble)
    }
}

/// Judges a call that failed.
fn judge(trouble: &Trouble) -> SendError {
    let soon = Next::Retry { after: None };
    let (reason, next, is_unsure) = match trouble {
        Trouble::Refused { status, code, after } => return refused(*status, *code, *after),
        Trouble::Unreachable => ("Twilio cannot be reached".to_owned(), soon, false),
        Trouble::Cut => ("the connection to Twilio was lost".to_owned(), soon, true),
        Trouble::Late => ("Twilio did not answer in time".to_owned(), soon, true),
        Trouble::Garbled => ("Twilio's answer could not be read".to_owned(), soon, true),
        Trouble::Unmade(why) => (why.clone(), Next::GiveUp, false),
    };
    SendError { reason, next, is_unsure }
}

fn refused(status: u16, code: u32, after: Option<Duration>) -> SendError {
    let reason = match code {
        0 => format!("Twilio answered with {status}"),
        code => words(code),
    };
    let retry = |after| Next::Retry { after };
    let next = match (status, code) {
        (401 | 403, _) => retry(Some(REFUSED)),
        // Also told as a 429, which else means moments.
        (_, code) if pause(code).is_some() => retry(after.max(pause(code))),
        (429, _) => retry(after.or(Some(LIMITED))),
        (500.., _) => retry(after),
        (_, code) => match meaning(code) {
            Meaning::Passing | Meaning::File | Meaning::Window => retry(after),
            Meaning::Template | Meaning::Lasting => Next::GiveUp,
        },
    };
    // Something behind the one that answers may have done it all the same.
    SendError { reason, next, is_unsure: status >= 500 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_is_there_twice() {
        let mut codes: Vec<u32> = CODES.iter().map(|code| code.code).collect();
        codes.dedup();
        assert!(codes.is_sorted());
        assert_eq!(codes.len(), CODES.len());
    }

    #[test]
    fn what_is_said_of_an_error_is_one_reason() {
        // The log shows what is before it, and would leave the number out.
        for code in CODES {
            assert!(!code.about.contains(": "), "{}", code.about);
        }
    }

    #[test]
    fn what_passes_by_twilios_own_words_is_sent_again_and_nothing_else() {
        let of = |meaning| {
            let of_it = CODES.iter().filter(move |code| code.meaning == meaning);
            of_it.map(|code| code.code).collect::<Vec<_>>()
        };
        let passing = [
            14107, 20429, 21611, 30001, 30003, 30008, 30021, 30022, 30410, 30500, 63010, 63012,
            63017, 63018, 63038,
        ];
        assert_eq!(of(Meaning::Passing), passing);
        assert_eq!(of(Meaning::File), [11200, 63019]);
        assert_eq!(of(Meaning::Window), [63016]);
        assert_eq!(of(Meaning::Template), [21655, 21656, 63027, 63028, 92007]);
    }

    #[test]
    fn an_error_says_whether_to_try_again() {
        let judged = |status, code| refused(status, code, None);
        assert_eq!(judged(400, 21211).next, Next::GiveUp);
        assert_eq!(judged(400, 63027).next, Next::GiveUp);
        assert_eq!(judged(400, 63018).next, Next::Retry { after: None });
        assert_eq!(judged(429, 20429).next, Next::Retry { after: Some(LIMITED) });
        assert_eq!(judged(401, 20003).next, Next::Retry { after: Some(REFUSED) });
        assert_eq!(judged(400, DAILY).next, Next::Retry { after: Some(TODAY) });
        assert_eq!(judged(429, DAILY).next, Next::Retry { after: Some(TODAY) });
        assert!(judged(502, 0).is_unsure && !judged(429, 20429).is_unsure);
        assert!(judged(400, 99999).reason.contains("99999"));
        let slow = refused(429, 20429, Some(Duration::from_secs(7)));
        assert_eq!(slow.next, Next::Retry { after: Some(Duration::from_secs(7)) });
    }
}
