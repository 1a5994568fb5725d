//! The two models as NeXosim has them: components with ports, a server schedules its own
//! departures.

use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::Output;
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Customers served or laps finished: a number the models share.
static SERVED: AtomicU64 = AtomicU64::new(0);

/// xorshift64*.
#[derive(Serialize, Deserialize)]
struct Random(u64);

impl Random {
    /// An exponential variate, a nanosecond at least.
    fn exponential(&mut self, mean_ns: f64) -> Duration {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let u = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64;
        Duration::from_nanos((-(1.0 - u).ln() * mean_ns).max(1.0) as u64)
    }
}

/// Poisson arrivals.
#[derive(Serialize, Deserialize)]
struct Source {
    customer: Output<()>,
    random: Random,
    gap_ns: f64,
}

#[Model]
impl Source {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        let gap = self.random.exponential(self.gap_ns);
        cx.schedule_event(gap, schedulable!(Self::arrive), ()).expect("the future");
    }

    #[nexosim(schedulable)]
    async fn arrive(&mut self, _: (), cx: &Context<Self>) {
        let gap = self.random.exponential(self.gap_ns);
        cx.schedule_event(gap, schedulable!(Self::arrive), ()).expect("the future");
        self.customer.send(()).await;
    }
}

/// One exponential server and its queue.
#[derive(Serialize, Deserialize)]
struct Server {
    customer: Output<()>,
    random: Random,
    mean_ns: f64,
    inside: u64,
    counts: bool,
}

#[Model]
impl Server {
    async fn arrive(&mut self, _: (), cx: &Context<Self>) {
        self.inside += 1;
        if self.inside == 1 {
            self.serve(cx);
        }
    }

    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        if self.inside > 0 {
            self.serve(cx);
        }
    }

    #[nexosim(schedulable)]
    async fn depart(&mut self, _: (), cx: &Context<Self>) {
        self.inside -= 1;
        if self.inside > 0 {
            self.serve(cx);
        }
        if self.counts {
            SERVED.fetch_add(1, Ordering::Relaxed);
        }
        self.customer.send(()).await;
    }

    fn serve(&mut self, cx: &Context<Self>) {
        let span = self.random.exponential(self.mean_ns);
        cx.schedule_event(span, schedulable!(Self::depart), ()).expect("the future");
    }
}

fn server(seed: u64, inside: u64, counts: bool) -> Server {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    Server { customer: Output::default(), random, mean_ns: 1000.0, inside, counts }
}

/// M/M/1 at 80 % load until about `customers` have left; returns their number.
pub(crate) fn mm1(customers: u64) -> u64 {
    let mut source = Source { customer: Output::default(), random: Random(88_172_645_463_325_252), gap_ns: 1250.0 };
    let server = server(7, 0, true);
    let (at_source, at_server) = (Mailbox::new(), Mailbox::new());
    source.customer.connect(Server::arrive, &at_server);
    let bench = SimInit::with_num_threads(1)
        .add_model(source, at_source, "source")
        .add_model(server, at_server, "server");
    go(bench, Duration::from_nanos(customers * 1250))
}

/// A closed ring of 32 servers and 64 customers until about `laps` laps are finished; returns their
/// number.
pub(crate) fn pipe32(laps: u64) -> u64 {
    let mut servers: Vec<Server> = (0..32).map(|i| server(i + 1, 2, i == 31)).collect();
    let boxes: Vec<Mailbox<Server>> = (0..32).map(|_| Mailbox::with_capacity(128)).collect();
    for (i, server) in servers.iter_mut().enumerate() {
        server.customer.connect(Server::arrive, &boxes[(i + 1) % 32]);
    }
    let bench = servers.into_iter().zip(boxes).enumerate();
    let bench = bench.fold(SimInit::with_num_threads(1), |bench, (i, (server, mailbox))| {
        bench.add_model(server, mailbox, &format!("server {i}"))
    });
    // The throughput of the product form: N / (N + M − 1) of a server's rate.
    go(bench, Duration::from_nanos((laps as f64 * 1000.0 * 95.0 / 64.0) as u64))
}

fn go(bench: SimInit, span: Duration) -> u64 {
    SERVED.store(0, Ordering::Relaxed);
    let mut simulation = bench.init(MonotonicTime::EPOCH).expect("the models start");
    simulation.step_until(span).expect("the models run");
    SERVED.load(Ordering::Relaxed)
}
