//! Reports hosts whose first process ends while the lab is up: a container, or the PID namespace of
//! a host. Their programs end with it, and the lab goes on.

use crate::host::Host;
use crate::host::first::Inside;
use crate::programs::process::Process;
use fastpath_engine::Notice;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The thread that waits for the first processes. It ends on drop.
#[derive(Debug)]
pub(crate) struct EndWatch {
    /// The thread ends when this is closed.
    open: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

/// A host with a first process.
struct Watched {
    /// What is said when it ends.
    text: String,
    process: Process,
}

impl EndWatch {
    /// Watches the hosts that have a first process; `None` if there are none.
    pub(crate) fn start(hosts: &[Arc<Host>], notice: Notice) -> io::Result<Option<EndWatch>> {
        let mut all = Vec::new();
        for host in hosts {
            let (process, what) = match &host.inside {
                Inside::Process(process) => (process, "the first process of its PID namespace"),
                Inside::Container(process) => (process, "its container"),
                Inside::View(_) | Inside::Foreign(_) => continue,
            };
            let text = format!("host {}: {what} has ended, and its programs with it", host.name);
            match process.open()? {
                Some(process) => all.push(Watched { text, process }),
                None => notice.send(&text),
            }
        }
        if all.is_empty() {
            return Ok(None);
        }
        let (closed, open) = io::pipe()?;
        let thread = thread::spawn(move || watch(all, &closed, &notice));
        Ok(Some(EndWatch { open: Some(open), thread: Some(thread) }))
    }
}

fn watch(mut all: Vec<Watched>, closed: &PipeReader, notice: &Notice) {
    while !all.is_empty() {
        let processes: Vec<&Process> = all.iter().map(|watched| &watched.process).collect();
        if Process::wait_any(&processes, closed.as_fd(), None).unwrap_or(true) {
            return;
        }
        all.retain(|watched| {
            let has_ended = watched.process.wait(Duration::ZERO).unwrap_or(true);
            if has_ended {
                notice.send(&watched.text);
            }
            !has_ended
        });
    }
}

impl Drop for EndWatch {
    fn drop(&mut self) {
        drop(self.open.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
