//! The first process of a guest: gives the program of the job the machine's files, waits for it,
//! and brings back what is new.
//!
//! ```text
//!  hostfs /  (read-only) ─┐
//!  tmpfs     (upper)     ─┴▶ overlay = root of the guest ─▶ program ─▶ what is new in `outputs`
//!  hostfs, the directory of the job: job.json ─▶        ◀─ stdout, stderr, exit
//! ```

use crate::job::{CAME, Came, EXIT, FAILURE, JOB, Job, RECORD, RECORDED, STDERR, STDOUT};
use fastpath_sys::interface;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::utsname::uname;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, chdir, chroot, sethostname, sync};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Where the root is prepared: a directory of every Linux whose content is not needed here.
const ROOM: &str = "/proc";
/// The time from the start of the kernel to that of the program. Programs take the first seconds of
/// a machine for "not yet" (ping of iputils: second 0).
const BEFORE: Duration = Duration::from_secs(10);
/// How the version of the kernel of guests ends (CONFIG_LOCALVERSION).
const RELEASE: &str = "-fastpath";
/// The exit code of a program that cannot be started (env(1)).
const NOT_STARTED: i32 = 127;

/// Runs the job whose files are in `directory`, and ends the guest. It does not return. Outside of
/// a guest it does nothing but say so.
pub fn init(directory: &Path) -> ! {
    // What follows would end any other machine.
    let is_guest = uname().is_ok_and(|name| name.release().to_string_lossy().ends_with(RELEASE));
    if !is_guest || std::process::id() != 1 {
        eprintln!("fastpath: this is not a guest; write `fastpath lab run SPEC --time virtual -- COMMAND`");
        std::process::exit(2);
    }
    let ended = prepare(directory).and_then(|place| {
        let ended = place.run();
        let name = if ended.is_ok() { EXIT } else { FAILURE };
        let text = ended.map_or_else(|error| error, |code| code.to_string());
        fs::write(place.files.join(name), text).map_err(|error| said("writing how it ended", error))
    });
    if let Err(error) = ended {
        eprintln!("fastpath: {error}");
    }
    sync();
    // It does not return but by an error, and then the kernel panics when this process ends.
    let _ = reboot(RebootMode::RB_POWER_OFF);
    std::process::exit(1)
}

/// The root of the guest is made.
struct Place {
    job: Job,
    /// The directory of the job, writable.
    files: PathBuf,
    /// What was written in the guest.
    upper: PathBuf,
    /// Keeps the two paths above.
    _open: [File; 2],
}

/// Makes the root of the guest, and enters it.
fn prepare(directory: &Path) -> Result<Place, String> {
    let room = Path::new(ROOM);
    mounted("tmpfs", room, "tmpfs", MsFlags::empty(), "mode=755,size=75%")?;
    let [upper, work, root, files] = ["upper", "work", "root", "files"].map(|name| room.join(name));
    for directory in [&upper, &work, &root, &files] {
        fs::create_dir(directory).map_err(|error| said("making a directory", error))?;
    }
    mounted("hostfs", &files, "hostfs", MsFlags::empty(), &directory.to_string_lossy())?;
    let text = fs::read(files.join(JOB)).map_err(|error| said("reading the job", error))?;
    let job: Job = serde_json::from_slice(&text).map_err(|error| said("reading the job", error))?;
    let [over, work] = [&upper, &work].map(|path| path.display());
    let layers = format!("lowerdir=/,upperdir={over},workdir={work}");
    mounted("overlay", &root, "overlay", MsFlags::empty(), &layers)?;
    let usual = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let temporary = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    for (kind, at, flags, options) in [
        ("proc", "proc", usual, ""),
        ("sysfs", "sys", usual, ""),
        ("cgroup2", "sys/fs/cgroup", usual, ""),
        ("devtmpfs", "dev", MsFlags::MS_NOSUID, "mode=755"),
        ("tmpfs", "run", temporary, "mode=755"),
        ("devpts", "dev/pts", MsFlags::MS_NOSUID, "ptmxmode=666"),
        ("tmpfs", "dev/shm", temporary, "mode=1777"),
    ] {
        let at = root.join(at);
        fs::create_dir_all(&at).map_err(|error| said("making a directory", error))?;
        mounted(kind, &at, kind, flags, options)?;
    }
    if fs::symlink_metadata(files.join(RECORDED)).is_ok() {
        let at = below(&root, Path::new(RECORD));
        fs::create_dir(&at).map_err(|error| said("making a directory", error))?;
        mounted("hostfs", &at, "hostfs", MsFlags::empty(), &directory.join(RECORDED).to_string_lossy())?;
    }
    for (name, target) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        // What devtmpfs has already is as good.
        let _ = symlink(format!("/proc/self/{target}"), root.join("dev").join(name));
    }
    let open = |path: &Path| File::open(path).map_err(|error| said("opening a directory", error));
    let open = [open(&files)?, open(&upper)?];
    chdir(&root).map_err(|error| said("entering the root", error))?;
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>)
        .map_err(|error| said("moving the root", error))?;
    chroot(".").and_then(|()| chdir("/")).map_err(|error| said("entering the root", error))?;
    sethostname("fastpath").map_err(|error| said("naming the guest", error))?;
    interface::any_socket()
        .and_then(|socket| interface::set_up(socket.as_fd(), "lo"))
        .map_err(|error| said("the loopback interface", error))?;
    let [files, upper] = [descriptor(&open[0]), descriptor(&open[1])];
    Ok(Place { job, files, upper, _open: open })
}

/// Returns a path of an open file.
fn descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

impl Place {
    /// Runs the program of the job. Returns its exit code, as a shell reports it.
    fn run(&self) -> Result<i32, String> {
        thread::sleep(BEFORE.saturating_sub(uptime()));
        let (program, arguments) = self.job.command.split_first().ok_or("the job has no command")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.job.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.job.directory).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let code = match command.spawn() {
            Ok(mut child) => {
                let streams = [
                    child.stdout.take().map(|from| self.pass(STDOUT, from)),
                    child.stderr.take().map(|from| self.pass(STDERR, from)),
                ];
                let code = reap(Pid::from_raw(child.id() as i32))?;
                // Programs that stay in the background may hold the streams open.
                let passed = streams.into_iter().flatten();
                let end = thread::spawn(move || passed.for_each(|stream| drop(stream.join())));
                let mut left = 10;
                while !end.is_finished() && left > 0 {
                    thread::sleep(Duration::from_millis(10));
                    left -= 1;
                }
                code
            }
            Err(error) => {
                let text = format!("fastpath: {program}: {error}\n");
                fs::write(self.files.join(STDERR), text).map_err(|error| said("writing", error))?;
                NOT_STARTED
            }
        };
        written(Path::new(RECORD)).map_err(|error| said("writing the record", error))?;
        self.bring_back()?;
        Ok(code)
    }

    /// Passes a stream on to a file of the machine, as it comes.
    fn pass(&self, name: &str, mut from: impl Read + Send + 'static) -> JoinHandle<io::Result<()>> {
        let path = self.files.join(name);
        thread::spawn(move || {
            use std::io::Write;
            let mut to = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            let mut chunk = vec![0; 1 << 16];
            loop {
                match from.read(&mut chunk) {
                    Ok(0) => return Ok(()),
                    Ok(read) => to.write_all(&chunk[..read])?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                }
                // To the machine's file, which is in memory if it can be.
                to.sync_data()?;
            }
        })
    }

    /// Copies what is new below the outputs to the machine.
    fn bring_back(&self) -> Result<(), String> {
        let mut came = Vec::new();
        let machine = Path::new("/run");
        mounted("hostfs", machine, "hostfs", MsFlags::empty(), "/")?;
        for (inside, outside) in &self.job.outputs {
            let (from, to) = (below(&self.upper, inside), below(machine, outside));
            if fs::symlink_metadata(&from).is_ok() {
                copy(&from, &to, inside, &mut came)
                    .map_err(|error| said(&format!("bringing back {}", inside.display()), error))?;
            }
        }
        // The path of the machine is that below its mount.
        for came in &mut came {
            came.outside = below(Path::new("/"), came.outside.strip_prefix(machine).unwrap_or(&came.outside));
        }
        let text = serde_json::to_vec(&came).expect("a list of paths is JSON");
        fs::write(self.files.join(CAME), text).map_err(|error| said("writing", error))
    }
}

/// Waits until the files of a directory are on the disk of the machine, which may be full.
fn written(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry?.path();
        if path.is_file() {
            File::options().append(true).open(path)?.sync_all()?;
        }
    }
    Ok(())
}

/// Returns where an absolute path is below another root.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Copies files, directories and symbolic links, and lists the files. `inside` is the place of
/// `from` in the guest. A file that was removed in the guest stays.
fn copy(from: &Path, to: &Path, inside: &Path, came: &mut Vec<Came>) -> io::Result<()> {
    let about = fs::symlink_metadata(from)?;
    let kind = about.file_type();
    if kind.is_symlink() || kind.is_file() {
        let is_new = fs::symlink_metadata(to).is_err();
        came.push(Came { inside: inside.to_owned(), outside: to.to_owned(), is_new });
        fs::create_dir_all(to.parent().unwrap_or(to))?;
    }
    if kind.is_dir() {
        if !to.is_dir() {
            fs::create_dir_all(to)?;
            came.push(Came { inside: inside.to_owned(), outside: to.to_owned(), is_new: true });
        }
        let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        entries.iter().try_for_each(|entry| {
            let name = entry.file_name();
            copy(&entry.path(), &to.join(&name), &inside.join(&name), came)
        })
    } else if kind.is_symlink() {
        let _ = fs::remove_file(to);
        symlink(fs::read_link(from)?, to)
    } else if kind.is_file() {
        let (mut source, mut target) = (File::open(from)?, File::create(to)?);
        io::copy(&mut source, &mut target)?;
        // A disk that is full says so here.
        target.sync_all()?;
        fs::set_permissions(to, Permissions::from_mode(about.permissions().mode() & 0o777))
    } else {
        // A device 0:0 stands for a removed file; sockets and pipes are those of programs that have
        // ended.
        debug_assert!(kind.is_char_device() || kind.is_socket() || kind.is_fifo());
        Ok(())
    }
}

/// Waits for a child, and for all that lose their parents meanwhile.
fn reap(child: Pid) -> Result<i32, String> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return Ok(code),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => return Ok(128 + signal as i32),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(said("waiting for the program", error)),
        }
    }
}

fn uptime() -> Duration {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split_whitespace().next().and_then(|seconds| seconds.parse().ok());
    seconds.map_or(Duration::ZERO, Duration::from_secs_f64)
}

fn mounted(source: &str, at: &Path, kind: &str, flags: MsFlags, options: &str) -> Result<(), String> {
    mount(Some(source), at, Some(kind), flags, Some(options))
        .map_err(|error| said(&format!("mounting {kind} on {}", at.display()), error))
}

fn said(what: &str, error: impl std::fmt::Display) -> String {
    format!("{what}: {error}")
}
