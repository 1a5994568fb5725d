//! Where a replay meets the world: the edges at which captures enter, and the files of the frames
//! that are delivered.

use super::attachment::{CaptureAt, HostInterface};
use crate::error::{Error, Result};
use fastpath_net::{Delivery, Edge, EdgeId};
use fastpath_spec::Topology;
use fastpath_wire::pcap::{LINKTYPE_ETHERNET, Writer};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Ethernet header with two VLAN tags, bytes: what an MTU leaves out.
const ETHERNET_TAGGED: usize = 14 + 2 * 4;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Ends {
    /// The edges at which frames enter: of each capture, then of each array.
    pub(super) entrances: Vec<EdgeId>,
    /// The longest frame of the interface at each entrance.
    pub(super) longest: Vec<usize>,
    pub(super) exits: Exits,
}

/// The files of the frames that are delivered.
#[derive(Default)]
pub(super) struct Exits {
    /// The file for the frames that are delivered at each edge, as an index of `files`.
    pub(super) places: Vec<Option<usize>>,
    /// The files; `None` for one that another part of the network writes.
    pub(super) files: Vec<Option<OutputCapture>>,
}

/// A capture that is written.
pub(super) struct OutputCapture {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
}

impl Ends {
    /// Finds the edges of inputs, and creates the output files.
    pub(super) fn attach<'i>(
        topology: &Topology,
        edges: &[Edge],
        inputs: impl IntoIterator<Item = &'i HostInterface>,
        outputs: &[CaptureAt],
    ) -> Result<Ends> {
        let entrances: Vec<EdgeId> =
            inputs.into_iter().map(|at| at.edge(topology, edges)).collect::<Result<_>>()?;
        let mtu = |edge: &EdgeId| {
            let edge = edges[edge.0 as usize];
            topology.node(edge.node).interfaces[edge.interface].mtu as usize
        };
        let longest = entrances.iter().map(|edge| mtu(edge) + ETHERNET_TAGGED).collect();
        let mut places = vec![None; edges.len()];
        for (index, output) in outputs.iter().enumerate() {
            for edge in output.at.edges(topology, edges)? {
                let exit = &mut places[edge.0 as usize];
                if exit.is_some() {
                    let text = format!("{output}: this interface has two outputs; give it one");
                    return Err(Error::Argument(text));
                }
                *exit = Some(index);
            }
        }
        let create = |output: &CaptureAt| OutputCapture::create(&output.file).map(Some);
        let files = outputs.iter().map(create).collect::<Result<_>>()?;
        Ok(Ends { entrances, longest, exits: Exits { places, files } })
    }
}

impl Exits {
    /// Writes the first `captured` bytes of a delivered frame, if its edge has a file.
    pub(super) fn write(
        &mut self,
        start_ns: u64,
        delivery: &Delivery,
        bytes: &[u8],
        captured: usize,
    ) -> Result<()> {
        let Some(index) = self.places[delivery.edge.0 as usize] else { return Ok(()) };
        let output = self.files[index].as_mut().expect("the part of an edge has its file");
        let ns = start_ns + delivery.at.as_ns();
        let written = output.writer.write_packet(ns, bytes.len() as u32, &bytes[..captured]);
        written.map_err(Error::file(&output.path))
    }

    /// Completes the files.
    pub(super) fn finish(self) -> Result<()> {
        for OutputCapture { path, writer } in self.files.into_iter().flatten() {
            writer.finish().map_err(Error::file(&path))?;
        }
        Ok(())
    }
}

impl OutputCapture {
    fn create(path: &Path) -> Result<OutputCapture> {
        let writer = Writer::new(create(path)?, LINKTYPE_ETHERNET).map_err(Error::file(path))?;
        Ok(OutputCapture { path: path.to_owned(), writer })
    }
}

/// The names of the hosts of all edges, with the interface if a host has several.
pub(super) fn names(topology: &Topology, edges: &[Edge]) -> Vec<String> {
    let name = |edge: &Edge| {
        let node = topology.node(edge.node);
        match node.interfaces.len() {
            1 => node.name.clone(),
            _ => format!("{}:{}", node.name, node.interfaces[edge.interface].name),
        }
    };
    edges.iter().map(name).collect()
}

/// Creates a file.
pub(super) fn create(path: &Path) -> Result<BufWriter<File>> {
    let named = |error: io::Error| {
        Error::file(path)(io::Error::new(error.kind(), format!("cannot write this file: {error}")))
    };
    Ok(BufWriter::new(File::create(path).map_err(named)?))
}
