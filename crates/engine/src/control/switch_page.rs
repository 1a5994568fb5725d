//! The dashboard of a switch (`fastpath switch --dashboard`): a page with its tables, and
//! `GET /switch`, which the page reads. The switch has no links, so it has no control interface.

use super::HttpAddress;
use super::server::Server;
use super::web;
use crate::switch_report::{SwitchCopy, SwitchReport};
use crate::switching::Control;
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The dashboard of a switch that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct SwitchPage(Server);

/// A switch, with the names of its ports.
#[derive(Clone)]
struct Shown {
    control: Control,
    names: Arc<BTreeMap<u32, String>>,
}

impl SwitchPage {
    /// Serves the page of a switch at `address`. `names` has the names of its ports.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub fn start(
        address: &HttpAddress,
        control: &Control,
        names: BTreeMap<u32, String>,
    ) -> io::Result<SwitchPage> {
        let shown = Shown { control: control.clone(), names: Arc::new(names) };
        let router = web::add_switch_files(Router::new()).route("/switch", get(switch)).with_state(shown);
        let server = Server::of_page(address, router).map_err(|(_, error)| error)?;
        Ok(SwitchPage(server))
    }

    /// Returns the address of the page for a browser, with its token.
    pub fn address(&self) -> String {
        self.0.dashboard.as_ref().map(super::HttpEndpoint::page).unwrap_or_default()
    }
}

/// The tables of the switch with their counters. A thread of its own reads them, because that takes
/// a while where there are many flows.
async fn switch(State(Shown { control, names }): State<Shown>) -> Json<SwitchReport> {
    let read = tokio::task::spawn_blocking(move || control.read(SwitchCopy::of).report(&names));
    Json(read.await.unwrap_or_default())
}
