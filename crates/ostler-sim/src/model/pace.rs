//! How a rendered answer is spread over time: a pure plan, and the one place
//! that carries it out.

use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::behaviour::LONGEST;
use super::reply::Pace;

/// A piece of a response body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Belongs to the frame of the answer and is never held back.
    Frame(String),
    /// Carries content; pauses, stalls and cuts happen between these.
    Delta(String),
}

/// One step in the delivery of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Send(String),
    Wait(Duration),
    /// Sends nothing until the client leaves, then cuts.
    Hold,
    Cut,
}

/// Plans the delivery of a body. `error` ends it for [`Pace::ErrorAtHalf`].
pub(crate) fn plan(pieces: Vec<Piece>, pace: &Pace, error: String) -> Vec<Step> {
    let n_deltas = pieces.iter().filter(|piece| matches!(piece, Piece::Delta(_))).count();
    let half = n_deltas / 2;
    match pace {
        Pace::AtOnce => pieces.into_iter().map(|piece| Step::Send(piece.into_text())).collect(),
        Pace::Over(total) => {
            let pause = *total / u32::try_from(n_deltas.max(1)).unwrap_or(u32::MAX);
            pieces
                .into_iter()
                .flat_map(|piece| match piece {
                    Piece::Frame(text) => vec![Step::Send(text)],
                    Piece::Delta(text) => vec![Step::Wait(pause), Step::Send(text)],
                })
                .collect()
        }
        Pace::Silence => vec![Step::Hold],
        Pace::Stall => first_deltas(pieces, half).chain([Step::Hold]).collect(),
        Pace::Cut => first_deltas(pieces, half).chain([Step::Wait(SETTLE), Step::Cut]).collect(),
        Pace::ErrorAtHalf => {
            first_deltas(pieces, half).chain([Step::Wait(SETTLE), Step::Send(error)]).collect()
        }
    }
}

/// Cuts a text into the pieces in which a model would stream it: short ones,
/// but never more than [`MAX_PIECES`] so that long answers stay cheap.
pub(crate) fn chunks(text: &str) -> Vec<&str> {
    let size = (text.len() / MAX_PIECES).max(MIN_PIECE_BYTES);
    let mut chunks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.ceil_char_boundary(size);
        let Some((chunk, tail)) = rest.split_at_checked(end) else {
            break;
        };
        chunks.push(chunk);
        rest = tail;
    }
    chunks
}

/// The connection is dropped without the end of the response.
#[derive(Debug)]
pub(crate) struct CutOff;

/// Carries out a plan until its end, or until the client or the server goes.
pub(crate) async fn play(
    steps: Vec<Step>,
    body: Sender<Result<String, CutOff>>,
    stop: CancellationToken,
) {
    // Every arm may be dropped half-way: an answer that is given up needs no end.
    tokio::select! {
        () = deliver(steps, &body) => {}
        () = body.closed() => {}
        // A full channel means that the client does not read; it sees the end
        // of the connection instead of the cut.
        () = stop.cancelled() => { body.try_send(Err(CutOff)).ok(); }
    }
}

async fn deliver(steps: Vec<Step>, body: &Sender<Result<String, CutOff>>) {
    for step in steps {
        // A failed send means that the client has left: nobody is left to tell.
        let sent = match step {
            Step::Send(text) => body.send(Ok(text)).await,
            Step::Wait(pause) => {
                tokio::time::sleep(pause).await;
                Ok(())
            }
            Step::Hold => {
                tokio::time::sleep(LONGEST).await;
                body.send(Err(CutOff)).await
            }
            Step::Cut => body.send(Err(CutOff)).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

impl Piece {
    fn into_text(self) -> String {
        match self {
            Self::Frame(text) | Self::Delta(text) => text,
        }
    }
}

/// Yields everything before delta number `n_deltas`.
fn first_deltas(pieces: Vec<Piece>, n_deltas: usize) -> impl Iterator<Item = Step> {
    let mut seen = 0;
    pieces
        .into_iter()
        .take_while(move |piece| {
            if matches!(piece, Piece::Delta(_)) {
                seen += 1;
            }
            seen <= n_deltas
        })
        .map(|piece| Step::Send(piece.into_text()))
}

/// An aborted connection takes what was not sent yet with it, so a cut comes
/// only after the half before it had time to leave. An error waits too, because
/// Google's client finds one only when nothing else arrives with it.
const SETTLE: Duration = Duration::from_millis(100);
const MAX_PIECES: usize = 50;
const MIN_PIECE_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    fn pieces() -> Vec<Piece> {
        let delta = |text: &str| Piece::Delta(text.to_owned());
        vec![
            Piece::Frame("<".to_owned()),
            delta("a"),
            delta("b"),
            delta("c"),
            delta("d"),
            Piece::Frame(">".to_owned()),
        ]
    }

    fn send(text: &str) -> Step {
        Step::Send(text.to_owned())
    }

    #[test]
    fn each_pace_ends_where_it_says() {
        let plan = |pace| plan(pieces(), &pace, "!".to_owned());
        let half = [send("<"), send("a"), send("b")];
        let half_then = |last| half.iter().cloned().chain([last]).collect::<Vec<_>>();
        assert_eq!(plan(Pace::Silence), [Step::Hold]);
        assert_eq!(plan(Pace::Stall), half_then(Step::Hold));
        assert_eq!(plan(Pace::Cut).first_chunk(), Some(&half));
        assert_eq!(plan(Pace::Cut).last(), Some(&Step::Cut));
        assert_eq!(plan(Pace::ErrorAtHalf).first_chunk(), Some(&half));
        assert_eq!(plan(Pace::ErrorAtHalf).last(), Some(&send("!")));
        assert_eq!(plan(Pace::AtOnce).len(), 6);
    }

    #[test]
    fn chunks_keep_every_character() {
        let text = "zwölf Boxkämpfer 🎉🎉🎉 jagen Viktor".repeat(100);
        let chunks = chunks(&text);
        assert!(chunks.len() <= MAX_PIECES + 1, "{}", chunks.len());
        assert_eq!(chunks.concat(), text);
        assert_eq!(super::chunks(""), Vec::<&str>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_takes_the_time_it_was_given() {
        let steps = plan(pieces(), &Pace::Over(Duration::from_secs(8)), String::new());
        let (tx, mut rx) = mpsc::channel(16);
        let begun = Instant::now();
        play(steps, tx, CancellationToken::new()).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(8));
        let mut text = String::new();
        while let Some(piece) = rx.recv().await {
            text.push_str(&piece.expect("no cut"));
        }
        assert_eq!(text, "<abcd>");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_bounded_and_ends_in_a_cut() {
        let (tx, mut rx) = mpsc::channel(16);
        let begun = Instant::now();
        play(vec![Step::Hold], tx, CancellationToken::new()).await;
        assert_eq!(begun.elapsed(), LONGEST);
        assert!(matches!(rx.recv().await, Some(Err(CutOff))));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_when_the_client_leaves_or_the_server_stops() {
        let begun = Instant::now();
        let (tx, rx) = mpsc::channel(16);
        drop(rx);
        play(vec![Step::Hold], tx, CancellationToken::new()).await;
        let (tx, mut rx) = mpsc::channel(16);
        let stop = CancellationToken::new();
        stop.cancel();
        play(vec![Step::Hold], tx, stop).await;
        assert!(matches!(rx.recv().await, Some(Err(CutOff))));
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
