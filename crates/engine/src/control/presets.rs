//! `GET /presets`: values of common access networks, as `set` of `POST /set` takes them.

use axum::Json;
use fastpath_spec::{change_to_json, preset};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Values of a link for a kind of access network.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub(super) struct PresetReport {
    /// Its name: `lte`.
    name: String,
    /// A description for people.
    title: String,
    /// The publication that the numbers are from.
    source: String,
    /// The values from the subscriber to the network.
    #[schema(schema_with = super::values::schema)]
    up: Map<String, Value>,
    /// The values from the network to the subscriber.
    #[schema(schema_with = super::values::schema)]
    down: Map<String, Value>,
}

/// List the presets: values of common access networks, each with its source.
#[utoipa::path(get, path = "/presets", responses((status = 200, body = Vec<PresetReport>)))]
pub(super) async fn presets() -> Json<Vec<PresetReport>> {
    let report = |preset: &preset::Preset| PresetReport {
        name: preset.name.clone(),
        title: preset.title.clone(),
        source: preset.source.clone(),
        up: change_to_json(&preset.up),
        down: change_to_json(&preset.down),
    };
    Json(preset::all().iter().map(report).collect())
}
