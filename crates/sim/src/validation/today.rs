//! Switch ASICs, a SmartNIC and the router of Spalink et al. compared with what is published of
//! them. The Ice Lake server has no check: no packet rate of it was found.

use super::check::{Effort, Kind, ValidationCheck, check, go, line_rate, shipped};
use crate::workload::Workload;
use fastpath_units::Duration;

pub(super) fn all(effort: Effort) -> Vec<ValidationCheck> {
    let mut all = switches();
    all.extend(router(effort));
    all.push(smart_nic(effort));
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

/// Kernel-space processing on the cores of a SmartNIC.
fn smart_nic(effort: Effort) -> ValidationCheck {
    let (machine, program) = shipped("bluefield-2", "bluefield-kernel");
    let workload = Workload { flows: 4096, ..line_rate(1518, &[], effort.ms(20)) };
    let share = go(&machine, &program, &workload).share();
    let note = "share of 100 Gbit/s through its own cores; sets the cycles per packet";
    check("bluefield-2-1518", Kind::Calibration, 0.5, share, (0.46, 0.52), note)
}
