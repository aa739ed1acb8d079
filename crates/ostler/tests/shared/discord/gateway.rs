//! The connections of the gateway: websockets with JSON, not compressed.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_websockets::{CloseCode, Message, ServerBuilder, WebSocketStream};

use super::{Shared, session::Out};

/// How long a client is given over two intervals to be heard.
const GRACE: Duration = Duration::from_secs(5);
/// How long a client is given to answer a close.
const FAREWELL: Duration = Duration::from_secs(2);

/// Accepts connections for as long as the double lives.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, Arc::clone(&shared)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    stream.set_nodelay(true).ok();
    let Ok((request, socket)) = ServerBuilder::new().accept(stream).await else { return };
    let query = request.uri().query().unwrap_or("").to_owned();
    let (sender, outbox) = mpsc::unbounded_channel();
    let number = shared.change(|world| world.connected(sender));
    let has = |pair: &str| query.split('&').any(|one| one == pair);
    if !has("v=10") {
        shared.change(|world| world.close(number, 4012, "Invalid API version."));
    } else if !has("encoding=json") || query.contains("compress=") {
        // What the double cannot speak, a client must not ask for.
        shared.change(|world| world.close(number, 4000, "Only JSON without compression."));
    }
    let code = converse(socket, outbox, number, &shared).await;
    shared.change(|world| world.disconnected(number, code));
}

/// Passes on what is said, until the end; returns the client's close code.
async fn converse(
    mut socket: WebSocketStream<TcpStream>,
    mut outbox: mpsc::UnboundedReceiver<Out>,
    number: u64,
    shared: &Shared,
) -> Option<u16> {
    let allowed = shared.lock().heartbeat * 2 + GRACE;
    let mut deadline = Instant::now() + allowed;
    loop {
        // Both sources keep what they have when the other one is first.
        tokio::select! {
            out = outbox.recv() => match out {
                Some(Out::Text(text)) => socket.send(Message::text(text)).await.ok()?,
                Some(Out::Close(code, reason)) => {
                    let code = CloseCode::try_from(code).ok()?;
                    socket.send(Message::close(Some(code), reason)).await.ok()?;
                    // The client's own frame only echoes ours.
                    timeout(FAREWELL, async { while let Some(Ok(_)) = socket.next().await {} })
                        .await
                        .ok();
                    return None;
                }
                Some(Out::Cut) | None => return None,
            },
            heard = socket.next() => {
                let heard = heard?.ok()?;
                if let Some((code, _)) = heard.as_close() {
                    return Some(u16::from(code));
                }
                if let Some(text) = heard.as_text() {
                    deadline = Instant::now() + allowed;
                    shared.change(|world| world.hear(number, text));
                }
            }
            () = sleep_until(deadline) => {
                deadline = Instant::now() + allowed;
                shared.change(|world| world.timed_out(number));
            }
        }
    }
}
