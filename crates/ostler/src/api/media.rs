//! Files on offer, for services that fetch what they are to send. Whoever has the
//! link gets the file, once; nobody else learns whether there is one.

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{
        HeaderValue, Method,
        header::{
            ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH,
            CONTENT_SECURITY_POLICY, CONTENT_TYPE,
        },
    },
    response::{IntoResponse as _, Response},
};
use tokio::task;
use tokio_util::io::ReaderStream;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{ApiError, Service, error::ErrorBody};
use crate::{
    clock::Millis,
    media::hosting::{Hosting, Offered},
};

/// What is said where there is no file. By it this gateway is known.
pub(crate) const NO_FILE: &str = "there is nothing here";
/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(media))
}

/// Fetch a file that an answer sends
///
/// For services such as Twilio, which fetch what they are to send. A link is in no
/// other answer of this API, works once, and for two minutes; `HEAD` does not use it
/// up, and works after it as well. Whatever is wrong with one, the answer is the same.
#[utoipa::path(get, path = "/media/{token}", tag = "media",
    params(("token" = String, Path, description = "The word of the link")),
    responses(
        (status = 200, description = "The file, of the type that its content is of",
            body = String, content_type = "*/*"),
        (status = 404, description = "There is no such link, or it was used, or it is over",
            body = ErrorBody),
    ),
)]
async fn media(
    State(service): State<Service>,
    method: Method,
    token: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let nothing = || ApiError::not_found(NO_FILE);
    let (Ok(Path(token)), Some(dir)) = (token, service.policy().media.dir.clone()) else {
        return Err(nothing());
    };
    let is_head = method == Method::HEAD;
    let find = move || {
        let (hosting, now) = (Hosting::new(dir), Millis::now());
        if is_head { hosting.look(&token, now) } else { hosting.take(&token, now) }
    };
    let found = task::spawn_blocking(find).await.inspect_err(|error| {
        tracing::error!(%error, "a file on offer was not looked for to the end");
    });
    let found = found.ok().flatten().ok_or_else(nothing)?;
    Ok(answer(found))
}

fn answer(offered: Offered) -> Response {
    let Offered { file, length, kind, name } = offered;
    let disposition = HeaderValue::from_str(&disposition(&name));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_LENGTH, HeaderValue::from(length)),
        (CONTENT_DISPOSITION, disposition.unwrap_or(HeaderValue::from_static("inline"))),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (ACCEPT_RANGES, HeaderValue::from_static("none")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ];
    let file = tokio::fs::File::from_std(file);
    let body = Body::from_stream(ReaderStream::with_capacity(file, PIECE));
    (headers, body).into_response()
}

/// Says what a file is called, in a way that old readers understand as well. Twilio
/// wants it to be `inline`; no browser would show it as a page, by its type.
fn disposition(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let exact: String = name
        .bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect();
    format!("inline; filename=\"{plain}\"; filename*=UTF-8''{exact}")
}

#[cfg(test)]
mod tests;
