//! Frames in memory through a switch, in virtual time.

use super::executor::executor;
use super::explain::{Explanation, explain};
use super::ports::number_ports;
use crate::error::{Error, Result};
use fastpath_ofctl::{self as ofctl, FileRule, Mistake, Mistakes, PortNames};
use fastpath_switch::execute::OutboxEntry;
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::port::LinkState;
use fastpath_switch::{Executor, FlowCommand, Limits, Outbox, Port, Switch, Verdict};
use fastpath_units::Time;

/// A switch whose frames come from memory. Its clock is that of the frames.
///
/// ```
/// use fastpath::switching::{FrameFate, FrameSwitch};
/// use fastpath::switch::Limits;
/// use fastpath::units::Time;
///
/// let mut switch = FrameSwitch::new(Limits::default(), &["p1", "p2"], &|_| {}).unwrap();
/// switch.add_rules("in_port=1,actions=output:2").unwrap();
/// let mut frame = [0; 60];
/// let mut sent_to = Vec::new();
/// switch.packet(Time::ZERO, 1, &mut frame, &mut |fate, _| {
///     if let FrameFate::Sent(port) = fate {
///         sent_to.push(port);
///     }
/// });
/// assert_eq!(sent_to, [2]);
/// ```
pub struct FrameSwitch {
    switch: Switch,
    executor: Box<dyn Executor>,
    names: PortNames,
    outbox: Outbox,
    now: Time,
}

/// What happened to a frame, or to a copy of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameFate {
    /// It left by a port.
    Sent(u32),
    /// It was sent to the controllers.
    ToControllers,
    /// It was dropped, for this reason.
    Dropped(&'static str),
}

impl FrameSwitch {
    /// Makes a switch with these ports, all up, and without flows. `pN` is port N, as for
    /// `fastpath switch`. `notice` is called if the tables cannot become machine code.
    ///
    /// # Errors
    /// [`Error::Argument`] for names of ports that cannot be numbered.
    pub fn new(limits: Limits, ports: &[&str], notice: &dyn Fn(&str)) -> Result<FrameSwitch> {
        let numbered = number_ports(ports.iter().copied())?;
        let mut switch = Switch::new(limits);
        numbered.iter().for_each(|(number, _)| switch.set_port(*number, Port::up()));
        let names = numbered.into_iter().map(|(number, name)| (name.to_owned(), number)).collect();
        let executor = executor(&mut switch, notice);
        Ok(FrameSwitch { switch, executor, names, outbox: Outbox::default(), now: Time::ZERO })
    }

    /// Adds flows, groups and meters in the syntax of ovs-ofctl, one per line.
    ///
    /// # Errors
    /// Every mistake. After a mistake in the syntax nothing has changed; of rules that the switch
    /// refuses the others are in force.
    pub fn add_rules(&mut self, text: &str) -> std::result::Result<(), Mistakes> {
        let lines = ofctl::parse(text, &self.names)?;
        let loaded = ofctl::load(&mut self.switch, self.now, &lines);
        self.executor.update(&mut self.switch);
        loaded
    }

    /// Deletes flows by a match in the syntax of ovs-ofctl; an empty one selects all flows, and
    /// without `table=` it selects flows of all tables. `command` is a deletion. Returns how many.
    ///
    /// # Errors
    /// The mistakes in the match.
    pub fn delete_flows(
        &mut self,
        matching: &str,
        command: FlowCommand,
    ) -> std::result::Result<usize, Mistakes> {
        let lines = ofctl::parse(&format!("{matching},actions=drop"), &self.names)?;
        let names_table = matching.split([',', ' ']).any(|word| word.trim().starts_with("table="));
        let mut deleted = 0;
        for line in lines {
            let FileRule::Flow(mut request) = line.rule else { continue };
            request.command = command;
            if !names_table {
                request.table_id = ALL_TABLES;
            }
            self.executor.credit(&mut self.switch);
            let before = self.flow_count();
            let refused = |refusal: fastpath_switch::Refusal| {
                let instead = "change the match".to_owned();
                Mistake { line: line.number, what: refusal.to_string(), instead }
            };
            self.switch.flow_mod(self.now, &request).map_err(refused)?;
            deleted += before - self.flow_count();
        }
        self.executor.update(&mut self.switch);
        Ok(deleted)
    }

    /// Takes the link of a port up or down.
    ///
    /// # Errors
    /// [`Error::Argument`] if there is no such port.
    pub fn set_link(&mut self, number: u32, link: LinkState) -> Result<()> {
        let Some(port) = self.switch.port(number) else {
            return Err(Error::Argument(format!("there is no port {number} (have: {})", self.known_ports())));
        };
        let port = Port { link, ..*port };
        self.executor.credit(&mut self.switch);
        self.switch.set_port(number, port);
        self.executor.update(&mut self.switch);
        Ok(())
    }

    /// Sends a frame through the tables. `fate` is called for every copy, in order. A time before
    /// that of an earlier frame counts as the time of that frame.
    pub fn packet(
        &mut self,
        now: Time,
        in_port: u32,
        frame: &mut [u8],
        fate: &mut dyn FnMut(FrameFate, &[u8]),
    ) {
        let FrameSwitch { switch, executor, outbox, .. } = self;
        self.now = self.now.max(now);
        if switch.next_at().is_some_and(|at| at <= self.now) {
            executor.credit(switch);
            switch.expire(self.now);
            executor.update(switch);
        }
        let verdict = executor.execute(switch, self.now, in_port, frame, outbox);
        for (entry, bytes) in outbox.entries() {
            match entry {
                OutboxEntry::Output { port, .. } => fate(FrameFate::Sent(*port), bytes),
                OutboxEntry::Controller(_) => fate(FrameFate::ToControllers, bytes),
                OutboxEntry::Learn(_) => {}
                OutboxEntry::Drop(reason) => fate(FrameFate::Dropped(reason.name()), &[]),
            }
        }
        outbox.clear();
        if let Verdict::Forward { port, .. } = verdict {
            fate(FrameFate::Sent(port), frame);
        }
    }

    /// Returns the switch with all counts.
    pub fn switch(&mut self) -> &Switch {
        self.executor.credit(&mut self.switch);
        &self.switch
    }

    /// Returns the numbers of the ports by name.
    pub fn names(&self) -> &PortNames {
        &self.names
    }

    /// Explains the tables, and the path of a packet; see [`explain`]. Nothing is counted.
    ///
    /// # Errors
    /// [`Error::Argument`] if the packet cannot be read.
    pub fn explain(&self, packet: Option<&str>, in_port: u32) -> Result<Explanation> {
        explain(&mut self.switch.clone(), &self.names, packet, in_port)
    }

    fn flow_count(&self) -> usize {
        self.switch.tables().iter().map(fastpath_switch::Table::len).sum()
    }

    fn known_ports(&self) -> String {
        self.names.iter().map(|(name, number)| format!("{number} {name}")).collect::<Vec<_>>().join(", ")
    }
}
