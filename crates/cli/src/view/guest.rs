//! What `fastpath guest status` prints: the kernel of guests.

use super::{Render, json_line};
use fastpath::guest::Status;
use std::io::{self, Write};

impl Render for Status {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(kernel) = &self.kernel {
            writeln!(out, "kernel    {}", kernel.version)?;
            writeln!(out, "file      {}", kernel.path.display())?;
            writeln!(out, "sha256    {}", kernel.sha256)?;
            writeln!(out, "source    {}", kernel.source)?;
            writeln!(out, "built by  {}", kernel.command)?;
            if !kernel.without.is_empty() {
                writeln!(out, "without   {}", kernel.without.join(", "))?;
            }
        }
        match &self.advice {
            Some(advice) => writeln!(out, "{advice}"),
            None => Ok(()),
        }
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, self)
    }
}
