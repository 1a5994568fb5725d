//! The commands of `ovs-ofctl` as messages, and the answers of a switch as text. Python has the
//! connection.

use crate::failure::raise;
use fastpath::switching::ofctl::{Selection, answers, requests};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// The text of answers, and the refused lines with the reason.
type Read = (String, Vec<(u32, String)>);

/// Returns the messages of a command.
#[pyfunction]
pub(crate) fn ofctl_requests(
    command: &str,
    strict: bool,
    lines: &str,
    ports: BTreeMap<String, u32>,
) -> PyResult<Vec<u8>> {
    let selection = if strict { Selection::Strict } else { Selection::Loose };
    requests(command, selection, lines, &ports).map_err(raise)
}

/// Reads what a switch has sent so far; `None` until it has answered everything.
#[pyfunction]
pub(crate) fn ofctl_answers(received: &[u8]) -> PyResult<Option<Read>> {
    let found = answers(received).map_err(raise)?;
    Ok(found.map(|found| (found.text, found.refused)))
}
