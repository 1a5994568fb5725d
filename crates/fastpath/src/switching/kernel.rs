//! The tables of a switch in the kernel, with user space for what the kernel has not.
//!
//! ```text
//!  interface ─ tcx ─▶ tables in the kernel ──────────────────────────▶ interface
//!                       └─▶ TAP ─▶ Datapath, executor ─▶ TAP ─ back ─▶ interface
//! ```
//!
//! A change of the rules gives all packets to user space at once, where it is in force. The builder
//! makes the program of the new rules in a quiet moment, and packets return to the kernel.

use crate::error::{Error, Result};
use fastpath_engine::port::{Port, TapPort};
use fastpath_jit::ebpf::{KernelCounts, KernelError, KernelPort, KernelSwitch, KernelTables};
use fastpath_spec::PortName;
use fastpath_switch::execute::{BackgroundJob, CreditPosition, Forwarder};
use fastpath_switch::{Executor, Outbox, Rank, Switch, Verdict};
use fastpath_units::{Duration, Time};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What the kernel did so far.
pub(super) type SharedCounts = Arc<Mutex<KernelCounts>>;

/// A switch whose packets pass the kernel first.
pub(super) struct KernelExecutor {
    /// Executes what comes to user space.
    user: Box<dyn Executor>,
    kernel: KernelSwitch,
    /// All packets come to user space, until the tables of the newest rules are made.
    is_paused: bool,
    is_building: bool,
    /// The generation of the switch whose rules the kernel refused.
    refused: Option<u64>,
    start: Instant,
    counts: SharedCounts,
    notice: Box<dyn Fn(&str) + Send>,
}

/// Tables, and the generation of the switch that they are of.
struct Built {
    generation: u64,
    tables: std::result::Result<KernelTables, KernelError>,
}

/// Returns why packets on these ports cannot pass the kernel, if so.
pub(super) fn obstacle(ports: &[(String, PortName)]) -> Option<String> {
    let other = ports.iter().find(|(_, port)| port.kind() != "packet" || port.interface().is_none());
    other.map(|(name, port)| format!("port {name} is {port}, not an interface of this machine"))
}

/// Opens the TAP by which user space gets the packets of an interface.
pub(super) fn user_port(interface: &str) -> Result<(Box<dyn Port>, KernelPort)> {
    let failed =
        |what: &str, error: &dyn fmt::Display| Error::Argument(format!("{interface}: {what}: {error}"));
    let index = fastpath_jit::ebpf::index_of(interface).map_err(|error| failed("finding it", &error))?;
    let name = format!("fp-user{index}");
    let tap = TapPort::open(&name).map_err(|error| failed("its port to user space", &error))?;
    let user = fastpath_jit::ebpf::set_up_like(&name, interface);
    let user = user.map_err(|error| failed("setting up its port to user space", &error))?;
    Ok((Box::new(tap), KernelPort { interface: index, user: Some(user) }))
}

impl KernelExecutor {
    /// Makes the program of a switch and attaches it to its ports.
    pub(super) fn new(
        switch: &Switch,
        ports: BTreeMap<u32, KernelPort>,
        user: Box<dyn Executor>,
        notice: Box<dyn Fn(&str) + Send>,
    ) -> std::result::Result<(KernelExecutor, SharedCounts), KernelError> {
        let mut kernel = KernelSwitch::new(switch, ports)?;
        kernel.attach()?;
        let counts = SharedCounts::default();
        let executor = KernelExecutor {
            user,
            kernel,
            is_paused: false,
            is_building: false,
            refused: None,
            start: Instant::now(),
            counts: Arc::clone(&counts),
            notice,
        };
        Ok((executor, counts))
    }

    /// Returns where packets are executed, and why not in the kernel.
    pub(super) fn describe(&self) -> String {
        let in_user = self.kernel.tables().in_user();
        let mut because: Vec<&str> = in_user.iter().map(|rule| rule.because.as_str()).collect();
        because.sort_unstable();
        because.dedup();
        match in_user.len() {
            0 => "kernel".to_owned(),
            count => format!("kernel; {count} rules in user space because of {}", because.join(", ")),
        }
    }

    /// The time of the switch, which starts with this executor.
    fn now(&self) -> Time {
        Time::ZERO + Duration::from_ns(self.start.elapsed().as_nanos() as u64)
    }

    fn note(&self, counted: std::io::Result<KernelCounts>) {
        match counted {
            Ok(more) => {
                let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
                counts.received += more.received;
                counts.sent += more.sent;
                more.dropped
                    .iter()
                    .for_each(|(reason, count)| *counts.dropped.entry(*reason).or_default() += count);
            }
            Err(error) => (self.notice)(&format!("reading the counts of the kernel: {error}")),
        }
    }

    fn credit_kernel(&mut self, switch: &mut Switch) {
        let now = self.now();
        let counted = self.kernel.tables_mut().credit(switch, now);
        self.note(counted);
    }
}

impl Executor for KernelExecutor {
    fn update(&mut self, switch: &mut Switch) {
        self.user.update(switch);
        if !self.is_paused {
            self.is_paused = true;
            let now = self.now();
            let counted = self.kernel.pause(switch, now);
            self.note(counted);
        }
    }

    fn execute(
        &mut self,
        switch: &mut Switch,
        now: Time,
        in_port: u32,
        frame: &mut [u8],
        out: &mut Outbox,
    ) -> Verdict {
        self.user.execute(switch, now, in_port, frame, out)
    }

    fn forwarder(&mut self) -> Option<Box<dyn Forwarder>> {
        self.user.forwarder()
    }

    fn has_controller(&self) -> bool {
        self.user.has_controller()
    }

    fn waits_for_forwarder(&self) -> bool {
        self.user.waits_for_forwarder()
    }

    fn credit(&mut self, switch: &mut Switch) {
        self.user.credit(switch);
        self.credit_kernel(switch);
    }

    fn credit_part(&mut self, switch: &mut Switch, from: CreditPosition) -> Option<CreditPosition> {
        if from == CreditPosition::default() {
            self.credit_kernel(switch);
        }
        self.user.credit_part(switch, from)
    }

    fn credit_flows(&mut self, switch: &mut Switch, flows: &[(u8, Rank)]) {
        self.user.credit_flows(switch, flows);
        let now = self.now();
        if let Err(error) = self.kernel.tables_mut().credit_flows(switch, flows, now) {
            (self.notice)(&format!("reading the counts of the kernel: {error}"));
        }
    }

    fn job(&mut self, switch: &Switch) -> Option<BackgroundJob> {
        if let Some(job) = self.user.job(switch) {
            return Some(job);
        }
        let generation = switch.generation();
        if !self.is_paused || self.is_building || self.refused == Some(generation) {
            return None;
        }
        self.is_building = true;
        let (switch, ports) = (switch.clone(), self.kernel.ports().clone());
        Some(Box::new(move || Box::new(Built { generation, tables: KernelTables::new(&switch, &ports) })))
    }

    fn tidy(&mut self, switch: &mut Switch) -> bool {
        self.user.tidy(switch)
    }

    fn is_behind(&self) -> bool {
        self.user.is_behind()
    }

    fn is_pressing(&self) -> bool {
        self.user.is_pressing()
    }

    fn finish(&mut self, switch: &mut Switch, result: Box<dyn Any + Send>) {
        let built = match result.downcast::<Built>() {
            Ok(built) => *built,
            Err(other) => return self.user.finish(switch, other),
        };
        self.is_building = false;
        // What was changed meanwhile is made again.
        if built.generation != switch.generation() {
            return;
        }
        let resumed = built.tables.and_then(|tables| Ok(self.kernel.resume(tables)?));
        match resumed {
            Ok(_) => self.is_paused = false,
            Err(error) => {
                self.refused = Some(built.generation);
                (self.notice)(&format!("all packets in user space: {error}"));
            }
        }
    }
}
