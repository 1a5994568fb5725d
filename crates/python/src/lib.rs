//! The native module `fastpath._native` of the Python package: descriptions, replay, sockets in
//! virtual time, tables, simulation, sweeps and fits. The Python sources beside it give these
//! functions their public form; what is real (labs) is in the program `fastpath`, which the package
//! starts.
//!
//! ```text
//!  numpy arrays ─▶ borrowed ─▶ fastpath::Replay ─▶ Vec ─▶ numpy arrays (moved, not copied)
//!  description (JSON, dict) ─▶ canonical form ─▶ fastpath_spec, the one reader
//! ```
//!
//! Long calls run without the interpreter lock and look for signals now and then. A panic becomes
//! an exception.
#![forbid(unsafe_code)]

mod capture;
mod failure;
mod fit;
mod network;
#[cfg(target_os = "linux")]
mod ofctl;
mod replay;
mod simulate;
mod sweep;
mod switch;
mod virtual_sockets;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<failure::Error>())?;
    module.add("TOP", network::top())?;
    module.add_class::<capture::CaptureFile>()?;
    module.add_class::<switch::FlowTables>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<sweep::SweepTable>()?;
    module.add_class::<virtual_sockets::VirtualSockets>()?;
    #[cfg(target_os = "linux")]
    {
        module.add_function(wrap_pyfunction!(ofctl::ofctl_requests, module)?)?;
        module.add_function(wrap_pyfunction!(ofctl::ofctl_answers, module)?)?;
    }
    module.add_function(wrap_pyfunction!(network::canonical, module)?)?;
    module.add_function(wrap_pyfunction!(network::check, module)?)?;
    module.add_function(wrap_pyfunction!(network::check_file, module)?)?;
    module.add_function(wrap_pyfunction!(network::canonical_of_toml, module)?)?;
    module.add_function(wrap_pyfunction!(network::draw, module)?)?;
    module.add_function(wrap_pyfunction!(network::portable, module)?)?;
    module.add_function(wrap_pyfunction!(network::to_toml, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::shipped, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::machine_text, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_texts, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)
}
