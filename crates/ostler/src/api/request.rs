//! The name of a request: given by the caller, or made here. It is in the answer,
//! the log and the audit.

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue},
    middleware::Next,
    response::Response,
};

use crate::id::RequestId;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The longest name that a caller may give.
const LONGEST: usize = 128;

tokio::task_local! {
    static ID: String;
}

/// Returns the name of the request that is being answered.
pub(crate) fn id() -> String {
    ID.try_with(Clone::clone).unwrap_or_default()
}

/// Names a request.
pub(crate) async fn with_id(request: Request, next: Next) -> Response {
    let given = request.headers().get(HEADER).and_then(|name| name.to_str().ok());
    let id = given.filter(|name| is_usable(name)).map(str::to_owned);
    let id = id.unwrap_or_else(|| RequestId::new().to_string());
    let mut response = ID.scope(id.clone(), next.run(request)).await;
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, id);
    }
    response
}

/// Whether a caller's name for a request can be one: it is logged as it is.
fn is_usable(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain)
}
