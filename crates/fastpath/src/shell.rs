//! The link of `fastpath shell`: a program behind an emulated link (Linux).

use crate::error::{Error, Result};
use fastpath_lab::shell::AddressBlock;
use fastpath_spec::{self as spec, NetworkSpec, Topology, Warning};
use fastpath_units::Bytes;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const INFALLIBLE: &str = "writing to a string cannot fail";

/// The values of a link, as text of a spec. `up` is away from the program, `down` is towards it.
#[derive(Clone, Debug, Default)]
pub struct ShellLink {
    /// A kind of access; the other values override its values.
    pub preset: Option<String>,
    /// One-way delay of each direction.
    pub delay: Option<String>,
    /// Loss of each direction.
    pub loss: Option<String>,
    /// Rate of each direction.
    pub rate: Option<String>,
    /// Queue of each direction. With a trace, a limit in packets or bytes is one of mm-link: what
    /// waits counts, and of each packet the IP bytes and 4 more.
    pub queue: Option<String>,
    /// Bytes on the wire in addition to the frame.
    pub overhead: Option<String>,
    /// Values of the up direction: `KEY=VALUE`.
    pub up: Vec<String>,
    /// Values of the down direction: `KEY=VALUE`.
    pub down: Vec<String>,
    /// A Mahimahi trace instead of a rate in the up direction.
    pub trace_up: Option<PathBuf>,
    /// A Mahimahi trace instead of a rate in the down direction.
    pub trace_down: Option<PathBuf>,
}

impl ShellLink {
    /// Describes the link between the program (`inside`) and the machine (`outside`), which have
    /// the addresses of `block`.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with every mistake of the values.
    pub fn topology(&self, block: AddressBlock) -> Result<(Topology, Vec<Warning>)> {
        let [outside, inside] = block.ends();
        let mut text = format!(
            "[host.outside]\naddress = \"{outside}\"\n[host.inside]\naddress = \"{inside}\"\n\
             routes = {{ default = \"{}\" }}\n[[link]]\nbetween = [\"inside\", \"outside\"]\nname = \"shell\"\n",
            outside.addr()
        );
        let both = [
            ("preset", &self.preset),
            ("delay", &self.delay),
            ("loss", &self.loss),
            ("rate", &self.rate),
            ("queue", &self.queue),
            ("overhead", &self.overhead),
        ];
        // A queue of both directions is not written for the link.
        let is_of_mm_link = self.queue.as_deref().and_then(of_mm_link).is_some();
        let has_queue = |values: &[String], trace: &Option<PathBuf>| {
            trace.is_some() && is_of_mm_link || values.iter().any(|value| value.starts_with("queue="))
        };
        let has_traces = self.trace_up.is_some() || self.trace_down.is_some();
        let is_replaced =
            has_traces && has_queue(&self.up, &self.trace_up) && has_queue(&self.down, &self.trace_down);
        for (key, value) in both {
            if let Some(value) = value
                && !(key == "queue" && is_replaced)
            {
                writeln!(text, "{}", spec::assignment(key, value)).expect(INFALLIBLE);
            }
        }
        for (direction, values, path) in [
            ("inside_to_outside", &self.up, &self.trace_up),
            ("outside_to_inside", &self.down, &self.trace_down),
        ] {
            let values = self.direction(values, path.as_deref())?;
            writeln!(text, "{direction} = {{ {} }}", values.join(", ")).expect(INFALLIBLE);
        }
        let files = |path: &str| fs::read_to_string(path).map_err(|error| error.to_string());
        match spec::read(&text, &files) {
            Ok((NetworkSpec { mut topology, .. }, warnings)) => {
                for node in &mut topology.nodes {
                    node.interfaces[0].addresses.retain(|address| address.addr().is_ipv4());
                }
                Ok((topology, warnings))
            }
            Err(mistakes) => {
                let lines: Vec<String> =
                    mistakes.iter().map(|mistake| format!("{}; {}", mistake.what, mistake.instead)).collect();
                Err(Error::Mistakes(lines))
            }
        }
    }

    /// Returns the assignments of one direction.
    fn direction(&self, values: &[String], trace: Option<&Path>) -> Result<Vec<String>> {
        let own_queue = values.iter().rev().find_map(|value| value.strip_prefix("queue="));
        let mut values: Vec<String> = values.iter().map(|value| assignment(value)).collect::<Result<_>>()?;
        if let Some(path) = trace {
            match (own_queue.or(self.queue.as_deref()).map(of_mm_link), &self.preset) {
                (Some(Some(queue)), _) => {
                    values.retain(|value| !value.starts_with("queue"));
                    values.push(format!("queue = {queue}"));
                }
                // The default queue of mm-link.
                (None, None) => values.push(spec::assignment("queue", "unlimited")),
                _ => {}
            }
            let file = spec::assignment("file", &path.display().to_string());
            values.push(format!("trace = {{ {file}, format = \"mahimahi\" }}"));
        }
        Ok(values)
    }
}

/// Returns the queue of mm-link for a limit in packets or bytes; `None` for another queue.
fn of_mm_link(limit: &str) -> Option<String> {
    let limit = limit.trim();
    if let Some(packets) = limit.strip_suffix('p') {
        let packets: u32 = packets.trim().parse().ok()?;
        return Some(format!("{{ kind = \"mahimahi\", packets = {packets} }}"));
    }
    let bytes: Bytes = limit.parse().ok()?;
    Some(format!("{{ kind = \"mahimahi\", bytes = \"{bytes}\" }}"))
}

/// Converts `rate=1Mbit` to an assignment of a spec.
fn assignment(text: &str) -> Result<String> {
    match text.split_once('=') {
        Some((key, value)) if spec::is_key(key) => Ok(spec::assignment(key, value)),
        _ => Err(Error::Argument(format!("'{text}' is not a value of a link; write for example rate=1Mbit"))),
    }
}
