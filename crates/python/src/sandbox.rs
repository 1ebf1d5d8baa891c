//! What the kernel lets this process and all that it starts still do: Landlock for files and ports, seccomp for system
//! calls. It can't be undone. It holds for the calling thread and for threads that begin later (Landlock), or for all
//! threads (seccomp); so it is closed while there is one thread.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Closes the sandbox, and says what holds: "landlock+seccomp", one of the two, or "none: " and why.
///
/// Files below `reads` may be read (all if it is `None`), and those below `writes` read, made, changed and deleted;
/// paths that do not exist are left out. The programs `runs` may be started (all if it is `None`), and there are no
/// sockets between processes or machines unless `network`.
#[pyfunction]
#[pyo3(signature = (reads, writes, runs, *, network))]
pub fn close_sandbox(
    py: Python<'_>,
    reads: Option<Vec<PathBuf>>,
    writes: Vec<PathBuf>,
    runs: Option<Vec<PathBuf>>,
    network: bool,
) -> String {
    py.detach(|| kernel::close(reads.as_deref(), &writes, runs.as_deref(), network))
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::path::PathBuf;

    pub fn close(_: Option<&[PathBuf]>, _: &[PathBuf], _: Option<&[PathBuf]>, _: bool) -> String {
        "none: only Linux has one".to_owned()
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::path::PathBuf;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetError, Scope, path_beneath_rules,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        TargetArch,
    };

    /// The newest Landlock that tests have run on. Of an older one, what it has is enforced.
    const TESTED: ABI = ABI::V7;

    pub fn close(reads: Option<&[PathBuf]>, writes: &[PathBuf], runs: Option<&[PathBuf]>, network: bool) -> String {
        let files = restrict_files(reads, writes, runs, network);
        let calls = restrict_calls(runs.is_some_and(<[PathBuf]>::is_empty), network);
        match (files, calls) {
            (Ok(()), Ok(())) => "landlock+seccomp".to_owned(),
            (Ok(()), Err(_)) => "landlock".to_owned(),
            (Err(_), Ok(())) => "seccomp".to_owned(),
            (Err(files), Err(calls)) => format!("none: {files}; {calls}"),
        }
    }

    fn restrict_files(
        reads: Option<&[PathBuf]>,
        writes: &[PathBuf],
        runs: Option<&[PathBuf]>,
        network: bool,
    ) -> Result<(), String> {
        // Before its second version, Landlock lets no file move from folder to folder, as stores of results do.
        let has_it = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::Refer);
        has_it.map_err(|_| "the kernel has no Landlock, or an old one".to_owned())?;
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let write = AccessFs::from_write(TESTED);
        let mut handled = write;
        if reads.is_some() {
            handled |= read;
        }
        if runs.is_some() {
            handled |= AccessFs::Execute;
        }
        let restrict = || -> Result<(), RulesetError> {
            let mut ruleset = Ruleset::default().handle_access(handled)?;
            if !network {
                ruleset = ruleset.handle_access(AccessNet::from_all(TESTED))?;
                ruleset = ruleset.scope(Scope::from_all(TESTED))?;
            }
            let rules = |paths: &[PathBuf], access: BitFlags<AccessFs>| {
                let paths = if (access & handled).is_empty() { Vec::new() } else { paths.to_vec() };
                path_beneath_rules(paths, access & handled)
            };
            ruleset
                .create()?
                .add_rules(rules(reads.unwrap_or_default(), read))?
                .add_rules(rules(writes, read | write))?
                .add_rules(rules(runs.unwrap_or_default(), read | AccessFs::Execute))?
                .restrict_self()?;
            Ok(())
        };
        restrict().map_err(|error| format!("Landlock: {error}"))
    }

    /// System calls that no command with a sandbox needs: access to other processes' memory, other ways to a socket or
    /// a program, and the kernel's own settings.
    const NEVER: [i64; 24] = [
        libc::SYS_add_key,
        libc::SYS_bpf,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fsopen,
        libc::SYS_init_module,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_io_uring_setup,
        libc::SYS_keyctl,
        libc::SYS_mount,
        libc::SYS_move_mount,
        libc::SYS_open_by_handle_at,
        libc::SYS_open_tree,
        libc::SYS_perf_event_open,
        libc::SYS_pidfd_getfd,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_ptrace,
        libc::SYS_request_key,
        libc::SYS_setns,
        libc::SYS_unshare,
        libc::SYS_userfaultfd,
        // Before its third version, Landlock does not see it.
        libc::SYS_truncate,
    ];
    const NETWORK: [i64; 6] =
        [libc::SYS_socket, libc::SYS_bind, libc::SYS_connect, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];
    const PROGRAMS: [i64; 2] = [libc::SYS_execve, libc::SYS_execveat];
    /// A program in memory is on no path that Landlock could judge.
    const IN_MEMORY: [i64; 2] = [libc::SYS_memfd_create, libc::SYS_memfd_secret];

    /// Landlock leaves owners and attributes of files alone.
    const OWNERS: [i64; 8] = [
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_fremovexattr,
        libc::SYS_fsetxattr,
        libc::SYS_lremovexattr,
        libc::SYS_lsetxattr,
        libc::SYS_removexattr,
        libc::SYS_setxattr,
    ];
    /// Of Linux 6.6, with the same number everywhere.
    const FCHMODAT2: i64 = 452;
    /// And modes: which call sets one, and which of its arguments it is.
    const MODES: [(i64, u8); 3] = [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
    #[cfg(target_arch = "x86_64")]
    const OLD_OWNERS: [i64; 2] = [libc::SYS_chown, libc::SYS_lchown];
    #[cfg(not(target_arch = "x86_64"))]
    const OLD_OWNERS: [i64; 0] = [];
    #[cfg(target_arch = "x86_64")]
    const OLD_MODES: [(i64, u8); 1] = [(libc::SYS_chmod, 1)];
    #[cfg(not(target_arch = "x86_64"))]
    const OLD_MODES: [(i64, u8); 0] = [];
    /// Nothing may run with another's rights, or be changed by others.
    const MODE_BITS: [u32; 5] = [0o4000, 0o2000, 0o1000, 0o020, 0o002];
    /// They type into the user's terminal.
    const TYPING: [u64; 2] = [0x5412, 0x541C];

    const X32_BIT: i64 = 0x4000_0000;
    /// The calls that have another number there.
    const X32: [(i64, i64); 6] = [
        (libc::SYS_ioctl, 514),
        (libc::SYS_execve, 520),
        (libc::SYS_ptrace, 521),
        (libc::SYS_process_vm_readv, 539),
        (libc::SYS_process_vm_writev, 540),
        (libc::SYS_execveat, 545),
    ];

    /// Refuses system calls, as if this user were not allowed them.
    fn restrict_calls(no_programs: bool, network: bool) -> Result<(), String> {
        calls(no_programs, network).map_err(|error| format!("seccomp: {error}"))
    }

    fn calls(no_programs: bool, network: bool) -> Result<(), seccompiler::Error> {
        let always = NEVER.into_iter().chain(OWNERS).chain(OLD_OWNERS);
        let mut refused: Vec<(i64, Vec<SeccompRule>)> = always.map(|call| (call, Vec::new())).collect();
        for (call, argument) in MODES.into_iter().chain(OLD_MODES) {
            let rules = MODE_BITS.map(|bit| rule(argument, SeccompCmpOp::MaskedEq(bit.into()), bit.into()));
            refused.push((call, rules.into_iter().collect::<Result<_, _>>()?));
        }
        let typing = TYPING.map(|request| rule(1, SeccompCmpOp::Eq, request));
        refused.push((libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?));
        if !network {
            refused.extend(NETWORK.into_iter().chain(IN_MEMORY).map(|call| (call, Vec::new())));
            // A pair of sockets is connected, unless it is of a kind that may send to any other socket of the machine.
            let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET];
            let pairs = kinds.map(|kind| rule(1, SeccompCmpOp::MaskedEq(0xF), kind as u64));
            refused.push((libc::SYS_socketpair, pairs.into_iter().collect::<Result<_, _>>()?));
        }
        if no_programs {
            refused.extend(PROGRAMS.map(|call| (call, Vec::new())));
        }
        if cfg!(target_arch = "x86_64") {
            // The same calls by their numbers of the x32 interface, which the kernel counts as the same architecture.
            let theirs = |call: i64| X32_BIT | X32.iter().find(|(ours, _)| *ours == call).map_or(call, |(_, x32)| *x32);
            let also: Vec<_> = refused.iter().map(|(call, rules)| (theirs(*call), rules.clone())).collect();
            refused.extend(also);
        }
        let (arch, refuse) = (TargetArch::try_from(std::env::consts::ARCH)?, SeccompAction::Errno(libc::EPERM as u32));
        let filter = SeccompFilter::new(refused.into_iter().collect(), SeccompAction::Allow, refuse, arch)?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter_all_threads(&program)
    }

    /// A call is refused if one of its arguments, counted from 0, is so.
    fn rule(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::Error> {
        Ok(SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)?])?)
    }
}
