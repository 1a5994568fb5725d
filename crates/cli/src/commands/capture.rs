//! `fastpath capture` and `fastpath extcap`: frames of links of a running network.

use super::ctl::RunningNetwork;
use crate::Answer;
use crate::signals::stop_on_signals;
use anyhow::bail;
use clap::Args;
use fastpath::capture::{CaptureOptions, capture_to, capture_to_file};
use std::io::{self, IsTerminal};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Capture frames of links of a running network, as pcapng.
///
/// The time of a packet is the time at which it was due at the end of the link. Its comment has the
/// time at which it actually left, or the drop reason. Ctrl-C ends the capture, not the network.
#[derive(Args)]
pub(crate) struct Capture {
    #[command(flatten)]
    network: RunningNetwork,
    /// The links to capture. By default all links.
    #[arg(value_name = "LINK")]
    links: Vec<String>,
    /// Capture only the direction that starts at this node.
    #[arg(long, value_name = "NODE")]
    from: Option<String>,
    /// Also capture frames that the links drop.
    #[arg(long)]
    drops: bool,
    /// Keep at most this number of bytes of each frame. By default, and with 0, all bytes are kept.
    #[arg(long, value_name = "BYTES")]
    snap: Option<u32>,
    /// End after this number of frames.
    #[arg(short, long, value_name = "N")]
    count: Option<NonZeroU64>,
    /// The file to write. Without this option, and with -, standard output is used.
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl Capture {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let stop = stop_on_signals()?;
        let socket = self.network.socket()?;
        let frames_max = self.count.map(NonZeroU64::get);
        let options = CaptureOptions {
            links: self.links,
            from: self.from,
            drops: self.drops,
            snap: self.snap,
            frames_max,
        };
        let captured = match self.write.filter(|path| path.as_os_str() != "-") {
            Some(path) => capture_to_file(&socket, &options, &path, &stop)?,
            None if io::stdout().is_terminal() => {
                bail!("pcapng is not for a terminal: write -w FILE, or add | wireshark -k -i -")
            }
            None => capture_to(&socket, &options, &mut io::stdout().lock(), &stop)?,
        };
        let end = if captured.network_ended { "; the network has ended" } else { "" };
        eprintln!("fastpath: {} frames captured{end}", captured.frames);
        if captured.missed == 0 {
            return Ok(Answer::Yes);
        }
        eprintln!("fastpath: {} frames are missing: the output was too slow", captured.missed);
        Ok(Answer::No)
    }
}

/// Offer links of running networks to Wireshark, which runs this command.
#[derive(Args)]
#[command(after_help = "\
To install it, link the program as fastpath-extcap into Wireshark's personal extcap directory
(Help > About Wireshark > Folders):
  ln -s \"$(command -v fastpath)\" ~/.local/lib/wireshark/extcap/fastpath-extcap")]
pub(crate) struct Extcap {
    /// The arguments that Wireshark passes (extcap protocol).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    words: Vec<String>,
}

impl Extcap {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        print!("{}", crate::extcap::answer(&self.words, &*stop_on_signals()?)?);
        Ok(Answer::Yes)
    }
}
