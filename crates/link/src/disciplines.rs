//! The list of queue disciplines: one line each.
//!
//! A line names the file `qdisc/NAME.rs`, the variant of [`QueueSpec`](crate::QueueSpec) with its
//! parameters, the type in that file that implements [`Discipline`](crate::qdisc::Discipline), and
//! the documentation of the variant. `Inline` keeps the queue in the pipe; `Box` is for large
//! ones. The same line declares the oracle in `oracle/NAME.rs`. `qdisc/mod.rs` and `oracle/mod.rs`
//! expand the list; no other file lists the disciplines.

macro_rules! for_each_discipline {
    ($define:ident) => {
        $define! {
            drop_tail: DropTail(Limit) => Inline<DropTailQueue>, "Drops arrivals at a full queue.";
            drop_tail_time: DropTailTime(Duration) => Inline<DropTailTimeQueue>, "Drop-tail by time.";
            red: Red(RedSpec) => Box<RedQueue>, "Random early detection.";
            drop_head: DropHead(Limit) => Inline<DropHeadQueue>, "Drops the oldest at a full queue.";
            sojourn: Sojourn(SojournSpec) => Inline<SojournQueue>, "Drops what has waited too long.";
            codel: Codel(CodelSpec) => Box<CodelQueue>, "Controlled delay.";
            fq_codel: FqCodel(FqCodelSpec) => Box<FqCodelQueue>, "Fair queueing, each flow under CoDel.";
            pie: Pie(PieSpec) => Box<PieQueue>, "A proportional integral controller of the delay.";
            ared: Ared(AredSpec) => Box<AredQueue>, "Adaptive RED.";
            dualpi2: DualPi2(DualPi2Spec) => Box<DualPi2Queue>, "Coupled queues, L4S and classic.";
            token_bucket: TokenBucket(TokenBucketSpec) => Box<TokenBucketQueue>, "A token bucket.";
            policer: Policer(PolicerSpec) => Box<PolicerQueue>, "Drops what exceeds a token bucket.";
            mahimahi: Mahimahi(MahimahiSpec) => Inline<MahimahiQueue>, "A queue of Mahimahi's mm-link.";
            prio: Prio(PrioSpec) => Box<PrioQueue>, "Strict priority between classes of traffic.";
            drr: Drr(DrrSpec) => Box<DrrQueue>, "Deficit round robin between classes of traffic.";
        }
    };
}
