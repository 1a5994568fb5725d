//! Controllers of a bridge.

use super::{references, refused_columns, text};
use crate::replica::{DbRow, Replica};
use crate::value::Uuid;
use std::time::Duration;

/// A controller of a bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerSpec {
    /// Its row.
    pub uuid: Uuid,
    /// Its address, as it is written.
    pub target: String,
    /// The longest wait before it is dialled again.
    pub max_backoff: Option<Duration>,
    /// Silence after which it gets an echo request; zero for never.
    pub inactivity_probe: Option<Duration>,
    /// What is written and not done.
    pub notes: Vec<String>,
}

/// Columns that say something unless they are empty.
const COLUMNS: &[&str] = &["local_ip", "controller_rate_limit", "controller_burst_limit", "other_config"];

/// Describes the controllers of a bridge, in the order of their targets.
pub(super) fn describe(replica: &Replica, bridge: &DbRow) -> Vec<ControllerSpec> {
    let one = |(uuid, row): (Uuid, &DbRow)| {
        let mut notes = refused_columns(row, COLUMNS);
        if row.column("enable_async_messages").only() == Some(&false.into()) {
            notes.push("enable_async_messages: a controller gets them until it asks for others".to_owned());
        }
        if row.column("connection_mode").text() == Some("in-band") {
            notes.push("connection_mode in-band: controllers are reached out of band".to_owned());
        }
        let millis = |name| {
            let millis = row.column(name).integer().and_then(|millis| u64::try_from(millis).ok());
            millis.map(Duration::from_millis)
        };
        ControllerSpec {
            uuid,
            target: text(row, "target").to_owned(),
            max_backoff: millis("max_backoff"),
            inactivity_probe: millis("inactivity_probe"),
            notes,
        }
    };
    let mut controllers: Vec<ControllerSpec> =
        references(replica, bridge, "controller", "Controller").map(one).collect();
    controllers.sort_by(|a, b| (&a.target, a.uuid).cmp(&(&b.target, b.uuid)));
    controllers
}
