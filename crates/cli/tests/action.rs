//! Tests `packaging/action.sh`, the script of the composite action, with the inputs of its example
//! matrix.
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use std::path::Path;
use std::process::{Command, Output};

const INPUTS: [&str; 7] = ["RUN", "SPEC", "ON", "PRESET", "DELAY", "LOSS", "RATE"];

/// Runs the script with these inputs; the others are empty, as in a workflow.
fn action(inputs: &[(&str, &str)]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let programs = Path::new(env!("CARGO_BIN_EXE_fastpath")).parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let state = std::env::temp_dir().join(format!("fastpath-action-{}", std::process::id()));
    let mut command = Command::new(root.join("packaging/action.sh"));
    command.current_dir(&root).env("PATH", path).env("FASTPATH_STATE_DIR", &state).env_remove("FASTPATH_LAB");
    for name in INPUTS {
        command.env(name, "");
    }
    command.envs(inputs.iter().copied()).output().expect("bash runs the script")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

#[test]
fn the_matrix_of_the_example_runs_and_its_command_decides_the_exit_code() {
    let name = "the_matrix_of_the_example_runs_and_its_command_decides_the_exit_code";
    // The values of `.github/workflows/slow-networks.yml`.
    for (delay, loss) in [("20ms", "0%"), ("150ms", "2%")] {
        let output =
            action(&[("DELAY", delay), ("LOSS", loss), ("RUN", "echo in $FASTPATH_SHELL_OUTSIDE; exit 7")]);
        let said = text(&output);
        if said.contains("not permitted") || said.contains("may not be opened") {
            return skip(name, &said);
        }
        assert_eq!(output.status.code(), Some(7), "{said}");
        assert!(said.contains("in 100."), "{said}");
    }
    let output =
        action(&[("SPEC", "examples/two-hosts.toml"), ("ON", "a"), ("RUN", "hostname; false | true")]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).lines().any(|line| line == "a"), "{}", text(&output));
}

#[test]
fn inputs_that_contradict_each_other_are_named() {
    for (inputs, what) in [
        (&[("RUN", "true")][..], "write 'spec'"),
        (&[("DELAY", "1ms")], "'run' is empty"),
        (&[("RUN", "true"), ("SPEC", "examples/two-hosts.toml"), ("LOSS", "1%")], "leave out"),
        (&[("RUN", "true"), ("SPEC", "gone.toml")], "no file: gone.toml"),
        (&[("RUN", "true"), ("DELAY", "1ms"), ("ON", "a")], "'on' is a host"),
    ] {
        let output = action(inputs);
        assert_eq!(output.status.code(), Some(2), "{inputs:?}");
        assert!(text(&output).contains(what), "{inputs:?}: {}", text(&output));
    }
}
