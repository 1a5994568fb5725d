//! Containers that a lab starts, from busybox as Debian has it (package busybox-static).
#![cfg(target_os = "linux")]

mod common;

use common::{run, skip_test, up};
use fastpath_engine::{Notice, Options};
use fastpath_lab::{ApplyMode, Lab, UpError, inspect};
use fastpath_spec::{NO_FILES, read};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A root file system, removed on drop.
struct RootFs(PathBuf);

impl RootFs {
    /// `None`, and a skip, without busybox and crun.
    fn make(test: &str) -> Option<RootFs> {
        let busybox =
            ["/bin/busybox", "/usr/bin/busybox"].map(Path::new).into_iter().find(|path| path.exists());
        let Some(busybox) = busybox.filter(|_| has("crun")) else {
            skip_test(test, "busybox-static or crun is not installed");
            return None;
        };
        let directory = std::env::temp_dir().join(format!("fastpath-rootfs-{}-{test}", std::process::id()));
        fs::create_dir_all(directory.join("bin")).unwrap();
        fs::copy(busybox, directory.join("bin/busybox")).unwrap();
        for program in ["sh", "ls", "cat", "hostname", "id", "ping", "sleep", "touch", "test", "tr"] {
            symlink("busybox", directory.join("bin").join(program)).unwrap();
        }
        Some(RootFs(directory))
    }
}

impl Drop for RootFs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn spec(a: &str) -> String {
    format!("[host.a]\n{a}\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n")
}

/// Everything of the machine that a container could leave: mounts, interfaces, processes with the
/// text in their command line.
fn left(text: &str) -> String {
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
        line.contains(text).then_some(line)
    });
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mounts = mounts.lines().filter(|line| line.starts_with("overlay ") || line.contains(text));
    processes.chain(mounts.map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

fn check(lab: &Lab, rootfs: &RootFs) {
    let (_, text) =
        run(lab, "a", &["sh", "-c", "hostname; ls /; cat /proc/[0-9]*/comm | tr '\\n' ' '; echo $A $HOME"]);
    assert!(text.starts_with("a\nbin\ndev\netc\nproc\nsys\n"), "{text}");
    assert!(text.contains("\nsleep sh cat "), "{text}");
    let (output, text) = run(lab, "a", &["ping", "-c1", "-W20", "b"]);
    assert!(output.status.success(), "{text}");
    let (output, text) = run(lab, "b", &["ping", "-n", "-c1", "-W20", "a"]);
    assert!(output.status.success(), "{text}");
    // Programs of a host share its files, which are not those of the directory.
    run(lab, "a", &["touch", "/bin/new"]);
    assert!(run(lab, "a", &["test", "-e", "/bin/new"]).0.status.success());
    assert!(!rootfs.0.join("bin/new").exists() && !rootfs.0.join("proc").exists());
}

#[test]
fn a_directory_of_files_is_a_host() {
    let test = "a_directory_of_files_is_a_host";
    let Some(rootfs) = RootFs::make(test) else { return };
    let mark = format!("97{}", std::process::id());
    let before = left(&mark);
    let path = rootfs.0.display();
    let keys = format!(
        "rootfs = '{path}'\ncommand = ['sleep', '{mark}']\nenv = {{ A = 'b', HOME = '/bin' }}\n\
         binds = ['/etc/debian_version:/etc/version:ro']\nprivate = '/etc/frr'"
    );
    let Some(lab) = up(test, &spec(&keys)) else { return };
    check(&lab, &rootfs);
    let look = "echo $A $HOME; touch /etc/frr/x && ls /etc/frr; touch /etc/version || echo protected; cat /etc/version";
    let (_, text) = run(&lab, "a", &["sh", "-c", look]);
    assert!(text.starts_with("b /bin\nx\n") && text.contains("protected"), "{text}");
    assert!(left(&mark).contains(&mark));
    drop(lab);
    assert_eq!(left(&mark), before);
}

#[test]
fn a_container_comes_and_goes_while_the_lab_runs() {
    let test = "a_container_comes_and_goes_while_the_lab_runs";
    let Some(rootfs) = RootFs::make(test) else { return };
    let mark = format!("96{}", std::process::id());
    let before = left(&mark);
    let base = "[host.b]\n[switch.s]\n[[link]]\nbetween = ['b', 's']\n";
    let Some(mut lab) = up(test, base) else { return };
    let with = format!(
        "{base}[host.a]\nrootfs = '{}'\ncommand = ['sleep', '{mark}']\nprivate = '/mnt'\n\
         [[link]]\nbetween = ['a', 's']\n",
        rootfs.0.display()
    );
    let mut apply = |text: &str| {
        let description = read(text, NO_FILES).unwrap().0.description;
        lab.apply(&description, NO_FILES, ApplyMode::Change).unwrap_or_else(|error| panic!("{error}"));
        left(&mark)
    };
    // Twice: nothing of the first is in the way of the second.
    for _ in 0..2 {
        apply(&with);
        // The first process becomes the command a moment later.
        let began = std::time::Instant::now();
        while !left(&mark).contains(&mark) {
            assert!(began.elapsed().as_secs() < 30, "the command does not run");
        }
        assert_eq!(apply(base), before);
    }
    apply(&with);
    let (output, text) = run(&lab, "a", &["ping", "-c1", "-W20", "b"]);
    assert!(output.status.success(), "{text}");
    drop(lab);
    assert_eq!(left(&mark), before);
}

#[test]
fn an_image_of_podman_is_a_host_and_a_shell_waits() {
    let test = "an_image_of_podman_is_a_host_and_a_shell_waits";
    if !has("podman") {
        return skip_test(test, "podman is not installed");
    }
    let Some(rootfs) = RootFs::make(test) else { return };
    let image = format!("localhost/fastpath-test-{}", std::process::id());
    let import = format!(
        "tar -C {} -c . | podman import -q -c 'ENV A=b' -c 'WORKDIR /bin' - {image}",
        rootfs.0.display()
    );
    if !Command::new("sh").args(["-c", &import]).stdout(Stdio::null()).status().unwrap().success() {
        return skip_test(test, "podman cannot import images here");
    }
    let lab = up(test, &spec(&format!("image = '{image}'")));
    let text = lab.map(|lab| run(&lab, "a", &["sh", "-c", "echo $A; cat /proc/1/comm; hostname"]).1);
    let containers =
        Command::new("podman").args(["ps", "-aq", "--filter", &format!("ancestor={image}")]).output();
    assert!(Command::new("podman").args(["rmi", &image]).stdout(Stdio::null()).status().unwrap().success());
    assert_eq!(containers.unwrap().stdout, b"", "podman has no container of a lab");
    if let Some(text) = text {
        assert_eq!(text, "b\nsh\na\n");
    }
}

#[test]
fn a_container_that_ends_is_said_and_the_lab_goes_on() {
    let test = "a_container_that_ends_is_said_and_the_lab_goes_on";
    let Some(rootfs) = RootFs::make(test) else { return };
    let keys = format!(
        "rootfs = '{}'\ncommand = 'test -e /end; while ! test -e /end; do sleep 0.01; done'",
        rootfs.0.display()
    );
    let (topology, _) = fastpath_spec::parse(&spec(&keys)).unwrap();
    let (sender, notices) = channel();
    let notice = Notice::new(move |text: &str| _ = sender.send(text.to_owned()));
    let options = Options { notice, ..Options::new(fastpath_net::Options::default()) };
    let lab = match Lab::up(topology, &format!("ends-{}", std::process::id()), options) {
        Err(UpError::NotPermitted(_)) => return skip_test(test, "no namespaces here"),
        lab => lab.unwrap(),
    };
    run(&lab, "a", &["touch", "/end"]);
    let ended = "host a: its container has ended, and its programs with it";
    while notices.recv_timeout(Duration::from_secs(60)).expect(ended) != ended {}
    let mut command = Command::new("sh");
    let error = lab.spawn(lab.host("a").unwrap(), &mut command).expect_err("it has ended");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    assert!(run(&lab, "b", &["true"]).0.status.success());
    let nodes = inspect(lab.name()).unwrap().nodes;
    let states: Vec<(&str, &str)> = nodes.iter().map(|node| (&*node.name, node.state)).collect();
    assert_eq!(states, [("a", "ended"), ("b", "running")]);
}

#[test]
fn what_a_container_needs_is_named_before_anything_starts() {
    let test = "what_a_container_needs_is_named_before_anything_starts";
    let Some(rootfs) = RootFs::make(test) else { return };
    let refused = |keys: &str| {
        let (topology, _) = fastpath_spec::parse(&spec(keys)).unwrap();
        let options = fastpath_engine::Options::new(fastpath_net::Options::default());
        Lab::up(topology, &format!("no-container-{}", std::process::id()), options).map(drop)
    };
    let said = |keys: &str| refused(keys).expect_err(keys).to_string();
    assert!(said("rootfs = '/no/such'").starts_with("host a: rootfs: /no/such is not a directory: write "));
    if has("podman") {
        let error = said("image = 'localhost/no/such'");
        assert!(error.starts_with("host a: image: podman has no image localhost/no/such ("), "{error}");
        assert!(error.ends_with("get it with `podman pull localhost/no/such` or `podman build`"), "{error}");
    }
    let keys = format!("rootfs = '{}'\ncommand = ['no-such-program']", rootfs.0.display());
    match refused(&keys) {
        Err(UpError::NotPermitted(_)) => skip_test(test, "no namespaces here"),
        refused => {
            let error = refused.expect_err("no program").to_string();
            assert!(
                error.starts_with("host a: its container: ") && error.contains("no-such-program"),
                "{error}"
            );
        }
    }
    assert!(fastpath_lab::list().iter().all(|lab| !lab.name.starts_with("no-container-")));
}
