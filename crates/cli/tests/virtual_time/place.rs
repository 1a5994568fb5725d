//! A directory of a test, from which it runs `fastpath` with the kernel of guests.

use crate::common::skip;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const FASTPATH: &str = env!("CARGO_BIN_EXE_fastpath");
/// Where the tests keep the kernel.
const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guest");
pub(crate) const TWO_HOSTS: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '20Mbit'\ndelay = '10ms'\n\
    queue = '50p'\n";

/// A directory of a test, with a network of two hosts. `None` where no kernel of guests was built.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) guest: PathBuf,
}

impl Place {
    pub(crate) fn new(test: &str) -> Option<Place> {
        let guest = std::env::var_os("FASTPATH_GUEST").map_or_else(|| GUEST.into(), PathBuf::from);
        let status = Command::new(FASTPATH).args(["guest", "status"]).env("FASTPATH_GUEST", &guest).output();
        if !status.is_ok_and(|status| status.status.success()) {
            skip(test, "no kernel of guests here (fastpath guest build)");
            return None;
        }
        let name: String = test.chars().map(|c| if c == ' ' { '-' } else { c }).collect();
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        // Also for a user who may write nowhere else.
        fs::create_dir_all(path.join("cache")).unwrap();
        fs::set_permissions(path.join("cache"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(path.join("net.toml"), TWO_HOSTS).unwrap();
        Some(Place { path, guest })
    }

    /// Returns `fastpath`, to run here behind a prefix.
    pub(crate) fn command(&self, prefix: &[&str], words: &[&str]) -> Command {
        let words = [prefix, &[FASTPATH], words].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.path).env("FASTPATH_GUEST", &self.guest);
        command.env("XDG_CACHE_HOME", self.path.join("cache"));
        command
    }

    /// Runs `fastpath` here, behind a prefix.
    pub(crate) fn behind(&self, prefix: &[&str], words: &[&str]) -> Output {
        self.command(prefix, words).output().expect("it starts")
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.behind(&[], words)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

pub(crate) fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|stream| String::from_utf8_lossy(stream));
    format!("{}\n{out}\n{err}", output.status)
}
