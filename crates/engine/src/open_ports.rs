//! The open ports of all workers of a run, which ends when the last one has failed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts open ports. Shared by the workers.
#[derive(Debug)]
pub(crate) struct OpenPorts {
    open: AtomicUsize,
    /// Whether the run ends without an open port. A network that can change may get one later,
    /// unless it had some and they failed.
    is_needed: AtomicBool,
}

/// Whether a network can get ports later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PortsLater {
    /// It changes on request.
    Possible,
    /// Its ports are those that it starts with.
    Never,
}

impl OpenPorts {
    pub(crate) fn new(count: usize, later: PortsLater) -> OpenPorts {
        OpenPorts { open: AtomicUsize::new(count), is_needed: AtomicBool::new(later == PortsLater::Never) }
    }

    /// Ports were added.
    pub(crate) fn add(&self, count: usize) {
        self.open.fetch_add(count, Ordering::Relaxed);
    }

    /// A port was removed by a change of the network.
    pub(crate) fn remove(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// A port failed.
    pub(crate) fn fail(&self) {
        self.is_needed.store(true, Ordering::Relaxed);
        self.remove();
    }

    /// Returns whether the run is over.
    pub(crate) fn is_over(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0 && self.is_needed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_when_its_ports_have_failed_and_not_when_they_were_removed() {
        let ports = OpenPorts::new(0, PortsLater::Possible);
        assert!(!ports.is_over());
        ports.add(2);
        ports.remove();
        ports.remove();
        assert!(!ports.is_over(), "a change may add others");
        ports.add(1);
        ports.fail();
        assert!(ports.is_over());
        assert!(OpenPorts::new(0, PortsLater::Never).is_over());
    }
}
