//! A sender: one conversation, its messages one after the other, each until it
//! is accepted. After a cut the same message is sent again under the same id,
//! for nobody can know whether it was heard.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    books::{Accepted, Message},
    chance::Chance,
    client::Client,
    ledger::Ledger,
};

/// How many messages of a conversation may wait for their replies.
const AHEAD: usize = 3;
/// How long to wait for news before the next try, where nobody answers or has room.
const PAUSE: Duration = Duration::from_millis(10);
/// How long one message may take to be accepted.
const LIMIT: Duration = Duration::from_secs(120);
/// How long an agent takes at most to answer, so that kills meet turns.
const LONGEST_TURN_MS: u64 = 60;

pub(crate) struct Sender {
    pub(crate) conversation: usize,
    /// Where the reply is to go.
    pub(crate) url: String,
    /// The sockets of the gateways; one that answers will do.
    pub(crate) sockets: Vec<PathBuf>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) chance: Chance,
}

impl Sender {
    /// Sends until it is told that this is enough.
    pub(crate) fn run(mut self) {
        let mut client = None;
        let mut number = 0;
        while self.ledger.wait_for_room(self.conversation, AHEAD) {
            number += 1;
            let message = Message { conversation: self.conversation, number };
            let request = self.request(message);
            self.send(&mut client, message, &request);
        }
    }

    fn request(&mut self, message: Message) -> Value {
        let delay = self.chance.below(LONGEST_TURN_MS);
        json!({
            "type": "send",
            "conversation": format!("webhook:{}", self.url),
            "id": message.to_string(),
            "text": format!("sim:echo={message} sim:delay={delay}"),
            // Both ways to run an agent have to stand it.
            "cold": self.conversation.is_multiple_of(4),
        })
    }

    /// Sends one message until it is accepted.
    fn send(&mut self, client: &mut Option<Client>, message: Message, request: &Value) {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            let Some(answer) = self.ask(client, request) else {
                *client = None;
                self.ledger.wait_for_news(PAUSE);
                continue;
            };
            match answer["type"].as_str() {
                Some("accepted") => {
                    let job = answer["job"].as_str().expect("an accepted message has a job");
                    let accepted = Accepted { message, job: job.to_owned() };
                    self.ledger.accept(accepted, answer["again"] == true);
                    return;
                }
                Some("refused") if answer["code"] != "invalid_request" => {
                    self.ledger.refuse();
                    // Another gateway may have more to say, and this one later.
                    *client = None;
                    self.ledger.wait_for_news(PAUSE);
                }
                _ => panic!("{message} was answered with {answer}"),
            }
        }
        panic!("nobody accepts {message}");
    }

    /// Returns the answer, or nothing if there was none.
    fn ask(&mut self, client: &mut Option<Client>, request: &Value) -> Option<Value> {
        if client.is_none() {
            let limit = u64::try_from(self.sockets.len()).unwrap();
            let which = usize::try_from(self.chance.below(limit)).unwrap();
            *client = Client::connect(&self.sockets[which]).ok();
        }
        client.as_mut()?.ask(request).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        os::unix::net::UnixListener,
    };

    use super::*;

    /// Takes one connection: says hello, hears one line, and says this.
    fn serve_once(listener: &UnixListener, answer: &str) -> Value {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"{\"type\":\"hello\",\"protocol\":1,\"pid\":1}\n").unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_message_whose_answer_was_cut_or_refused_is_sent_again_under_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let ledger = Arc::new(Ledger::default());
        let sender = Sender {
            conversation: 3,
            url: "http://127.0.0.1:1/c/3".to_owned(),
            sockets: vec![socket],
            ledger: ledger.clone(),
            chance: Chance::new(1),
        };
        let thread = std::thread::spawn(move || sender.run());
        let answers = [
            "",
            "{\"type\":\"accep",
            "{\"type\":\"refused\",\"code\":\"queue_full\",\"message\":\"later\"}\n",
            "{\"type\":\"accepted\",\"job\":\"job_1\",\"again\":true}\n",
        ];
        let requests: Vec<_> = answers.iter().map(|answer| serve_once(&listener, answer)).collect();
        assert!(requests.iter().all(|request| *request == requests[0]), "{requests:#?}");
        assert_eq!(requests[0]["id"], "c3-1");
        for number in 2..=AHEAD {
            let answer = format!("{{\"type\":\"accepted\",\"job\":\"job_{number}\"}}\n");
            let request = serve_once(&listener, &answer);
            assert_eq!(request["id"], format!("c3-{number}"));
        }
        // Now it waits for a reply.
        ledger.end();
        thread.join().unwrap();
        let pages = ledger.pages();
        assert_eq!((pages.n_known, pages.n_refused), (1, 1));
        assert_eq!(pages.accepted[0].job, "job_1");
    }
}
