//! The list of queue disciplines: one line each.
//!
//! A line `codel: Codel(CodelSpec) => CodelQueue;` names the file `qdisc/codel.rs`, the variant of
//! [`QueueSpec`](crate::QueueSpec) with its parameters, and the type in that file that implements
//! [`Discipline`](crate::qdisc::Discipline). The same line declares the oracle in
//! `oracle/codel.rs`. `qdisc/mod.rs` and `oracle/mod.rs` expand the list; nothing else knows which
//! disciplines exist.

macro_rules! for_each_discipline {
    ($define:ident) => {
        $define! {
            /// Drop-tail: admits packets until the limit is reached, then drops arrivals.
            drop_tail: DropTail(Limit) => DropTailQueue;
            /// Drop-tail by time: drops arrivals while the queue takes longer than this to send.
            drop_tail_time: DropTailTime(Duration) => DropTailTimeQueue;
            /// Random early detection.
            red: Red(RedSpec) => RedQueue;
            /// Drop-head: admits every packet that can fit and drops the oldest to make room.
            drop_head: DropHead(Limit) => DropHeadQueue;
            /// A bound on the sojourn time: drops packets that have waited too long.
            sojourn: Sojourn(SojournSpec) => SojournQueue;
            /// Controlled delay.
            codel: Codel(CodelSpec) => CodelQueue;
            /// Fair queueing of flows, each flow under CoDel.
            fq_codel: FqCodel(FqCodelSpec) => FqCodelQueue;
            /// A proportional integral controller of the queueing delay.
            pie: Pie(PieSpec) => PieQueue;
            /// Adaptive RED.
            ared: Ared(AredSpec) => AredQueue;
            /// Coupled queues for L4S traffic and for classic traffic.
            dualpi2: DualPi2(DualPi2Spec) => DualPi2Queue;
            /// A token bucket, with an optional peak rate.
            token_bucket: TokenBucket(TokenBucketSpec) => TokenBucketQueue;
            /// Strict priority between classes of traffic.
            prio: Prio(PrioSpec) => PrioQueue;
            /// Deficit round robin: classes of traffic share the rate by their quanta.
            drr: Drr(DrrSpec) => DrrQueue;
        }
    };
}
