//! The filter of system calls: what a test never needs, and an attacker does.
//!
//! A list of what is refused, not of what is allowed: every runtime and its next version must work.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// Whether sockets of the internet are refused as well: where there is no network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InternetSockets {
    Allowed,
    Refused,
}

/// Refused with `EPERM` whatever the arguments.
const REFUSED: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // The file system as others see it.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    // New namespaces bring new capabilities, and with them most holes of the kernel.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Parts of the kernel with a long history of holes.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_vhangup,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Flags of clone(2) that make namespaces.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests of ioctl(2) that put words into the mouth of who uses the terminal.
const TERMINAL_INJECTION: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];

/// The program for this machine; `None` on one that we have no list for.
pub(crate) fn program(internet: InternetSockets) -> Option<Vec<sock_filter>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).ok()?;
    let filter = compile(arch, internet).ok()?;
    Some(prologue().into_iter().chain(filter).collect())
}

fn compile(arch: TargetArch, internet: InternetSockets) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let refuse_when = |conditions: Vec<SeccompCondition>| SeccompRule::new(conditions);
    let namespaces = NEW_NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        refuse_when(vec![SeccompCondition::new(0, Length::Dword, Compare::MaskedEq(flag), flag)?])
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let injections = TERMINAL_INJECTION
        .iter()
        .map(|request| refuse_when(vec![SeccompCondition::new(1, Length::Dword, Compare::Eq, *request)?]));
    rules.insert(libc::SYS_ioctl, injections.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socket, socket_rules(internet)?);
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()
}

/// Only the families that tests use, and no raw sockets.
fn socket_rules(internet: InternetSockets) -> Result<Vec<SeccompRule>, BackendError> {
    const KIND_OF_TYPE: u64 = 0xf;
    let families: &[libc::c_int] = match internet {
        InternetSockets::Allowed => &[libc::AF_UNIX, libc::AF_NETLINK, libc::AF_INET, libc::AF_INET6],
        InternetSockets::Refused => &[libc::AF_UNIX, libc::AF_NETLINK],
    };
    let none_of_them = families.iter().map(|family| {
        SeccompCondition::new(0, Length::Dword, Compare::Ne, u64::from(family.cast_unsigned()))
    });
    let mut rules = vec![SeccompRule::new(none_of_them.collect::<Result<_, _>>()?)?];
    // NETLINK knows no difference between raw and datagrams, and libraries ask for either.
    for family in [libc::AF_INET, libc::AF_INET6] {
        rules.push(SeccompRule::new(vec![
            SeccompCondition::new(0, Length::Dword, Compare::Eq, u64::from(family.cast_unsigned()))?,
            SeccompCondition::new(
                1,
                Length::Dword,
                Compare::MaskedEq(KIND_OF_TYPE),
                u64::from(libc::SOCK_RAW.cast_unsigned()),
            )?,
        ])?);
    }
    Ok(rules)
}

/// What a list of refused numbers cannot say: `clone3` takes its flags from memory, where a filter cannot look, so it is as
/// if the kernel did not have it, and libraries fall back to `clone`. The same for the x32 calls of x86-64: the same calls under
/// other numbers.
fn prologue() -> [sock_filter; 4] {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const RETURN_ERRNO: u32 = 0x0005_0000;
    const X32: u32 = 0x4000_0000;
    let number = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    [
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 1, jf: 0, k: X32 },
        sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: number(libc::SYS_clone3) },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: RETURN_ERRNO | libc::ENOSYS.cast_unsigned() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_fits_into_what_the_kernel_takes() {
        const MOST_INSTRUCTIONS: usize = 4096;
        let program = program(InternetSockets::Refused).unwrap();
        assert!(program.len() < MOST_INSTRUCTIONS, "{}", program.len());
    }
}
