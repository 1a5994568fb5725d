//! Watches the interfaces of a path: the host's end that goes down or is removed, addresses that
//! age, super-packets where there are to be none.

use crate::kernel::namespace::Namespace;
use crate::kernel::netlink::LinkMonitor;
use fastpath_engine::{DataPaths, Notice};
use fastpath_sys::{interface, thread::monotonic_ns};
use std::collections::{BTreeMap, BTreeSet};
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

/// The interface of a host at the other end of one of the path.
#[derive(Debug)]
pub(super) struct WatchedEnd {
    /// In words.
    pub(super) name: String,
    pub(super) link: String,
    /// For its port in user space: whether it is down or gone.
    pub(super) is_down: Arc<AtomicBool>,
}

/// By interface of the path.
type WatchedEnds = BTreeMap<u32, WatchedEnd>;

/// The thread. WatchedEnds on drop; the namespace of the path ends with it.
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
    names: WatchedEnds,
    notice: Notice,
}

impl PathWatch {
    pub(super) fn start(
        namespace: Arc<Namespace>,
        paths: Arc<DataPaths>,
        names: WatchedEnds,
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
        let mut full = BTreeSet::new();
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
                for (switch, count) in self.paths.not_learned() {
                    if full.insert(switch.to_owned()) {
                        let what = "frames from other addresses are flooded when they are sent to";
                        self.notice.send(&format!(
                            "switch {switch} has no room for more addresses ({count} frames so far): {what}"
                        ));
                    }
                }
                // What could not be removed is tried again.
                let _ = self.paths.path().map(|path| path.age(monotonic_ns()));
            }
        }
    }

    /// Notes whether the host's end of an interface is down, for the program and for the port.
    fn set_down(&self, index: u32, is_down: bool) {
        if let Some(end) = self.names.get(&index) {
            end.is_down.store(is_down, Ordering::Relaxed);
        }
        // The next change tries again.
        let _ = self.paths.path().map(|path| path.set_down(index, is_down));
    }

    /// Looks at an interface.
    fn look(&self, index: u32) {
        match interface::has_carrier(self.socket.as_fd(), index) {
            Ok(has_carrier) => self.set_down(index, !has_carrier),
            Err(_) => {
                self.set_down(index, true);
                let Some(WatchedEnd { name, link, .. }) = self.names.get(&index) else { return };
                if self.paths.set_failure((index, link), format!("{name} was removed")) {
                    self.notice.send(&format!("{name} was removed: link {link} carries nothing"));
                }
            }
        }
    }
}
