//! Simulations on several threads, with the results of one thread.
//!
//! ```text
//! one run          ─▶ CutRun ─▶ upstream part (a thread) ═ batches ═▶ downstream part (the caller)
//! independent runs ─▶ side by side, results in their order
//! ```
//!
//! Where a run is cut, and why that changes nothing, is in `fastpath_sim::cut`, without threads.

use fastpath_sim::cut::{Batch, CutRun};
use fastpath_sim::run::RunError;
use fastpath_sim::{Machine, Outcome, Program, Workload};
use fastpath_units::Time;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

/// Batches between two reports of progress.
const BATCHES_PER_REPORT: usize = 16;
/// Batches on their way between the parts of a run. The upstream part waits when there are more.
const BATCHES_MAX: usize = 4;

/// Calls `run` for each task, on at most `threads` threads. The results are in the order of the
/// tasks.
pub fn side_by_side<T: Sync, R: Send>(tasks: &[T], threads: usize, run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads.min(tasks.len());
    if threads <= 1 {
        return tasks.iter().map(run).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(tasks.len()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(number) else { return };
            let result = run(task);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs a simulation in two parts on two threads; `None` if it cannot be cut, or if that would not
/// pay off. `progress` is called with the simulated time now and then.
///
/// # Errors
/// As [`fastpath_sim::run`].
pub(super) fn in_two_parts(
    (machine, program): (&Machine, &Program),
    workload: &Workload,
    seed: u64,
    progress: &mut dyn FnMut(Time),
) -> Result<Option<Outcome>, RunError> {
    let Some(cut) = CutRun::new(machine, program, workload, seed)? else { return Ok(None) };
    // Both are bounded by BATCHES_MAX: a batch that has been read is filled again.
    let (to_reader, batches) = mpsc::sync_channel::<Batch>(BATCHES_MAX);
    let (to_writer, read) = mpsc::sync_channel::<Batch>(BATCHES_MAX + 1);
    let outcome = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (to_reader, read) = (to_reader, read);
            let mut upstream = cut.upstream();
            loop {
                let mut batch = read.try_recv().unwrap_or_default();
                let goes_on = upstream.fill(&mut batch);
                // The reader ends before the last batch only if it panics.
                if to_reader.send(batch).is_err() || !goes_on {
                    return upstream.end();
                }
            }
        });
        let mut downstream = cut.downstream();
        for (number, batch) in batches.into_iter().enumerate() {
            let now = downstream.take(&batch);
            if number % BATCHES_PER_REPORT == 0 {
                progress(now);
            }
            // The writer drops its end after the last batch.
            drop(to_writer.try_send(batch));
        }
        downstream.finish();
        let upstream = writer.join().unwrap_or_else(|panic| resume_unwind(panic));
        cut.outcome(upstream, downstream)
    });
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_tasks_side_by_side_are_in_the_order_of_the_tasks() {
        let tasks: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 2, 3, 8, 200] {
            assert_eq!(
                side_by_side(&tasks, threads, |n| n * n),
                tasks.iter().map(|n| n * n).collect::<Vec<_>>()
            );
        }
        assert!(side_by_side(&[] as &[u8], 4, |n| *n).is_empty());
    }
}
