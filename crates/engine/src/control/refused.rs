//! A request to the control interface that fails: its status and what to say.

use super::Failure;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

/// A request that fails.
pub(super) struct Refused(pub(super) StatusCode, pub(super) String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(Failure { error: self.1 })).into_response()
    }
}

pub(super) fn ended() -> Refused {
    Refused(StatusCode::SERVICE_UNAVAILABLE, "the engine has ended".to_owned())
}

/// A request that changes something must declare that it is JSON. A page in a browser cannot do
/// that without the user's consent.
pub(super) fn is_json(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let what = "write the header 'content-type: application/json'".to_owned();
    Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, what))
}

/// Reads the body of a request, which is JSON.
pub(super) fn parsed<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<T, Refused> {
    is_json(headers)?;
    let body = body.map_err(|rejection| Refused(rejection.status(), rejection.body_text()))?;
    serde_json::from_slice(&body).map_err(|error| {
        Refused(StatusCode::BAD_REQUEST, format!("not a request: {error}: see /openapi.json"))
    })
}
