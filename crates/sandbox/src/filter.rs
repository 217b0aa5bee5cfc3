//! The filter of system calls: what a test never needs, and an attacker does.
//!
//! A list of what is refused, not of what is allowed: every runtime and its next version must work. When the filter is loaded, the
//! kernel runs it for every number that there is, so the list is searched by halves: that costs a tenth of going through it.

use libc::sock_filter;

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
const NEW_NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Requests of ioctl(2) that put words into the mouth of who uses the terminal.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;

/// The program for this machine; `None` on one that we have no list for.
pub(crate) fn program(internet: InternetSockets) -> Option<Vec<sock_filter>> {
    let mut program = Assembler::default();
    program.load(ARCHITECTURE);
    program.jump(IF_EQUAL, native_architecture()?, Label::Next, Label::Missing);
    program.load(NUMBER);
    // The x32 calls of x86-64: the same calls under other numbers.
    program.jump(IF_AT_LEAST, X32, Label::Missing, Label::Next);
    program.search(&table());
    program.check_clone();
    program.check_ioctl();
    program.check_socket(internet);
    program.answer(Label::Refuse, RETURN_ERRNO | libc::EPERM.cast_unsigned());
    program.answer(Label::Missing, RETURN_ERRNO | libc::ENOSYS.cast_unsigned());
    program.answer(Label::Allow, RETURN_ALLOW);
    program.assemble()
}

/// What is to be done about which call, sorted by number.
fn table() -> Vec<(u32, Label)> {
    let special = [
        (libc::SYS_clone, Label::Clone),
        (libc::SYS_ioctl, Label::Ioctl),
        (libc::SYS_socket, Label::Socket),
        // It takes its flags from memory, where a filter cannot look: libraries that miss it fall back to clone(2).
        (libc::SYS_clone3, Label::Missing),
    ];
    let refused = REFUSED.iter().map(|call| (*call, Label::Refuse));
    let mut table: Vec<_> = special
        .into_iter()
        .chain(refused)
        .filter_map(|(call, label)| Some((u32::try_from(call).ok()?, label)))
        .collect();
    table.sort_unstable_by_key(|(call, _)| *call);
    table
}

fn native_architecture() -> Option<u32> {
    match std::env::consts::ARCH {
        "x86_64" => Some(0xC000_003E),
        "aarch64" => Some(0xC000_00B7),
        _ => None,
    }
}

/// Offsets in the kernel's `seccomp_data`, on machines with the low half of a word first.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;

/// Instructions of the filter machine.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const X32: u32 = 0x4000_0000;
const RETURN_ALLOW: u32 = 0x7fff_0000;
const RETURN_ERRNO: u32 = 0x0005_0000;

/// Places to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Next,
    Allow,
    Refuse,
    /// As if the kernel did not have the call.
    Missing,
    Clone,
    Ioctl,
    Socket,
    InternetSocket,
    /// The half of the table that begins with this number.
    From(u32),
}

/// A program with names instead of distances.
#[derive(Default)]
struct Assembler {
    code: Vec<(u16, u32, Label, Label)>,
    places: Vec<(Label, usize)>,
}

impl Assembler {
    fn load(&mut self, offset: u32) {
        self.code.push((LOAD, offset, Label::Next, Label::Next));
    }

    fn jump(&mut self, how: u16, value: u32, then: Label, otherwise: Label) {
        self.code.push((how, value, then, otherwise));
    }

    fn always(&mut self, to: Label) {
        self.code.push((JUMP, 0, to, to));
    }

    fn here(&mut self, label: Label) {
        self.places.push((label, self.code.len()));
    }

    fn answer(&mut self, label: Label, answer: u32) {
        self.here(label);
        self.code.push((RETURN, answer, Label::Next, Label::Next));
    }

    /// Jumps to where the number of the call says, or allows it.
    fn search(&mut self, table: &[(u32, Label)]) {
        const FEW: usize = 3;
        let (left, right) = table.split_at(table.len() / 2);
        match right.first() {
            Some((middle, _)) if table.len() > FEW => {
                self.jump(IF_AT_LEAST, *middle, Label::From(*middle), Label::Next);
                self.search(left);
                self.here(Label::From(*middle));
                self.search(right);
            }
            _ => {
                for (call, label) in table {
                    self.jump(IF_EQUAL, *call, *label, Label::Next);
                }
                self.always(Label::Allow);
            }
        }
    }

    fn check_clone(&mut self) {
        self.here(Label::Clone);
        self.load(FIRST_ARGUMENT);
        self.jump(IF_ANY_BIT, NEW_NAMESPACES.cast_unsigned(), Label::Refuse, Label::Allow);
    }

    fn check_ioctl(&mut self) {
        self.here(Label::Ioctl);
        self.load(SECOND_ARGUMENT);
        self.jump(IF_EQUAL, TIOCSTI, Label::Refuse, Label::Next);
        self.jump(IF_EQUAL, TIOCLINUX, Label::Refuse, Label::Allow);
    }

    /// Only the families that tests use, and nothing raw.
    fn check_socket(&mut self, internet: InternetSockets) {
        const KIND_OF_TYPE: u32 = 0xf;
        const SOCK_PACKET: u32 = 10;
        let family = |family: libc::c_int| family.cast_unsigned();
        let of_internet = match internet {
            InternetSockets::Allowed => Label::InternetSocket,
            InternetSockets::Refused => Label::Refuse,
        };
        self.here(Label::Socket);
        self.load(FIRST_ARGUMENT);
        self.jump(IF_EQUAL, family(libc::AF_UNIX), Label::Allow, Label::Next);
        self.jump(IF_EQUAL, family(libc::AF_NETLINK), Label::Allow, Label::Next);
        self.jump(IF_EQUAL, family(libc::AF_INET), of_internet, Label::Next);
        self.jump(IF_EQUAL, family(libc::AF_INET6), of_internet, Label::Refuse);
        self.here(Label::InternetSocket);
        self.load(SECOND_ARGUMENT);
        self.code.push((AND, KIND_OF_TYPE, Label::Next, Label::Next));
        self.jump(IF_EQUAL, libc::SOCK_RAW.cast_unsigned(), Label::Refuse, Label::Next);
        self.jump(IF_EQUAL, SOCK_PACKET, Label::Refuse, Label::Allow);
    }

    /// `None` if a jump is longer than the machine can.
    fn assemble(&self) -> Option<Vec<sock_filter>> {
        let distance = |from: usize, label: Label| match label {
            Label::Next => Some(0),
            label => {
                let (_, place) = self.places.iter().find(|(known, _)| *known == label)?;
                u8::try_from(place.checked_sub(from + 1)?).ok()
            }
        };
        let instruction = |(at, (code, value, then, otherwise)): (usize, &(u16, u32, Label, Label))| {
            let (jt, jf) = (distance(at, *then)?, distance(at, *otherwise)?);
            Some(match *code {
                JUMP => sock_filter { code: JUMP, jt: 0, jf: 0, k: jt.into() },
                code => sock_filter { code, jt, jf, k: *value },
            })
        };
        self.code.iter().enumerate().map(instruction).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPERM: u32 = RETURN_ERRNO | libc::EPERM.cast_unsigned();
    const ENOSYS: u32 = RETURN_ERRNO | libc::ENOSYS.cast_unsigned();

    /// What the kernel would do.
    fn run(program: &[sock_filter], architecture: u32, call: u32, arguments: [u32; 2]) -> u32 {
        let (mut at, mut accumulator) = (0_usize, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let jump = |condition: bool| usize::from(if condition { jt } else { jf });
            at += 1;
            match code {
                LOAD => {
                    accumulator = match k {
                        NUMBER => call,
                        ARCHITECTURE => architecture,
                        FIRST_ARGUMENT => arguments[0],
                        SECOND_ARGUMENT => arguments[1],
                        other => panic!("offset {other}"),
                    }
                }
                AND => accumulator &= k,
                JUMP => at += k as usize,
                IF_EQUAL => at += jump(accumulator == k),
                IF_AT_LEAST => at += jump(accumulator >= k),
                IF_ANY_BIT => at += jump(accumulator & k != 0),
                RETURN => return k,
                other => panic!("instruction {other}"),
            }
        }
    }

    fn verdict(internet: InternetSockets, call: libc::c_long, arguments: [u32; 2]) -> u32 {
        let program = program(internet).unwrap();
        run(&program, native_architecture().unwrap(), u32::try_from(call).unwrap(), arguments)
    }

    #[test]
    fn exactly_the_listed_calls_are_refused() {
        let special = [libc::SYS_clone, libc::SYS_ioctl, libc::SYS_socket, libc::SYS_clone3];
        for call in (0..600).filter(|call| !special.contains(call)) {
            let expected = if REFUSED.contains(&call) { EPERM } else { RETURN_ALLOW };
            assert_eq!(verdict(InternetSockets::Allowed, call, [0, 0]), expected, "call {call}");
        }
    }

    #[test]
    fn other_names_for_the_same_calls_are_as_if_they_did_not_exist() {
        let program = program(InternetSockets::Allowed).unwrap();
        let native = native_architecture().unwrap();
        assert_eq!(run(&program, native, X32 + 165, [0, 0]), ENOSYS);
        assert_eq!(run(&program, 0x4000_0003, 4, [0, 0]), ENOSYS);
        assert_eq!(verdict(InternetSockets::Allowed, libc::SYS_clone3, [0, 0]), ENOSYS);
    }

    #[test]
    fn threads_are_allowed_and_namespaces_are_not() {
        let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND).cast_unsigned();
        assert_eq!(verdict(InternetSockets::Allowed, libc::SYS_clone, [thread, 0]), RETURN_ALLOW);
        let namespace = (libc::CLONE_NEWUSER | libc::SIGCHLD).cast_unsigned();
        assert_eq!(verdict(InternetSockets::Allowed, libc::SYS_clone, [namespace, 0]), EPERM);
    }

    #[test]
    fn sockets_are_judged_by_family_and_kind() {
        use InternetSockets::{Allowed, Refused};
        let stream = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC).cast_unsigned();
        let raw = (libc::SOCK_RAW | libc::SOCK_NONBLOCK).cast_unsigned();
        let socket =
            |internet, family: i32, kind| verdict(internet, libc::SYS_socket, [family.cast_unsigned(), kind]);
        assert_eq!(socket(Allowed, libc::AF_INET6, stream), RETURN_ALLOW);
        assert_eq!(socket(Allowed, libc::AF_INET, raw), EPERM);
        assert_eq!(socket(Allowed, libc::AF_NETLINK, raw), RETURN_ALLOW);
        assert_eq!(socket(Allowed, libc::AF_PACKET, raw), EPERM);
        assert_eq!(socket(Allowed, libc::AF_VSOCK, stream), EPERM);
        assert_eq!(socket(Refused, libc::AF_INET, stream), EPERM);
        assert_eq!(socket(Refused, libc::AF_UNIX, stream), RETURN_ALLOW);
    }

    #[test]
    fn nobody_types_into_a_terminal() {
        let ioctl = |request| verdict(InternetSockets::Allowed, libc::SYS_ioctl, [0, request]);
        let get_window_size = 0x5413;
        assert_eq!([ioctl(TIOCSTI), ioctl(TIOCLINUX), ioctl(get_window_size)], [EPERM, EPERM, RETURN_ALLOW]);
    }
}
