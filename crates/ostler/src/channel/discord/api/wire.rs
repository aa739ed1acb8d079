//! The way to Discord and back: a call as it leaves, and whatever it was answered
//! with. It is gone here by itself, for what twilight calls with makes a call again
//! that Discord had no time for, and keeps to itself how long Discord wants it to wait.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822};
use reqwest::{
    Client, Response, Url,
    header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderValue},
    redirect::Policy,
};
use twilight_http::request::Request;

use super::{ApiError, Trouble};
use crate::clients;

/// How long it may take to get through.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest answer that is read: a hundred messages, each with all that it can have.
const ANSWER: usize = 32 * 1024 * 1024;
/// What Discord wants to know of whoever calls.
const CALLER: &str =
    concat!("DiscordBot (", env!("CARGO_PKG_REPOSITORY"), ", ", env!("CARGO_PKG_VERSION"), ")");

/// What calls Discord.
pub(super) struct Wire {
    client: Client,
    /// What every path is put behind.
    base: String,
    token: HeaderValue,
}

/// What a call was answered with.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Wire {
    pub(super) fn new(token: &str, base: String) -> Result<Self, ApiError> {
        let mut token =
            HeaderValue::try_from(format!("Bot {token}")).map_err(|_| ApiError::Token)?;
        token.set_sensitive(true);
        let is_secure = base.starts_with("https:");
        let client = Client::builder();
        let client = if is_secure { client } else { client.tls_certs_only([]) };
        let client = client
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .user_agent(CALLER)
            .build()
            .map_err(|_| ApiError::Encryption)?;
        Ok(Self { client, base, token })
    }

    /// Makes a call ready, so that it can be sent as often as it has to be.
    pub(super) fn prepare(&self, request: &Request) -> Result<reqwest::Request, Trouble> {
        let unmade = Trouble::Unmade("it cannot be written");
        let url = Url::parse(&format!("{}/{}", self.base, request.path()));
        let method = reqwest::Method::from_bytes(request.method().name().as_bytes());
        let (Ok(url), Ok(method)) = (url, method) else { return Err(unmade) };
        let mut prepared = reqwest::Request::new(method, url);
        let (body, kind) = match (request.form(), request.body()) {
            (Some(form), _) => (form.clone().build(), HeaderValue::try_from(form.content_type())),
            (None, Some(json)) => (json.to_vec(), Ok(HeaderValue::from_static("application/json"))),
            (None, None) => {
                prepared.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
                return Ok(self.signed(prepared, request));
            }
        };
        prepared.headers_mut().insert(CONTENT_TYPE, kind.map_err(|_| unmade)?);
        *prepared.body_mut() = Some(body.into());
        Ok(self.signed(prepared, request))
    }

    fn signed(&self, mut prepared: reqwest::Request, request: &Request) -> reqwest::Request {
        if request.use_authorization_token() {
            prepared.headers_mut().insert(AUTHORIZATION, self.token.clone());
        }
        prepared
    }

    /// Sends a call, and reads what it is answered with.
    pub(super) async fn send(&self, prepared: &reqwest::Request) -> Result<Answer, Trouble> {
        let again = prepared.try_clone().ok_or(Trouble::Unmade("it cannot be written"))?;
        let response = self.client.execute(again).await.map_err(|error| lost(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, body: body(response).await? })
    }
}

impl Answer {
    #[cfg(test)]
    pub(super) fn new(status: u16, headers: &[(&'static str, &str)], body: &str) -> Self {
        let header = |(name, value): &(&'static str, &str)| {
            (reqwest::header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        Self { status, headers: headers.iter().map(header).collect(), body: body.into() }
    }

    /// Returns a header, if it can be read.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
    }

    /// Returns when it was given, by Discord's clock.
    pub(super) fn date(&self) -> Option<Timestamp> {
        let date = self.header(DATE.as_str())?;
        rfc2822::DateTimeParser::new().parse_timestamp(date).ok()
    }
}

async fn body(response: Response) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    match clients::read_start(response, ANSWER, &mut body).await {
        Ok(false) => Ok(body),
        Ok(true) => Err(Trouble::Garbled),
        Err(_) => Err(Trouble::Cut),
    }
}

/// Says what became of a call that was not answered.
fn lost(error: &reqwest::Error) -> Trouble {
    if error.is_connect() {
        Trouble::Unreachable
    } else if error.is_timeout() {
        Trouble::Late { was_sent: true }
    } else if error.is_builder() {
        Trouble::Unmade("it cannot be written")
    } else {
        Trouble::Cut
    }
}
