//! The switches of OpenFlow nodes that have controllers.

use crate::switching::Control;
use fastpath_spec::NodeId;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Starts what serves the controllers of a node, once the network runs. It ends when the result is
/// dropped. `Err` says why it cannot start.
pub type StartServing = dyn Fn() -> Result<Box<dyn Any + Send + Sync>, String> + Send + Sync;

/// The switch of an OpenFlow node, which controllers change while the network runs. The executor of
/// the node must be that of the switch ([`Control::node_executor`]).
#[derive(Clone)]
pub struct NodeSwitch {
    /// The name of the node.
    pub node: String,
    /// The switch.
    pub control: Control,
    /// Starts its agent.
    pub serve: Arc<StartServing>,
}

/// A switch and its node in the part of the network of a worker.
pub(crate) type WorkerSwitch = (NodeId, Control);

impl fmt::Debug for NodeSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeSwitch").field("node", &self.node).finish_non_exhaustive()
    }
}
