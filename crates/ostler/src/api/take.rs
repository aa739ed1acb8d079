//! Taking a request apart: bodies, parameters and ids, each with an error in the
//! usual envelope if it is wrong.

use std::{str::FromStr, time::Duration};

use axum::{
    RequestPartsExt as _,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::QueryRejection},
    http::{StatusCode, header::CONTENT_TYPE, request::Parts},
};
use serde::de::DeserializeOwned;
use tokio::time;

use super::{ApiError, Service};

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The body of a request, from JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Service> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, service: &Service) -> Result<Self, ApiError> {
        let Bytes(bytes) = Bytes::from_request(request, service).await?;
        parse(&bytes).map(Self)
    }
}

/// The body of a request as it came, known to be meant as JSON.
#[derive(Clone, Debug)]
pub(crate) struct Bytes(pub(crate) axum::body::Bytes);

impl FromRequest<Service> for Bytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, service: &Service) -> Result<Self, ApiError> {
        let sort = request.headers().get(CONTENT_TYPE).and_then(|sort| sort.to_str().ok());
        let sort = sort.and_then(|sort| sort.split(';').next()).map(str::trim);
        if !sort.is_some_and(|sort| sort.eq_ignore_ascii_case("application/json")) {
            let message = "the body must be JSON, with Content-Type: application/json";
            return Err(ApiError::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let max = service.policy().api.max_body;
        let read = axum::body::to_bytes(request.into_body(), max);
        let late = || {
            let message = "the body did not come in time";
            ApiError::with_status(StatusCode::REQUEST_TIMEOUT, message)
        };
        let read = time::timeout(PATIENCE, read).await.map_err(|_| late())?;
        let bytes = read.map_err(|error| {
            // A body that is too long has an error of its own below that of the body.
            let is_long = std::error::Error::source(&error)
                .is_some_and(|source| source.to_string().contains("length limit"));
            if is_long {
                let message = format!("the body is longer than {max} bytes");
                return ApiError::with_status(StatusCode::PAYLOAD_TOO_LARGE, message);
            }
            ApiError::bad_request("the body was cut off")
        })?;
        Ok(Self(bytes))
    }
}

/// Reads JSON; what is wrong with it is told with its place.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // A list would be taken for the values of the fields, in their order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::bad_request("the body is wrong: it must be an object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut json);
    let value =
        read.map_err(|error| ApiError::bad_request(format!("the body is wrong: {error}")))?;
    let ended = json.end();
    ended.map_err(|error| ApiError::bad_request(format!("the body is wrong: {error}")))?;
    Ok(value)
}

/// What stands behind the question mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned + 'static> FromRequestParts<Service> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, ApiError> {
        let wrong = |error: QueryRejection| ApiError::bad_request(error.body_text());
        let Query(params) = parts.extract::<Query<T>>().await.map_err(wrong)?;
        Ok(Self(params))
    }
}

/// The one name in a path. What cannot be one names nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<T>(pub(crate) T);

impl<T: FromStr> FromRequestParts<Service> for Named<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, ApiError> {
        let Path(name) = path::<String>(parts).await?;
        Ok(Self(id(&name)?))
    }
}

/// The two names in a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within<A, B>(pub(crate) A, pub(crate) B);

impl<A: FromStr, B: FromStr> FromRequestParts<Service> for Within<A, B> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, ApiError> {
        let Path((outer, inner)) = path::<(String, String)>(parts).await?;
        Ok(Self(id(&outer)?, id(&inner)?))
    }
}

async fn path<T: DeserializeOwned + Send + 'static>(
    parts: &mut Parts,
) -> Result<Path<T>, ApiError> {
    let path = parts.extract::<Path<T>>().await;
    path.map_err(|_| ApiError::not_found("there is nothing here"))
}

fn id<T: FromStr>(name: &str) -> Result<T, ApiError> {
    name.parse().map_err(|_| ApiError::not_found(format!("there is no {name:?}")))
}
