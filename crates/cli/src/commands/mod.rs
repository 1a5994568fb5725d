//! One command, one file. The list of commands is at the end of this file.

/// Defines an enum of subcommands, and its `run`, which runs the one that is given.
macro_rules! subcommands {
    ($visibility:vis $name:ident { $($(#[$cfg:meta])* $command:ident($arguments:ty),)* }) => {
        #[derive(clap::Subcommand)]
        $visibility enum $name { $($(#[$cfg])* $command($arguments),)* }

        impl $name {
            $visibility fn run(self) -> anyhow::Result<crate::Answer> {
                match self { $($(#[$cfg])* $name::$command(command) => command.run(),)* }
            }
        }
    };
}

#[cfg(target_os = "linux")]
mod again;
#[cfg(target_os = "linux")]
mod capture;
mod check;
#[cfg(target_os = "linux")]
mod complete;
mod completions;
#[cfg(target_os = "linux")]
mod ctl;
mod draw;
mod evaluate;
mod experiment;
#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod lab;
mod man;
#[cfg(target_os = "linux")]
pub(crate) mod measure;
mod model;
#[cfg(target_os = "linux")]
mod netem;
mod presets;
#[cfg(target_os = "linux")]
mod quic_sim;
mod replay;
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod shell;
mod sim;
mod sweep;
mod switch;
#[cfg(target_os = "linux")]
mod virtual_time;

subcommands! {
    pub(crate) Command {
        #[cfg(target_os = "linux")]
        Lab(lab::LabCommand),
        #[cfg(target_os = "linux")]
        Guest(guest::GuestCommand),
        #[cfg(target_os = "linux")]
        Run(run::Run),
        #[cfg(target_os = "linux")]
        Ctl(ctl::Ctl),
        #[cfg(target_os = "linux")]
        Capture(capture::Capture),
        #[cfg(target_os = "linux")]
        Extcap(capture::Extcap),
        #[cfg(target_os = "linux")]
        Shell(shell::ShellArgs),
        #[cfg(target_os = "linux")]
        Netem(netem::NetemCommand),
        #[cfg(target_os = "linux")]
        QuicSim(quic_sim::QuicSim),
        Check(check::Check),
        Draw(draw::Draw),
        Presets(presets::Presets),
        Replay(Box<replay::ReplayCommand>),
        Switch(Box<switch::SwitchCommand>),
        #[cfg(target_os = "linux")]
        Measure(measure::MeasureCommand),
        Report(report::ReportCommand),
        Model(Box<model::ModelCommand>),
        Sim(sim::Sim),
        Sweep(sweep::SweepCommand),
        Experiment(experiment::Experiment),
        Evaluate(evaluate::EvaluateCommand),
        #[cfg(target_os = "linux")]
        Complete(complete::Complete),
        Completions(completions::Completions),
        Man(man::Man),
    }
}
