//! A worker: one thread that runs one part, window by window.
//!
//! ```text
//!  state ─▶ barrier ─▶ plan ─▶ mail in ─▶ window ─▶ mail out ─┐
//!    ▲                                                        │
//!    └────────────────────────────────────────────────────────┘
//! ```
//!
//! The first worker also reads captures ahead and merges records.

use super::exchange::{Exchange, Stillness, WindowPlan};
use super::merge::Merger;
use super::part::PartRun;
use super::reader::Reader;
use super::tracker::PartObserver;
use crate::error::{Error, Result};
use crate::replay::captures::BytesRead;
use crate::replay::run::{PACKETS_PER_REPORT, report};
use fastpath_net::Windows;
use fastpath_units::Time;
use std::ops::ControlFlow;
use std::time::Instant;

/// Windows between two reports of progress.
const WINDOWS_PER_REPORT: u64 = 256;

/// How a worker spent its time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WorkerProfile {
    /// How long the worker ran.
    pub wall: std::time::Duration,
    /// By worker: how long it waited for that one, which came last.
    pub waited: Vec<std::time::Duration>,
    /// The windows that it ran.
    pub windows: u64,
    /// The frames that it passed on to others.
    pub passed_on: u64,
}

/// What only the first worker does.
pub(super) struct MainTasks<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) merger: Option<Merger>,
    pub(super) progress: &'a mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    /// By input: the part that it enters.
    pub(super) entrances: Vec<usize>,
    pub(super) reported: u64,
}

/// See the head of this file.
pub(super) struct PartWorker<'e, 'm, 'a, O: PartObserver> {
    pub(super) exchange: &'e Exchange,
    pub(super) windows: &'e Windows,
    pub(super) part: usize,
    pub(super) count: usize,
    pub(super) run: PartRun<O>,
    pub(super) main: Option<&'m mut MainTasks<'a>>,
}

impl<O: PartObserver> PartWorker<'_, '_, '_, O> {
    /// Runs the part to the end of the run.
    pub(super) fn work(&mut self) -> Result<WorkerProfile> {
        let guard = self.exchange.barrier.guard();
        let start = Instant::now();
        let mut profile =
            WorkerProfile { waited: vec![std::time::Duration::ZERO; self.count], ..WorkerProfile::default() };
        let (mut still, mut failure, mut side) = (Stillness::default(), None, 0);
        let mut safe = Time::ZERO;
        self.read_ahead(side, Time::ZERO).unwrap_or_else(|error| failure = Some(error));
        self.post(side, &mut profile);
        loop {
            self.publish(side, failure.is_some());
            let arrived = Instant::now();
            let last = self.exchange.barrier.wait(self.part).map_err(|_| Error::Interrupted)?;
            if last != self.part {
                profile.waited[last] += arrived.elapsed();
            }
            let ends = match self.exchange.plan(side, self.windows, &mut still) {
                WindowPlan::Run(ends) => ends,
                WindowPlan::End => break,
                WindowPlan::EndOfTime => {
                    guard.done();
                    return Err(Error::argument("a frame would arrive after 213 days: run with --workers 1"));
                }
                WindowPlan::Fail => {
                    guard.done();
                    return Err(failure.unwrap_or(Error::Interrupted));
                }
            };
            profile.windows += 1;
            let result = self.window(side, &ends, safe, profile.windows);
            failure = result.err();
            safe = ends.iter().copied().min().unwrap_or(Time::MAX);
            side = 1 - side;
            self.post(side, &mut profile);
        }
        guard.done();
        self.merge(side, Time::MAX)?;
        profile.wall = start.elapsed();
        Ok(profile)
    }

    /// Takes the mail, runs a window, and does the tasks of the first worker.
    fn window(&mut self, side: usize, ends: &[Time], safe: Time, number: u64) -> Result<()> {
        for from in 0..self.count {
            let mut mail = self.exchange.mail(side, from, self.part);
            self.run.network.receive(&mut mail.crossings)?;
            self.run.add_entries(&mut mail.entries);
        }
        self.run.run(ends[self.part])?;
        self.merge(side, safe)?;
        let furthest = ends.iter().copied().max().unwrap_or(Time::MAX);
        self.read_ahead(1 - side, furthest)?;
        if let Some(main) = &mut self.main
            && (number.is_multiple_of(WINDOWS_PER_REPORT)
                || main.reader.count >= main.reported + PACKETS_PER_REPORT)
        {
            main.reported = main.reader.count;
            report(main.progress, &main.reader.captures)?;
        }
        Ok(())
    }

    /// Merges the records that workers made before the last barrier, up to `end`.
    fn merge(&mut self, side: usize, end: Time) -> Result<()> {
        let Some(merger) = self.main.as_mut().and_then(|main| main.merger.as_mut()) else { return Ok(()) };
        for part in 0..self.count {
            merger.add(part, &mut self.exchange.batch(side, part));
        }
        merger.merge(end)
    }

    /// Reads the frames that enter in the next windows.
    fn read_ahead(&mut self, side: usize, furthest: Time) -> Result<()> {
        let Some(main) = &mut self.main else { return Ok(()) };
        let reach = self.windows.reach();
        let goal = furthest.saturating_add(reach).saturating_add(reach);
        if main.reader.next_at()?.is_none_or(|at| at >= goal && furthest > Time::ZERO) {
            return Ok(());
        }
        let MainTasks { reader, entrances, .. } = &mut **main;
        let (exchange, part) = (self.exchange, self.part);
        reader.read(goal, |entry| exchange.mail(side, part, entrances[entry.input]).entries.push(entry))
    }

    /// Sends what leaves the part.
    fn post(&mut self, side: usize, profile: &mut WorkerProfile) {
        for to in 0..self.count {
            let mut mail = self.exchange.mail(side, self.part, to);
            self.run.network.take_crossings(to, &mut mail.crossings);
            profile.passed_on += mail.crossings.len() as u64;
        }
        self.run.network.observer_mut().take(&mut self.exchange.batch(side, self.part));
    }

    /// Tells the others the state of the part.
    fn publish(&mut self, side: usize, has_failed: bool) {
        let mut state = self.exchange.state(side, self.part);
        let state = &mut *state;
        state.awaited.resize(self.count, None);
        state.mailed.resize(self.count, None);
        self.run.describe(state);
        state.has_failed = has_failed;
        for (to, mailed) in state.mailed.iter_mut().enumerate() {
            let mail = self.exchange.mail(side, self.part, to);
            let entry = mail.entries.first().map(|entry| entry.at);
            *mailed = [entry, mail.crossings.first_at()].into_iter().flatten().min();
        }
        if let Some(main) = &self.main {
            state.unread = main.reader.next_at().ok().flatten();
        }
    }
}
