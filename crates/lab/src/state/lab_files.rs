//! The names of files and directories in the directory of a running lab: see `state.rs`.

/// The file with the state of the lab, `State`.
pub(crate) const STATE: &str = "state.json";
/// The file that programs in the hosts see as /etc/hosts.
pub(crate) const HOSTS: &str = "hosts";
/// The file that they see as /etc/resolv.conf.
pub(crate) const RESOLV_CONF: &str = "resolv.conf";
/// The directory with a directory for each container.
pub(crate) const CONTAINERS: &str = "containers";
/// The directory with the directories that hosts have for themselves.
pub(crate) const PRIVATE: &str = "private";
/// The directory of the files of all routing daemons.
pub(crate) const ROUTERS: &str = "routers";
/// The directory where programs in a PID namespace see the machine's /proc.
pub(crate) const PROC: &str = "proc";
/// The file of a lab's state with the names of attached hosts whose namespace is gone: JSON.
pub(crate) const DETACHED: &str = "detached.json";
