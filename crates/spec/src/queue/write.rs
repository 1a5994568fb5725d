//! Queue disciplines in the keys of a spec: what [`read`](super::read) reads, written.

use crate::write::{of_kind, of_probability, table, text};
use fastpath_link::{
    AredSpec, Classes, CodelSpec, DualPi2Spec, DualScheduler, Ecn, Limit, PieSpec, QueueSpec, RedSpec,
    TokenBucketSpec,
};
use fastpath_units::Bytes;
use serde_json::{Value, json};

pub(crate) fn of_queue(queue: &QueueSpec) -> Value {
    match queue {
        QueueSpec::DropTail(limit) => text(limit),
        QueueSpec::DropTailTime(longest) => of_kind("drop-tail", [("limit", text(longest))]),
        QueueSpec::DropHead(limit) => of_kind("drop-head", [("limit", text(limit))]),
        QueueSpec::Sojourn(spec) => {
            of_kind("sojourn", [("longest", text(spec.longest))].into_iter().chain(of_limit(spec.limit)))
        }
        QueueSpec::Red(red) => of_kind("red", of_red(red).into_iter().chain(of_thresholds(red))),
        QueueSpec::Ared(AredSpec { red, interval, target }) => {
            let interval = [("interval", text(interval))];
            let by = match target {
                Some(target) => vec![("target", text(target))],
                None => of_thresholds(red).to_vec(),
            };
            of_kind("ared", of_red(red).into_iter().chain(interval).chain(by))
        }
        QueueSpec::Codel(codel) => of_kind("codel", of_codel(codel)),
        QueueSpec::FqCodel(fq) => {
            let more = [("flows", json!(fq.flows)), ("quantum", text(fq.quantum))];
            of_kind("fq-codel", of_codel(&fq.codel).into_iter().chain(more))
        }
        QueueSpec::Pie(pie) => of_pie(pie),
        QueueSpec::DualPi2(dual) => of_dualpi2(dual),
        QueueSpec::TokenBucket(bucket) => of_token_bucket(bucket),
        QueueSpec::Prio(prio) => {
            let bands = prio.bands.iter().enumerate().map(|(band, limit)| {
                table(of_dscps(&prio.classes, band).into_iter().chain([("limit", text(limit))]))
            });
            of_kind("prio", [("bands", bands.collect())])
        }
        QueueSpec::Drr(drr) => {
            let classes = drr.shares.iter().enumerate().map(|(class, share)| {
                let parts = [("quantum", text(share.quantum)), ("limit", text(share.limit))];
                table(of_dscps(&drr.classes, class).into_iter().chain(parts))
            });
            of_kind("drr", [("classes", classes.collect())])
        }
    }
}

/// A limit; no entry where nothing is limited.
fn of_limit(limit: Limit) -> Option<(&'static str, Value)> {
    (limit != Limit::Packets(u32::MAX)).then(|| ("limit", text(limit)))
}

/// RED but for thresholds and weight.
fn of_red(red: &RedSpec) -> Vec<(&'static str, Value)> {
    vec![
        ("limit", text(red.limit)),
        ("probability", of_probability(red.max_p)),
        ("gentle", json!(red.gentle)),
        ("ecn", json!(red.ecn)),
        ("mean_packet", text(red.mean_packet)),
    ]
}

fn of_thresholds(red: &RedSpec) -> [(&'static str, Value); 3] {
    let threshold = |threshold: u64| match red.limit {
        Limit::Packets(_) => Value::String(format!("{threshold}p")),
        Limit::Bytes(_) => text(Bytes(threshold)),
    };
    [("min", threshold(red.min)), ("max", threshold(red.max)), ("weight", of_probability(red.weight))]
}

fn of_codel(codel: &CodelSpec) -> Vec<(&'static str, Value)> {
    vec![
        ("target", text(codel.target)),
        ("interval", text(codel.interval)),
        ("mtu", text(codel.mtu)),
        ("limit", text(codel.limit)),
        ("ecn", json!(codel.ecn == Ecn::Mark)),
    ]
}

fn of_pie(pie: &PieSpec) -> Value {
    let PieSpec { target, update, burst, alpha, beta, mean_packet, mark_below, .. } = pie;
    let PieSpec { ecn, derandomize, cap_adjustment, limit, .. } = pie;
    of_kind(
        "pie",
        [
            ("target", text(target)),
            ("update", text(update)),
            ("burst", text(burst)),
            ("alpha", json!(alpha)),
            ("beta", json!(beta)),
            ("mean_packet", text(mean_packet)),
            ("mark_below", of_probability(*mark_below)),
            ("ecn", json!(*ecn == Ecn::Mark)),
            ("derandomize", json!(derandomize)),
            ("cap_adjustment", json!(cap_adjustment)),
            ("limit", text(limit)),
        ],
    )
}

fn of_dualpi2(dual: &DualPi2Spec) -> Value {
    let DualPi2Spec { target, update, alpha, beta, coupling, ramp_start, ramp_range, .. } = dual;
    let DualPi2Spec { ramp_packets, scheduler, limit, .. } = dual;
    let scheduler = match scheduler {
        DualScheduler::TimeShifted(shift) => ("shift", text(shift)),
        DualScheduler::Weighted(share) => ("classic_share", json!(share)),
    };
    of_kind(
        "dualpi2",
        [
            ("target", text(target)),
            ("update", text(update)),
            ("alpha", json!(alpha)),
            ("beta", json!(beta)),
            ("coupling", json!(coupling)),
            ("ramp_start", text(ramp_start)),
            ("ramp_range", text(ramp_range)),
            ("ramp_packets", json!(ramp_packets)),
            scheduler,
            ("limit", text(limit)),
        ],
    )
}

fn of_token_bucket(TokenBucketSpec { rate, burst, peak, limit }: &TokenBucketSpec) -> Value {
    let bucket = [("rate", text(rate)), ("burst", text(burst)), ("limit", text(limit))];
    let peak = peak.map(|peak| [("peak", text(peak.rate)), ("peak_burst", text(peak.burst))]);
    of_kind("token-bucket", bucket.into_iter().chain(peak.into_iter().flatten()))
}

/// The DSCPs of a class; none for that of DSCP 0 and so of most others, which takes the rest.
fn of_dscps(classes: &Classes, class: usize) -> Option<(&'static str, Value)> {
    let table = classes.table();
    let rest = rest_of(classes);
    let mine = (0..64usize).filter(|dscp| usize::from(table[*dscp]) == class);
    (class != rest).then(|| ("dscp", mine.map(|dscp| json!(dscp)).collect()))
}

/// The class to write without DSCPs: that with the most.
fn rest_of(classes: &Classes) -> usize {
    let count = |class: &u8| classes.table().iter().filter(|other| *other == class).count();
    classes.table().iter().max_by_key(|class| count(class)).map_or(0, |class| usize::from(*class))
}
