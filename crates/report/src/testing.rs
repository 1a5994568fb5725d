//! What tests of reports share: the origin of a record, without a machine.

use fastpath_record::{Disturbance, Machine, Provenance, Tool};

/// The provenance of a record that no machine made.
pub(crate) fn provenance() -> Provenance {
    Provenance {
        machine: Machine {
            name: "bench".to_owned(),
            cpu: "a processor".to_owned(),
            cores: 4,
            kernel: "6.1.0-test".to_owned(),
        },
        tool: Tool::new("1.0", Some("abc")),
        command_line: vec!["fastpath".to_owned(), "measure".to_owned()],
        seed: 7,
        n: 3,
        started_unix_s: 1_795_400_000,
        elapsed_s: 1.5,
        disturbance: Disturbance::default(),
    }
}
