//! Watches the interfaces of a path: the host's end that goes down or is removed, addresses that
//! age, super-packets where there are to be none.

use crate::kernel::namespace::Namespace;
use crate::kernel::netlink::LinkMonitor;
use fastpath_engine::{DataPaths, Notice};
use fastpath_sys::{interface, thread::monotonic_ns};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long it waits for a change at a time.
const WAIT: Duration = Duration::from_millis(100);
/// Interval between two looks at the age of addresses.
const AGE_INTERVAL: Duration = Duration::from_secs(1);

/// By interface of the path: the host's interface in words, and its link.
type Names = BTreeMap<u32, (String, String)>;

/// The thread. Ends on drop; the namespace of the path ends with it.
#[derive(Debug)]
pub(crate) struct PathWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _namespace: Arc<Namespace>,
}

struct Watched {
    monitor: LinkMonitor,
    /// A socket of the path's namespace.
    socket: UnixDatagram,
    paths: Arc<DataPaths>,
    names: Names,
    notice: Notice,
}

impl PathWatch {
    pub(super) fn start(
        namespace: Arc<Namespace>,
        paths: Arc<DataPaths>,
        names: Names,
        notice: Notice,
    ) -> io::Result<PathWatch> {
        let opened =
            namespace.within(|| Ok::<_, io::Error>((LinkMonitor::open()?, interface::any_socket()?)))?;
        let (monitor, socket) = opened?;
        let watched = Watched { monitor, socket, paths, names, notice };
        // What changed before the monitor was open.
        watched.names.keys().for_each(|index| watched.look(*index));
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let run = move || watched.run(&until);
        let thread = std::thread::Builder::new().name("fastpath-paths".to_owned()).spawn(run)?;
        Ok(PathWatch { stop, thread: Some(thread), _namespace: namespace })
    }
}

impl Drop for PathWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Watched {
    fn run(&self, stop: &AtomicBool) {
        let mut aged = Instant::now();
        while !stop.load(Ordering::Acquire) {
            match self.monitor.changed(WAIT) {
                Ok(None) => {}
                Ok(Some(Some(index))) if self.names.contains_key(&index) => self.look(index),
                Ok(Some(Some(_))) => {}
                Ok(Some(None)) => self.names.keys().for_each(|index| self.look(*index)),
                Err(error) => {
                    self.notice.send(&format!("watching the kernel's data path: {error}"));
                    return;
                }
            }
            if aged.elapsed() >= AGE_INTERVAL {
                aged = Instant::now();
                self.paths.find_super_packets();
                // What could not be removed is tried again.
                let _ = self.paths.path().map(|path| path.age(monotonic_ns()));
            }
        }
    }

    /// Looks at an interface.
    fn look(&self, index: u32) {
        let Some(path) = self.paths.path() else { return };
        match interface::has_carrier(self.socket.as_fd(), index) {
            // The next change tries again.
            Ok(has_carrier) => _ = path.set_down(index, !has_carrier),
            Err(_) => {
                let Some((name, link)) = self.names.get(&index) else { return };
                if self.paths.set_failure(index, format!("{name} was removed")) {
                    self.notice.send(&format!("{name} was removed: link {link} carries nothing"));
                }
            }
        }
    }
}
