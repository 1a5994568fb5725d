//! Reads the files of other lab tools as descriptions of networks: topologies of containerlab and
//! netlab.
//!
//! ```yaml
//! name: pair
//! topology:
//!   defaults: {kind: linux, image: alpine:3}
//!   nodes:
//!     a: {exec: [ip addr add 10.0.0.1/24 dev eth1]}
//!     b: {exec: [ip addr add 10.0.0.2/24 dev eth1]}
//!   links:
//!     - endpoints: ["a:eth1", "b:eth1"]
//!       delay: 10ms                    # values of a link as a spec has them
//! ```
//!
//! What a lab cannot do is refused with its line; what it can do without is ignored with a warning.
//! The differences from containerlab:
//!
//! - there is no management network;
//! - nodes of kind `linux` are hosts, and those of kind `bridge` and `ovs-bridge` are switches of
//!   the lab, not of the machine;
//! - with [`Options::only_linux`] the other nodes are stubs: their links exist and lead nowhere;
//! - with [`Options::to_draw`] any node is part of the picture, by the name of its kind.
//!
//! Of netlab's topologies the nodes of device `linux` run, with the addresses that netlab assigns.
//!
//! Read first: `yaml.rs`, then `containerlab.rs`.
#![forbid(unsafe_code)]

mod containerlab;
mod fields;
mod impairments;
mod netlab;
pub mod quic_sim;
mod words;
mod yaml;

use fastpath_spec::{Built, Description, Files, Mistakes, NetworkSpec, Warning, resolve_into};
use fastpath_text::mistake::{Checked, Remarks};

/// The settings of a reader.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// Returns the text of a file that the file names.
    pub files: &'o Files<'o>,
    /// Returns the value of a variable of the environment.
    pub variables: &'o dyn Fn(&str) -> Option<String>,
    /// Whether nodes that need more than Linux are stubs. Otherwise they are mistakes.
    pub only_linux: bool,
    /// Whether hosts are namespaces with the programs of this machine, whatever their image.
    pub ignore_images: bool,
    /// Whether the network is drawn and does not run. Then nothing of it has to be able to run.
    pub to_draw: bool,
    /// The name and the text of a file of values of links (TOML): a table for each link, or for
    /// what leaves an endpoint.
    pub impairments: Option<(&'o str, &'o str)>,
}

/// Reads a file and resolves what it describes. The warnings are returned with mistakes too.
pub fn check(text: &str, options: &Options) -> Checked<NetworkSpec> {
    let (built, mut remarks) = read(text, options);
    let mut topology = fastpath_spec::Topology::default();
    if remarks.is_clean() {
        topology = resolve_into(&built.description, options.files, &mut remarks, &|path| built.offset(path));
    }
    remarks.check(NetworkSpec { topology, description: built.description, ..NetworkSpec::default() })
}

/// Reads a file as a description, without resolving it.
///
/// # Errors
/// Every mistake in the file, in the order of the text.
pub fn describe(text: &str, options: &Options) -> Result<(Description, Vec<Warning>), Mistakes> {
    let (built, remarks) = read(text, options);
    remarks.finish().map(|warnings| (built.description, warnings))
}

fn read<'t>(text: &'t str, options: &Options) -> (Built, Remarks<'t>) {
    let remarks = Remarks::new(text);
    let mut remarks = if options.to_draw { remarks.to_draw() } else { remarks };
    let filled = |text: &str| words::substituted(text, options.variables);
    let mut of_yaml = Remarks::new(text);
    let yaml = yaml::parse(text, &filled, &mut of_yaml);
    // A file of netlab is a template only where it is not YAML: texts may have braces.
    let is_text = yaml.as_ref().is_some_and(netlab::is_one);
    if let Some(at) = text.find("{{").filter(|_| !is_text) {
        let what = "this is a template of Go, and only what it becomes is YAML";
        remarks.mistake(at, what, "write the values in place of {{ … }}");
        return (Built::default(), remarks);
    }
    let Some(yaml) = yaml else { return (Built::default(), of_yaml) };
    let mut built = if containerlab::is_one(&yaml) {
        containerlab::read(&yaml, options, &mut remarks)
    } else if netlab::is_one(&yaml) {
        netlab::read(&yaml, options, &mut remarks)
    } else {
        let instead = "write topology: with nodes: and links: below it, as containerlab has it";
        remarks.mistake(0, "this is not a topology", instead);
        Built::default()
    };
    if let Some(overlay) = options.impairments {
        impairments::impair(&mut built.description, overlay, &mut remarks);
    }
    (built, remarks)
}
