//! Starts a guest, passes its output on while it runs, and ends it.

use crate::job::{
    CAME, CONSOLE, Came, EXIT, FAILURE, HIDDEN, JOB, Job, OPENED, RECORDED, STATE, STDERR, STDOUT,
};
use crate::{Kernel, RunError};
use fastpath_sys::child::{Before, before};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, mkdtemp};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

/// The wall clock of a guest when its kernel starts, ns since 1970: 2030-01-01, 10 seconds before.
/// No file of the machine is newer.
const START_NS: u64 = (1_893_456_000 - 10) * 1_000_000_000;
/// The memory of a guest by default, bytes. Only what is used is taken from the machine.
const MEMORY: u64 = 2 << 30;
/// How often output is passed on.
const POLL: Duration = Duration::from_millis(5);
/// How long a guest without progress runs before it is said, and before it is ended.
const SAID_AFTER: Duration = Duration::from_secs(20);
const ENDED_AFTER: Duration = Duration::from_secs(600);
/// Where the files of a guest are, if it is there and writable: memory.
const MEMORY_FILES: &str = "/dev/shm";
/// The directory of the job as the kernel's process sees it: programs can read the command line of
/// the kernel, which has to be the same every time.
const ROOM: &str = "/proc/self/cwd";
/// How the names of directories of guests begin, and the file in each that its owner locks.
const PREFIX: &str = "fastpath-guest-";
const LOCK: &str = "lock";
/// Lines of the kernel that an error shows.
const SAID_LINES: usize = 6;

/// A guest to be started.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    kernel: &'a Kernel,
    /// All of its entropy follows from it.
    pub seed: u64,
    /// Its memory, bytes.
    pub memory: u64,
    /// It is ended when no virtual time has passed for this long.
    pub patience: Duration,
}

/// What runs while no virtual time passes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// The program and its host.
    pub program: String,
    /// Since when, in seconds of the machine's time.
    pub seconds: u64,
}

/// How a guest has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The exit code of its program, as a shell reports it.
    pub exit_code: u8,
    /// The virtual time that has passed, from the start of its kernel.
    pub virtual_time: Duration,
    /// The files that came back.
    pub came: Vec<Came>,
    /// The files of the machine that were read.
    pub opened: BTreeSet<PathBuf>,
}

impl<'a> Guest<'a> {
    /// A guest of this kernel with seed 1.
    pub fn new(kernel: &'a Kernel) -> Guest<'a> {
        Guest { kernel, seed: 1, memory: MEMORY, patience: ENDED_AFTER }
    }

    /// Runs a program without output and outputs.
    pub(crate) fn run_program(&self, command: &[&str], stop: &AtomicBool) -> Result<Ended, RunError> {
        let job = Job {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            environment: Vec::new(),
            directory: "/".into(),
            outputs: Vec::new(),
            hidden: Vec::new(),
            record: None,
        };
        self.run(&job, [&mut io::sink(), &mut io::sink()], stop, &mut |_| {})
    }

    /// Runs a job to its end. Writes what its program prints to the two outputs, and calls `tell`
    /// once if no virtual time passes for long.
    ///
    /// # Errors
    /// See [`RunError`]. The whole process group of the guest has ended then, too.
    pub fn run(
        &self,
        job: &Job,
        outputs: [&mut dyn Write; 2],
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&Stuck),
    ) -> Result<Ended, RunError> {
        let room = Room::new()?;
        let text = serde_json::to_vec(job).expect("a job is JSON");
        room.write(JOB, &text)?;
        for name in [STDOUT, STDERR, CONSOLE, OPENED] {
            room.write(name, b"")?;
        }
        let hidden: Vec<u8> =
            job.hidden.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
        room.write(HIDDEN, &hidden)?;
        room.write(STATE, &[0; State::LEN])?;
        if let Some(record) = &job.record {
            symlink(record, room.path.join(RECORDED)).map_err(|source| room.file(RECORDED, source))?;
        }
        let started = Started { child: self.start(&room)? };
        let status = self.attend(started, &room, outputs, stop, tell)?;
        room.end(status)
    }

    fn start(&self, room: &Room) -> Result<Child, RunError> {
        let program = env::current_exe().map_err(|source| room.file("", source))?;
        let console = File::create(room.path.join(CONSOLE)).map_err(|source| room.file(CONSOLE, source))?;
        let errors = console.try_clone().map_err(|source| room.file(CONSOLE, source))?;
        let mut command = Command::new(&self.kernel.path);
        command
            .args([format!("mem={}M", self.memory >> 20), format!("time-travel-start={START_NS}")])
            .args(["time-travel=inf-cpu", "umid=guest"])
            .args(["root=/dev/root", "rootfstype=hostfs", "ro"])
            // A kernel without a console on its command line adds one, behind the words for init.
            .args(["console=tty0", "con=null", "con0=null,fd:1", "ssl=null", "quiet", "loglevel=3"])
            // By seccomp where the kernel can (Linux 6.16), otherwise by ptrace.
            .arg("seccomp=auto")
            .arg(format!("init={}", program.display()))
            .args(["--", "guest", "init", ROOM]);
        command.env_clear().env("HOME", &room.path).env("TMPDIR", room.parent()).env("PATH", "/usr/bin:/bin");
        // The machine's C library must not use what the kernel catches in another way.
        command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        command.env("FASTPATH_SEED", self.seed.to_string());
        command.env("FASTPATH_STATE", room.path.join(STATE)).env("FASTPATH_OPENED", room.path.join(OPENED));
        command.env("FASTPATH_HIDDEN", room.path.join(HIDDEN));
        command.stdin(Stdio::null()).stdout(console).stderr(errors).process_group(0);
        command.current_dir(&room.path);
        before(&mut command, Before { end_with_parent: true, ..Before::default() });
        command.spawn().map_err(|source| RunError::Start { path: self.kernel.path.clone(), source })
    }

    /// Passes output on until the kernel has ended.
    fn attend(
        &self,
        mut started: Started,
        room: &Room,
        [stdout, stderr]: [&mut dyn Write; 2],
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&Stuck),
    ) -> Result<ExitStatus, RunError> {
        let open = |name| File::open(room.path.join(name)).map_err(|source| room.file(name, source));
        let mut streams = [(open(STDOUT)?, stdout), (open(STDERR)?, stderr)];
        let (mut progress, mut was_told) = ((0, Instant::now()), false);
        loop {
            let status = started.child.try_wait().map_err(|source| room.file("", source))?;
            for (from, to) in &mut streams {
                // A reader that has gone does not end the run.
                let _ = io::copy(from, to).and_then(|_| to.flush());
            }
            if let Some(status) = status {
                return Ok(status);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped);
            }
            let state = room.state();
            if state.now_ns != progress.0 {
                progress = (state.now_ns, Instant::now());
            }
            let still = progress.1.elapsed();
            if still >= self.patience {
                return Err(RunError::Stuck { seconds: still.as_secs(), program: state.program });
            }
            if still >= SAID_AFTER && !std::mem::replace(&mut was_told, true) {
                tell(&Stuck { program: state.program, seconds: still.as_secs() });
            }
            thread::sleep(POLL);
        }
    }
}

/// A running kernel. Its whole process group ends on drop.
struct Started {
    child: Child,
}

impl Drop for Started {
    fn drop(&mut self) {
        // The kernel may have ended, and its helpers not.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// The directory of a guest. It is removed on drop.
struct Room {
    path: PathBuf,
    /// Locked: the lock ends with this process, however it ends.
    _lock: File,
}

/// Removes the directories of guests whose owners were killed.
fn remove_left(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let rooms = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for path in rooms.map(|entry| entry.path()) {
        // Those of others cannot be opened.
        let lock = File::options().write(true).open(path.join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// What the kernel says of itself in [`STATE`].
struct State {
    now_ns: u64,
    program: String,
}

impl State {
    /// The length of struct fastpath_state, bytes.
    const LEN: usize = 8 + 4 + 16 + 65 + 3;
}

impl Room {
    fn new() -> Result<Room, RunError> {
        let parents = [PathBuf::from(MEMORY_FILES), env::temp_dir()];
        let mut refusal = None;
        for parent in parents {
            remove_left(&parent);
            let made = mkdtemp(&parent.join(format!("{PREFIX}XXXXXX"))).map_err(io::Error::from);
            let locked = made.and_then(|path| {
                // It gets its name locked: others take an unlocked one for one left behind.
                let new = path.join("lock.new");
                let lock = File::create(&new)?;
                lock.lock()?;
                fs::rename(new, path.join(LOCK))?;
                Ok(Room { path, _lock: lock })
            });
            match locked {
                Ok(room) => return Ok(room),
                Err(source) => refusal = Some(RunError::File { path: parent, source }),
            }
        }
        Err(refusal.expect("there are parents"))
    }

    fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn file(&self, name: &str, source: io::Error) -> RunError {
        RunError::File { path: self.path.join(name), source }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        fs::write(self.path.join(name), bytes).map_err(|source| self.file(name, source))
    }

    fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.path.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn state(&self) -> State {
        let mut bytes = [0; State::LEN];
        // Short or missing is a state of nothing.
        let _ = File::open(self.path.join(STATE)).and_then(|mut file| file.read_exact(&mut bytes));
        let number = u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes"));
        let word = |range: std::ops::Range<usize>| {
            let word = bytes[range].split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(word).into_owned()
        };
        let pid = u32::from_ne_bytes(bytes[8..12].try_into().expect("four bytes"));
        let program = format!("{} (process {pid}, host {})", word(12..28), word(28..93));
        State { now_ns: number, program }
    }

    /// Reads how a guest has ended whose kernel has ended.
    fn end(&self, status: ExitStatus) -> Result<Ended, RunError> {
        let failure = self.text(FAILURE);
        if !failure.is_empty() {
            return Err(RunError::Init(failure));
        }
        let Some(code) = self.text(EXIT).trim().parse::<i32>().ok() else {
            let console = self.text(CONSOLE);
            let is_trace = |line: &&str| line.starts_with("CPU: ") || line.starts_with("Call Trace");
            let lines: Vec<&str> = console.lines().filter(|line| !line.trim().is_empty()).collect();
            let end = lines.iter().position(is_trace).unwrap_or(lines.len());
            let last = &lines[end.saturating_sub(SAID_LINES)..end];
            let said: String = last.iter().map(|line| format!("\n  {}", line.trim_end())).collect();
            return Err(RunError::Ended { status: status.to_string(), said });
        };
        let names = fs::read(self.path.join(OPENED)).unwrap_or_default();
        // Those of the root mount begin with two slashes, and /proc is that of the kernel's
        // process.
        let names = names.split(|&byte| byte == 0).filter_map(|name| name.strip_prefix(b"/"));
        let is_of_root = |name: &&[u8]| name.starts_with(b"/") && !name.starts_with(b"//");
        let path = |name: &[u8]| PathBuf::from(String::from_utf8_lossy(name).into_owned());
        let opened = names
            .filter(is_of_root)
            .map(path)
            .filter(|path| !path.starts_with("/proc") && path.is_file())
            .collect();
        let virtual_time = Duration::from_nanos(self.state().now_ns);
        let came = serde_json::from_str(&self.text(CAME)).unwrap_or_default();
        Ok(Ended { exit_code: code.clamp(0, 255) as u8, virtual_time, came, opened })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
