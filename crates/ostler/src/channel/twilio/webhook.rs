//! Twilio's calls: what somebody wrote, and what became of what was sent. Nobody
//! else's calls are taken, and what is said is stored before it is answered.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest, Request, State},
    http::{
        StatusCode, Uri,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::{sync::Notify, time};

use super::{
    delivery::{Delivered, Delivery},
    desk::Desk,
    heard::{Form, Heard, Malformed},
    signature,
};
use crate::{
    channel::{chat::intake::NotTaken, is_sid},
    config::Secret,
};

/// The longest call that is read. Twilio's are of a few kilobytes.
const BODY: usize = 64 * 1024;
/// How long it may take to read one.
const READ: Duration = Duration::from_secs(10);
/// The header that says who calls.
const SIGNATURE: &str = "x-twilio-signature";
/// What is said to everybody else. By it this gateway is known.
pub(super) const FORGED: &str = "this is not signed by Twilio\n";
/// How often the operator is told of calls that are not Twilio's.
const TOLD: Duration = Duration::from_secs(60);
/// What says that there is nothing to say yet.
const NOTHING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response></Response>";

/// Whoever answers.
pub(crate) struct Calls {
    pub(crate) desk: Desk,
    pub(crate) delivery: Delivery,
    pub(crate) account: String,
    /// Where the files of groups are.
    pub(crate) media: String,
    pub(crate) token: Secret,
    /// Where Twilio reaches this gateway.
    pub(crate) public_url: String,
    /// Told when a call was not taken.
    pub(crate) missed: Arc<Notify>,
    /// When the operator was last told of calls that are not Twilio's.
    pub(crate) told: Mutex<Option<Instant>>,
}

/// Why a call is not answered as Twilio would like.
enum Refused {
    Forged,
    Malformed(Malformed),
    NotNow,
}

/// Returns what can be called.
pub(crate) fn routes(calls: Calls) -> Router {
    Router::new()
        .route("/twilio/messages", post(messages))
        .route("/twilio/groups", post(groups))
        .route("/twilio/status", post(status))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(Arc::new(calls))
}

async fn messages(State(calls): State<Arc<Calls>>, Told(said): Told) -> Response {
    let done = async {
        let heard = Heard::read(Form(&said)).map_err(Refused::Malformed)?;
        if !calls.desk.knows_groups().await {
            return Err(Refused::NotNow);
        }
        calls.desk.heard(&heard).await.map_err(Refused::from)
    };
    calls.begin().end(done).await
}

async fn groups(State(calls): State<Arc<Calls>>, Told(said): Told) -> Response {
    let done = async {
        let heard = Heard::read_group(Form(&said), &calls.media).map_err(Refused::Malformed)?;
        let group = Form(&said).get("ConversationSid").filter(|group| is_sid(group, "CH"));
        if let Some(group) = group {
            calls.desk.bound.hear_of(group, heard.as_ref()).await;
        }
        match heard {
            Some(heard) => calls.desk.heard(&heard).await.map_err(Refused::from),
            None => Ok(()),
        }
    };
    calls.begin().end(done).await
}

async fn status(State(calls): State<Arc<Calls>>, Told(said): Told) -> Response {
    let done = async {
        let delivered = Delivered::read(Form(&said)).map_err(Refused::Malformed)?;
        let noted = calls.delivery.note(&delivered).await;
        noted.map_err(|error| Refused::from(NotTaken::Store(error)))
    };
    calls.begin().end(done).await
}

/// What a call of Twilio's says.
struct Told(Vec<(String, String)>);

impl FromRequest<Arc<Calls>> for Told {
    type Rejection = Response;

    /// Reads a call, if it is Twilio's. Who does not even say so is not listened to.
    async fn from_request(request: Request, calls: &Arc<Calls>) -> Result<Self, Response> {
        let uri = request.uri().clone();
        let signature = request.headers().get(SIGNATURE);
        let Some(signature) = signature.and_then(|it| it.to_str().ok()).map(str::to_owned) else {
            calls.warn(uri.path());
            return Err(Refused::Forged.into_response());
        };
        let body = match time::timeout(READ, Bytes::from_request(request, calls)).await {
            Ok(body) => body.map_err(IntoResponse::into_response)?,
            Err(_) => return Err(StatusCode::REQUEST_TIMEOUT.into_response()),
        };
        let said = calls.read(&uri, &signature, &body);
        said.map(Self).map_err(IntoResponse::into_response)
    }
}

impl Calls {
    /// Returns what a call says, if it is Twilio's, and about this account.
    fn read(
        &self,
        uri: &Uri,
        signature: &str,
        body: &[u8],
    ) -> Result<Vec<(String, String)>, Refused> {
        let said: Vec<(String, String)> = form_urlencoded::parse(body).into_owned().collect();
        if !signature::is_good(self.token.reveal(), &self.url(uri), &said, signature) {
            self.warn(uri.path());
            return Err(Refused::Forged);
        }
        if Form(&said).get("AccountSid").is_some_and(|account| account != self.account) {
            tracing::warn!("a call is about another account");
            return Err(Refused::Forged);
        }
        Ok(said)
    }

    /// Tells the operator of a call that is not Twilio's, now and then: anybody can make
    /// as many as he likes.
    fn warn(&self, path: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|at| at.elapsed() < TOLD) {
            return;
        }
        *told = Some(Instant::now());
        tracing::warn!(
            path,
            "a call was not signed by Twilio for {}; check twilio.auth_token and \
             twilio.public_url if it was Twilio's. There may be more of them in the next minute",
            self.public_url
        );
    }

    /// Returns the URL that Twilio called, whatever stands between, as it is set there.
    fn url(&self, uri: &Uri) -> String {
        let path = uri.path_and_query().map_or(uri.path(), |path| path.as_str());
        format!("{}{path}", self.public_url.trim_end_matches('/'))
    }

    fn begin(&self) -> Call<'_> {
        Call { missed: &self.missed, is_taken: false }
    }
}

/// A call that is being answered. One that is not taken is asked for soon, also if
/// Twilio did not wait for the answer.
struct Call<'a> {
    missed: &'a Notify,
    is_taken: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_taken {
            self.missed.notify_one();
        }
    }
}

impl Call<'_> {
    async fn end(mut self, done: impl Future<Output = Result<(), Refused>>) -> Response {
        let done = done.await;
        self.is_taken = !matches!(done, Err(Refused::NotNow));
        match done {
            Ok(()) => ([(CONTENT_TYPE, "text/xml")], NOTHING).into_response(),
            Err(refused) => refused.into_response(),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Forged => (StatusCode::FORBIDDEN, FORGED).into_response(),
            Self::Malformed(why) => (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
            // It is found when Twilio is asked for it.
            Self::NotNow => {
                (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "5")], "not now\n").into_response()
            }
        }
    }
}

impl From<NotTaken> for Refused {
    fn from(why: NotTaken) -> Self {
        match why {
            NotTaken::Store(error) => {
                tracing::warn!(error = error.chain(), "a call of Twilio's waits for the store");
            }
            NotTaken::Stopping => {}
        }
        Self::NotNow
    }
}
