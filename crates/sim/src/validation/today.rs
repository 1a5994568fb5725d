//! Switch ASICs, a SmartNIC, Ice Lake servers and the router of Spalink et al. compared with what is
//! published of them. `xeon-8380-e810` has no check: no packet rate of it was found.

use super::check::{Effort, Kind, ValidationCheck, check, go, line_rate, shipped};
use crate::machine::Machine;
use crate::program::Program;
use crate::workload::Workload;
use fastpath_units::Duration;

pub(super) fn all(effort: Effort) -> Vec<ValidationCheck> {
    let mut all = switches();
    all.extend(router(effort));
    all.extend(smart_nic(effort));
    all.extend(ice_lake(effort));
    all
}

/// The rates of switch ASICs. One calibrates each pipeline; the others follow from the ports.
fn switches() -> Vec<ValidationCheck> {
    let carried = |machine: &str, program: &str, size: u32| {
        let (machine, program) = shipped(machine, program);
        go(&machine, &program, &line_rate(size, &[], Duration::from_us(20)))
    };
    let pps = |machine: &str, program: &str| carried(machine, program, 64).forwarded_pps;
    let wire = "packets per second of all ports: the line rate of minimum-size frames";
    let pipe = "packets per second of all ports; sets the time of the pipelines";
    let smallest =
        "share of the line rate at the size from which it is reached; sets the time of the pipelines";
    let below = "below that size the packet rate limits: 168 of 270 bytes with gap";
    vec![
        check("spectrum-2-64", Kind::Prediction, 9.52e9, pps("spectrum-2", "switch"), (9.42e9, 9.62e9), wire),
        check(
            "spectrum-3-64",
            Kind::Calibration,
            8.4e9,
            pps("spectrum-3", "switch-limited"),
            (8.3e9, 8.5e9),
            pipe,
        ),
        check(
            "tomahawk-250",
            Kind::Calibration,
            1.0,
            carried("tomahawk", "switch-limited", 250).share(),
            (0.98, 1.01),
            smallest,
        ),
        check(
            "tomahawk-148",
            Kind::Qualitative,
            None,
            carried("tomahawk", "switch-limited", 148).share(),
            (0.6, 0.65),
            below,
        ),
    ]
}

/// The router of Spalink et al.: its output loop, and packets through the Pentium.
fn router(effort: Effort) -> Vec<ValidationCheck> {
    let rate = |program: &str, swap: &str| {
        let (_, program) = shipped("ixp1200-router", program);
        let text = crate::shipped::machine_text("ixp1200-router").expect("a shipped machine");
        let changed = text.set("output.swap", swap).and_then(|text| text.set("input.swap", swap));
        let machine = changed.ok().and_then(|text| text.machine().ok()).expect("the engines swap");
        go(&machine, &program, &line_rate(64, &[], effort.ms(10))).forwarded_pps
    };
    let forward =
        "packets of 64 B per second; 109 cycles of the output loop (unconfirmed) and no cycle lost at a swap";
    let double = "the same with three cycles lost at each of eleven swaps, which the 109 cycles contain already: 1.23 times too few";
    let pentium = "packets per second with 1510 cycles of extra processing; sets the 855 cycles of the path, without which 485 kpps would pass";
    let three = rate("ixp-forward", "3");
    vec![
        check(
            "spalink-forward-64",
            Kind::Prediction,
            3.47e6,
            rate("ixp-forward", "0"),
            (3.36e6, 3.58e6),
            forward,
        ),
        check("spalink-swap-64", Kind::Qualitative, None, three, (2.7e6, 2.9e6), double),
        check(
            "spalink-pentium-64",
            Kind::Calibration,
            310e3,
            rate("ixp-pentium", "0"),
            (307e3, 313e3),
            pentium,
        ),
    ]
}

/// The largest share by which a figure may err.
const TESTED_WITHIN: f64 = 0.10;

/// A published rate, and the frame of which it is.
struct RateOf {
    kind: Kind,
    /// Bytes with FCS.
    frame: u32,
    pps: f64,
}

/// Published rates of frame sizes: every other one is a calibration.
fn rates<const N: usize>(of: [(u32, f64); N]) -> Vec<RateOf> {
    let kind = |i: usize| if i.is_multiple_of(2) { Kind::Calibration } else { Kind::Prediction };
    of.into_iter().enumerate().map(|(i, (frame, pps))| RateOf { kind: kind(i), frame, pps }).collect()
}

/// Compares the packets per second of a machine with published ones.
fn compare(
    (machine, program): &(Machine, Program),
    id: &str,
    of: &[RateOf],
    (effort, flows): (Effort, u32),
    note: &'static str,
) -> Vec<ValidationCheck> {
    let one = |rate: &RateOf| {
        let workload = Workload { flows, ..line_rate(rate.frame, &[], effort.ms(20)) };
        let ours = go(machine, program, &workload).forwarded_pps;
        let range = (rate.pps * (1.0 - TESTED_WITHIN), rate.pps * (1.0 + TESTED_WITHIN));
        check(format!("{id}-{}", rate.frame), rate.kind, rate.pps, ours, range, note)
    };
    of.iter().map(one).collect()
}

/// Kernel-space processing on the cores of a SmartNIC. The published sizes do not count the FCS.
fn smart_nic(effort: Effort) -> Vec<ValidationCheck> {
    let (machine, program) = shipped("bluefield-2", "bluefield-kernel");
    let of = |id: &str, cores: u32, of: [(u32, f64); 10], note| {
        let machine = machine.with_servers("arm", cores).expect("the machine has these cores");
        let rates = rates(of.map(|(bytes, pps)| (bytes + 4, pps)));
        compare(&(machine, program.clone()), id, &rates, (effort, 4096), note)
    };
    let one = [
        (128, 589.519e3),
        (256, 586.426e3),
        (512, 599.773e3),
        (1024, 580.403e3),
        (2048, 556.915e3),
        (4096, 508.128e3),
        (8192, 439.550e3),
        (9000, 438.875e3),
        (9216, 435.533e3),
        (10000, 434.263e3),
    ];
    let eight = [
        (128, 1_002.28e3),
        (256, 1_005.86e3),
        (512, 1_069.42e3),
        (1024, 1_021.20e3),
        (2048, 978.862e3),
        (4096, 880.371e3),
        (8192, 764.664e3),
        (9000, 866.944e3),
        (9216, 865.479e3),
        (10000, 772.333e3),
    ];
    let bytes = "pktgen, bursts of 25; every other size sets the cycles of a core";
    let shared = "pktgen, bursts of 25; every other size sets the time that all cores share";
    let mut all = of("bluefield-2-one-core", 1, one, bytes);
    all.extend(of("bluefield-2-eight-cores", 8, eight, shared));
    all
}

/// Ice Lake servers with NICs of 100 Gbit/s.
fn ice_lake(effort: Effort) -> Vec<ValidationCheck> {
    let sizes = |pps: [f64; 5]| {
        let [a, b, c, d, e] = pps;
        rates([(64, a), (128, b), (256, c), (512, d), (1024, e)])
    };
    let katran = |program: &str, pps, note| {
        let both = shipped("xeon-5318n-cx6dx", program);
        compare(&both, &format!("icelake-{program}"), &sizes(pps), (effort, 4096), note)
    };
    let kernel = [6_400_610.0, 6_440_260.0, 6_448_040.0, 6_450_030.0, 6_423_030.0];
    let user = [6_421_780.0, 6_177_610.0, 5_839_120.0, 5_586_980.0, 4_913_670.0];
    let mut all = katran("katran-xdp", kernel, "one core; every other size sets the cycles");
    all.extend(katran("katran-dpdk", user, "one core; every other size sets cycles and time per byte"));
    let (machine, program) = shipped("xeon-8358-e810", "vpp-vxlan");
    let rates = [
        ("icelake-vxlan-1-core", Kind::Calibration, 1, 14.17e6, "sets the cycles per packet"),
        ("icelake-vxlan-2-cores", Kind::Prediction, 2, 26.34e6, "the only figure kept back"),
        ("icelake-vxlan-4-cores", Kind::Calibration, 4, 38.15e6, "sets the rate of the NIC"),
    ];
    all.extend(rates.map(|(id, kind, cores, pps, note)| {
        let machine = machine.with_servers("cpu", cores).expect("the machine has cores");
        let workload = Workload { flows: 4096, ..line_rate(64, &[], effort.ms(2)) };
        let ours = go(&machine, &program, &workload).forwarded_pps;
        check(id, kind, pps, ours, (pps * (1.0 - TESTED_WITHIN), pps * (1.0 + TESTED_WITHIN)), note)
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::stats::median;

    #[test]
    fn figures_kept_back_are_predicted_within_five_percent() {
        for (of, points) in [(smart_nic(Effort::Quick), 10), (ice_lake(Effort::Quick), 5)] {
            let tested: Vec<&ValidationCheck> =
                of.iter().filter(|check| check.kind == Kind::Prediction).collect();
            assert_eq!(tested.len(), points);
            let error = |check: &&ValidationCheck| {
                100.0 * (check.ours / check.original.expect("a published rate") - 1.0).abs()
            };
            assert!(median(tested.iter().map(error)) <= 5.0, "{of:#?}");
            assert!(of.iter().all(|check| check.pass), "{of:#?}");
        }
    }
}
