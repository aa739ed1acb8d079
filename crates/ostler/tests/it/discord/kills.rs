//! Gateways that are killed in the middle of anything: after so many calls of theirs
//! as follow from a seed, which a failed test has printed.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::rig::Rig;
use crate::{discord_double::Message, support::LIMIT};

const KILLS: usize = 10;
/// How much is asked of each gateway. It makes a call for each at least.
const ASKED: u64 = 4;
/// How many words a long answer has; it takes three messages.
const WORDS: usize = 500;

/// Numbers that follow from a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = u64::try_from(since.as_micros()).unwrap();
        #[expect(clippy::print_stdout, reason = "only a test that fails shows it")]
        {
            println!("the seed is {seed}");
        }
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// What was asked for in a channel, by its number.
struct Asked {
    channel: u64,
    number: usize,
    is_long: bool,
}

impl Asked {
    /// What has to be in the answers once, all of it.
    fn words(&self) -> Vec<String> {
        let number = self.number;
        match self.is_long {
            true => (0..WORDS).map(|word| format!("m{number:02}w{word:03}")).collect(),
            false => vec![format!("You said m{number:02}.")],
        }
    }

    fn say(&self, rig: &Rig) {
        let number = self.number;
        let text = match self.is_long {
            true => self.words().join("-"),
            false => format!("m{number:02}"),
        };
        // Some are answered at once, and some grow for a while.
        let pace = if number.is_multiple_of(2) { "" } else { "sim:slow=150 " };
        let text = rig.mentioning(&format!("{pace}sim:echo={text}"));
        rig.discord.say(self.channel, rig.ann, &text);
    }
}

fn text_of(said: &[Message]) -> String {
    said.iter().map(|message| message.content.as_str()).collect()
}

#[test]
fn nothing_gets_lost_or_doubled_whenever_it_is_killed() {
    let mut numbers = Numbers::start();
    let mut rig = Rig::with(|_, settings| {
        settings["discord"]["messages_per_minute"] = json!(1000);
    });
    // It is to be killed in the middle of things and not in the middle of waiting.
    rig.discord.relax();
    let channels = [rig.channel, rig.discord.channel(rig.guild, "barn")];
    let mut asked: Vec<Asked> = Vec::new();
    let mut ask = |rig: &Rig, numbers: &mut Numbers| {
        let channel = channels[usize::from(numbers.below(2) == 0)];
        let next = Asked { channel, number: asked.len(), is_long: numbers.below(4) == 0 };
        next.say(rig);
        asked.push(next);
    };
    for _ in 0..KILLS {
        let n_before = rig.discord.requests().len();
        for _ in 0..ASKED {
            ask(&rig, &mut numbers);
        }
        let n_last = n_before + usize::try_from(numbers.below(ASKED + 1)).unwrap();
        rig.discord.wait_for("calls of the bot", LIMIT, |world| {
            (world.requests().len() >= n_last).then_some(())
        });
        drop(rig.daemon.take());
        // Nobody hears that but the next.
        ask(&rig, &mut numbers);
        rig.crash_and_start();
    }
    for channel in channels {
        rig.wait_for("all answers", channel, |said| {
            let text = text_of(said);
            let mut here = asked.iter().filter(|asked| asked.channel == channel);
            here.all(|asked| asked.words().iter().all(|word| text.contains(word)))
        });
        rig.discord.say(channel, rig.bob, &rig.mentioning("sim:echo=end"));
        rig.wait_for_text_in(channel, "You said end.");
        let text = text_of(&rig.said(channel));
        for word in asked.iter().filter(|it| it.channel == channel).flat_map(Asked::words) {
            assert_eq!(text.matches(&word).count(), 1, "{word}: {text}");
        }
    }
}
