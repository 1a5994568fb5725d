//! Starting and stopping the threads of a switch.

use super::accounting::SwitchAccounting;
use super::control::Control;
use super::datapath::Datapath;
use fastpath_sys::thread::{minimise_timer_slack, set_high_priority};
use std::io;
use std::thread::JoinHandle;

/// A running switch. Dropping it stops the switch.
#[derive(Debug)]
pub struct SwitchRunning {
    control: Control,
    workers: Vec<JoinHandle<Datapath>>,
    threads: Vec<JoinHandle<()>>,
}

/// Runs a data path of one worker and the builder of its executor, each in its own thread.
///
/// The operating system refuses a thread.
pub fn serve(control: &Control, datapath: Datapath) -> io::Result<SwitchRunning> {
    serve_workers(control, vec![datapath])
}

/// Runs the workers of a data path and the builder of its executor, each in its own thread.
///
/// The operating system refuses a thread.
pub fn serve_workers(control: &Control, workers: Vec<Datapath>) -> io::Result<SwitchRunning> {
    let mut running = SwitchRunning { control: control.clone(), workers: Vec::new(), threads: Vec::new() };
    for (number, mut datapath) in workers.into_iter().enumerate() {
        let worker = move || {
            minimise_timer_slack();
            let _ = set_high_priority();
            datapath.run();
            datapath
        };
        let name = match number {
            0 => "fastpath-switch".to_owned(),
            _ => format!("fastpath-sw-{number}"),
        };
        running.workers.push(std::thread::Builder::new().name(name).spawn(worker)?);
    }
    running.threads.push(build(control)?);
    Ok(running)
}

/// Runs the builder of a switch that is a node of a network, whose worker executes its packets.
///
/// The operating system refuses a thread.
pub fn serve_node(control: &Control) -> io::Result<SwitchRunning> {
    Ok(SwitchRunning { control: control.clone(), workers: Vec::new(), threads: vec![build(control)?] })
}

fn build(control: &Control) -> io::Result<JoinHandle<()>> {
    let builder = control.clone();
    std::thread::Builder::new().name("fastpath-build".to_owned()).spawn(move || builder.build())
}

impl SwitchRunning {
    /// Returns whether a thread has ended by itself, which is a defect.
    pub fn has_failed(&self) -> bool {
        let mut workers = self.workers.iter().map(JoinHandle::is_finished);
        workers.any(|ended| ended) || self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops the switch and returns its accounting.
    pub fn stop(mut self) -> SwitchAccounting {
        self.join();
        self.control.accounting()
    }

    fn join(&mut self) {
        self.control.stop();
        // A thread that panicked has written so to standard error.
        let ended = self.workers.drain(..).filter_map(|thread| thread.join().ok());
        let mut ended: Vec<Datapath> = ended.collect();
        // Each may have given frames to another that had ended already.
        ended.iter_mut().for_each(Datapath::report);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for SwitchRunning {
    fn drop(&mut self) {
        self.join();
    }
}
