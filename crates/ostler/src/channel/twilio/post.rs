//! WhatsApp and SMS for as long as a gateway runs: one that can be called takes
//! calls; of several gateways on one store one asks, shows and sends.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::Router;
use tokio::sync::{Notify, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Line,
    bound::Bound,
    chat::TwilioChat,
    delivery::Delivery,
    desk::{Desk, Turnstile},
    poll::Poll,
    webhook::{self, Calls},
};
use crate::{
    background::Background,
    channel::{chat::intake::Intake, duty::Duty, pace::Pace},
    config::Receive,
    gateway::{Gateway, policy::Policy},
    store::{Store, duties},
};

/// How long what is under way may take to end.
const ENDING: Duration = Duration::from_secs(3);

/// All of it.
#[derive(Debug)]
pub(crate) struct Post {
    work: Background,
    duty: Duty,
    /// What is done beside what happens next.
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Post {
    /// Starts it; returns what Twilio can call, too.
    pub(crate) fn start(
        line: Line,
        chats: Vec<TwilioChat>,
        gateway: Gateway,
        store: Store,
        policy: watch::Receiver<Arc<Policy>>,
        on_duty: watch::Sender<bool>,
    ) -> (Self, Router) {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let pace = Arc::new(Pace::new(policy.borrow().twilio.messages_per_minute));
        let intakes = chats.iter().map(|chat| {
            let intake = Intake {
                channel: chat.kind().channel(),
                people: chat.kind().channel(),
                chat: Arc::new(chat.clone()),
                gateway: gateway.clone(),
                store: store.clone(),
                pace: Arc::clone(&pace),
                tasks: tasks.clone(),
                stop: stop.clone(),
            };
            (chat.kind(), intake)
        });
        let Line { api, token, config, .. } = line;
        let own = [config.whatsapp_number(), config.sms_from.as_deref()];
        let own = own.into_iter().flatten().map(str::to_owned).collect();
        let bound = Bound::new(Arc::clone(&api));
        let turnstile = Turnstile::default();
        let desk = Desk { intakes: intakes.collect(), own, bound, policy, turnstile };
        let missed = Arc::new(Notify::new());
        let delivery = Delivery { store: store.clone(), chats };
        let is_called = config.receives() == Receive::Webhook;
        let routes = match (token, config.public_url.clone()) {
            (Some(token), Some(public_url)) if is_called => webhook::routes(Calls {
                desk: desk.clone(),
                delivery: delivery.clone(),
                account: api.account_sid().to_owned(),
                media: api.media_url(),
                token,
                public_url,
                missed: Arc::clone(&missed),
                told: Mutex::default(),
            }),
            (_, _) => Router::new(),
        };
        let owner = gateway.name().to_owned();
        let duty = Duty { store, name: duties::TWILIO, owner, is_own: on_duty };
        let poll = Poll { api, desk, delivery, config, missed };
        let kept = duty.clone();
        let work = Background::start(|stop| async move {
            while let Some(lease) = kept.obtain(&stop).await {
                let until = stop.child_token();
                let polling = poll.work(&until);
                tokio::pin!(polling);
                tokio::select! {
                    () = &mut polling => {}
                    () = kept.keep(lease) => {
                        tracing::warn!("another gateway speaks for Twilio now");
                        // What it deals with just now is dealt with to the end.
                        until.cancel();
                        polling.await;
                    }
                }
            }
        });
        (Self { work, duty, tasks, stop }, routes)
    }

    /// Takes no more messages. Answers can still be sent, until the duty is given back.
    pub(crate) async fn stop(self) -> Duty {
        self.stop.cancel();
        self.tasks.close();
        if !self.work.stop(ENDING).await {
            tracing::warn!("Twilio did not answer before the gateway stopped");
        }
        self.tasks.wait().await;
        self.duty
    }
}
