//! The list of queue disciplines: one line each.
//!
//! A line names the file `qdisc/NAME.rs`, the variant of [`QueueSpec`](crate::QueueSpec) with its
//! parameters, the type in that file that implements [`Discipline`](crate::qdisc::Discipline), and
//! the documentation of the variant. The same line declares the oracle in `oracle/NAME.rs`.
//! `qdisc/mod.rs` and `oracle/mod.rs` expand the list; no other file lists the disciplines.

macro_rules! for_each_discipline {
    ($define:ident) => {
        $define! {
            drop_tail: DropTail(Limit) => DropTailQueue, "Drop-tail: drops arrivals at a full queue.";
            drop_tail_time: DropTailTime(Duration) => DropTailTimeQueue, "Drop-tail, with a limit in time.";
            red: Red(RedSpec) => RedQueue, "Random early detection.";
            drop_head: DropHead(Limit) => DropHeadQueue, "Drop-head: a full queue drops its oldest packet.";
            sojourn: Sojourn(SojournSpec) => SojournQueue, "Drops packets that have waited too long.";
            codel: Codel(CodelSpec) => CodelQueue, "Controlled delay.";
            fq_codel: FqCodel(FqCodelSpec) => FqCodelQueue, "Fair queueing of flows, each under CoDel.";
            pie: Pie(PieSpec) => PieQueue, "A proportional integral controller of the delay.";
            ared: Ared(AredSpec) => AredQueue, "Adaptive RED.";
            dualpi2: DualPi2(DualPi2Spec) => DualPi2Queue, "Coupled queues for L4S and classic traffic.";
            token_bucket: TokenBucket(TokenBucketSpec) => TokenBucketQueue, "A token bucket.";
            prio: Prio(PrioSpec) => PrioQueue, "Strict priority between classes of traffic.";
            drr: Drr(DrrSpec) => DrrQueue, "Deficit round robin between classes of traffic.";
        }
    };
}
