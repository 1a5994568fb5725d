//! A request to the control interface that fails: its status and what to say.

use super::Failure;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

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
