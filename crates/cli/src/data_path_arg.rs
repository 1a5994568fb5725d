//! The argument of `--data-path`, for commands on every system.

use fastpath_spec::DataPathChoice;

/// Where links, switches and tables run that the kernel can run.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DataPathArg {
    /// In the kernel where that changes nothing else.
    Auto,
    /// In the kernel.
    Kernel,
    /// In the engine.
    User,
}

impl From<DataPathArg> for DataPathChoice {
    fn from(arg: DataPathArg) -> DataPathChoice {
        match arg {
            DataPathArg::Auto => DataPathChoice::Auto,
            DataPathArg::Kernel => DataPathChoice::Kernel,
            DataPathArg::User => DataPathChoice::User,
        }
    }
}
