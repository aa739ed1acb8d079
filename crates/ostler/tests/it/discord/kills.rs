//! Gateways that are killed in the middle of anything: after so many calls of theirs
//! as follow from a seed, which a failed test has printed.

use serde_json::json;

use super::rig::Rig;
use crate::{chance::Chance, discord_double::Message, support::LIMIT};

const KILLS: usize = 10;
/// How many calls a gateway makes at most until it is killed: those with which it starts,
/// and some for what it is asked.
const CALLS: u64 = 16;
/// How many words a long answer has; it takes three messages.
const WORDS: usize = 500;

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

fn text_of<'a>(said: impl IntoIterator<Item = &'a Message>) -> String {
    said.into_iter().map(|message| message.content.as_str()).collect()
}

#[test]
fn nothing_gets_lost_or_doubled_whenever_it_is_killed() {
    let seed = Chance::seed();
    eprintln!("OSTLER_TEST_SEED={seed}");
    let mut chance = Chance::new(seed);
    let mut rig = Rig::with(|_, settings| {
        settings["discord"]["messages_per_minute"] = json!(1000);
    });
    // It is to be killed in the middle of things and not in the middle of waiting.
    rig.discord.relax();
    let channels = [rig.channel, rig.discord.channel(rig.guild, "barn")];
    let mut asked: Vec<Asked> = Vec::new();
    let ask = |rig: &Rig, chance: &mut Chance, asked: &mut Vec<Asked>| {
        let channel = channels[chance.place(2)];
        let next = Asked { channel, number: asked.len(), is_long: chance.below(4) == 0 };
        next.say(rig);
        asked.push(next);
    };
    // Of what was said before the very first session nobody knows.
    for channel in channels {
        rig.discord.say(channel, rig.bob, &rig.mentioning("sim:echo=begin"));
        rig.wait_for_text_in(channel, "You said begin.");
    }
    for _ in 0..KILLS {
        let n_last = rig.discord.requests().len() as u64 + chance.below(CALLS);
        ask(&rig, &mut chance, &mut asked);
        ask(&rig, &mut chance, &mut asked);
        let last = asked.last().unwrap();
        rig.discord.wait_for("calls of the bot", LIMIT, |world| {
            // It may have nothing more to say.
            let is_enough = world.requests().len() as u64 >= n_last;
            let said = world.messages(last.channel).into_iter();
            let text = text_of(said.filter(|message| message.author != rig.ann));
            (is_enough || text.contains(last.words().last().unwrap())).then_some(())
        });
        drop(rig.daemon.take());
        // Nobody hears that but the next.
        ask(&rig, &mut chance, &mut asked);
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
