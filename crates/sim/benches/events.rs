//! Events per second: `cargo bench -p fastpath-sim`. The counter is events.
//!
//! The first two are of the kernel, on textbook models. The others are of a machine: a CN6880 with
//! 10 Mpps, whole, and cut in two parts. `upstream` is the first part alone; `two_threads` is what
//! `fastpath sim --workers 2` does.

use divan::Bencher;
use divan::counter::ItemsCount;
use fastpath_sim::cut::{Batch, CutRun};
use fastpath_sim::{Machine, Program, Workload, classic, run, shipped};
use std::sync::mpsc;
use std::thread;

fn main() {
    divan::main();
}

#[divan::bench]
fn mm1(bencher: Bencher) {
    let events = classic::mm1(1_000_000, 1).events;
    bencher.counter(ItemsCount::new(events)).bench(|| classic::mm1(1_000_000, 1));
}

#[divan::bench]
fn pipe32(bencher: Bencher) {
    let events = classic::pipe32(30_000, 1).events;
    bencher.counter(ItemsCount::new(events)).bench(|| classic::pipe32(30_000, 1));
}

fn cn6880() -> (Machine, Program, Workload) {
    let (machine, program) = (shipped::machine("cn6880"), shipped::program("cn-forward"));
    let workload = "constant,rate=10Mpps,duration=20ms".parse();
    (machine.expect("shipped"), program.expect("shipped"), workload.expect("a workload"))
}

#[divan::bench(sample_count = 20)]
fn cn6880_whole(bencher: Bencher) {
    let (machine, program, workload) = cn6880();
    let whole = || run(&machine, &program, &workload, 1).expect("they fit");
    bencher.counter(ItemsCount::new(whole().events)).bench(whole);
}

#[divan::bench(sample_count = 20)]
fn cn6880_upstream(bencher: Bencher) {
    let (machine, program, workload) = cn6880();
    let events = run(&machine, &program, &workload, 1).expect("they fit").events;
    let cut = CutRun::new(&machine, &program, &workload, 1).expect("they fit").expect("a cut");
    bencher.counter(ItemsCount::new(events)).bench(|| {
        let (mut upstream, mut batch) = (cut.upstream(), Batch::default());
        while upstream.fill(&mut batch) {}
        upstream.end();
    });
}

#[divan::bench(sample_count = 20)]
fn cn6880_two_threads(bencher: Bencher) {
    let (machine, program, workload) = cn6880();
    let whole = run(&machine, &program, &workload, 1).expect("they fit");
    let cut = CutRun::new(&machine, &program, &workload, 1).expect("they fit").expect("a cut");
    let cut = &cut;
    let workers = || {
        let (to_reader, batches) = mpsc::sync_channel(4);
        thread::scope(|scope| {
            let upstream = scope.spawn(move || {
                let mut upstream = cut.upstream();
                loop {
                    let mut batch = Batch::default();
                    let goes_on = upstream.fill(&mut batch);
                    to_reader.send(batch).expect("the reader is there");
                    if !goes_on {
                        return upstream.end();
                    }
                }
            });
            let mut downstream = cut.downstream();
            for batch in batches {
                downstream.take(&batch);
            }
            downstream.finish();
            cut.outcome(upstream.join().expect("no panic"), downstream)
        })
    };
    assert_eq!(workers().expect("in order"), whole);
    bencher.counter(ItemsCount::new(whole.events)).bench(workers);
}
