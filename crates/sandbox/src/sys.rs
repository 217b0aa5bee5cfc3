//! The system calls that have no safe form elsewhere. The only `unsafe` of this crate.
//!
//! Everything here but [`readable`] is called between a fork and an exec of a process with many threads, so every function makes its system
//! calls and nothing else: it does not allocate, lock, print or panic. Memory that is handed to the kernel is borrowed from the
//! caller for the length of the call, or (for [`ExecArguments`]) owned by the value that holds the pointers to it.
#![expect(unsafe_code, reason = "fork, exec and a dozen system calls have no safe form")]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_void};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{futex, sched_getaffinity, sched_getcpu, sched_setaffinity};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What a child would exit with that returned, which none does.
const UNREACHED: c_int = 126;

/// A process that was started, and a descriptor for it that cannot come to mean another one.
pub(crate) struct Forked {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// Starts a copy of this process that runs `child` and never returns from it. `flags` are those of clone(2).
///
/// All signals are blocked in the child, so that no handler of this program runs there.
pub(crate) fn fork(flags: c_int, child: impl FnOnce()) -> Result<Forked, Errno> {
    let mask = block_all_signals();
    let mut pidfd: c_int = -1;
    let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: no CLONE_VM, so the child has its own copy of the memory and of this stack (a null stack means "the
    // same one"). The kernel writes the pidfd before it returns. glibc's clone wrapper and its locks are not involved.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            c_long::from(flags),
            0 as c_long,
            &raw mut pidfd,
            0 as c_long,
            0 as c_long,
        )
    };
    if pid == 0 {
        child();
        exit(UNREACHED)
    }
    let failure = last_errno();
    restore_signals(&mask);
    match c_int::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) {
        // SAFETY: the kernel has just made it, and nobody else knows of it.
        Some(pid) => Ok(Forked { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }),
        None => Err(failure),
    }
}

/// Starts a process that shares this memory, on a stack of its own, does something else meanwhile, and returns when the process
/// has executed a program or ended.
///
/// Copying the memory of a large program only to replace it at once would take longer than all else.
pub(crate) fn fork_beside<F: FnMut() + Send, T>(
    stack: &mut [u8],
    files: Files,
    child: &mut F,
    meanwhile: impl FnOnce(Pid) -> T,
) -> Result<(Pid, T), Errno> {
    extern "C" fn run<F: FnMut()>(child: *mut c_void) -> c_int {
        // SAFETY: the pointer below, to a closure that the parent does not touch meanwhile.
        let child = unsafe { &mut *child.cast::<F>() };
        child();
        exit(UNREACHED)
    }
    const ALIGNMENT: usize = 16;
    let end = stack.as_mut_ptr_range().end;
    let top = end.wrapping_sub(end.addr() % ALIGNMENT).cast::<c_void>();
    // The kernel makes it zero when the child leaves the shared memory, and wakes us.
    let is_here = AtomicU32::new(1);
    let flags = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
    let flags = if files == Files::Shared { flags | libc::CLONE_FILES } else { flags };
    let (child, unused) = (ptr::from_mut(child).cast(), ptr::null_mut::<c_void>());
    // SAFETY: what the child uses is borrowed until this function returns, which it does after the child has left the memory:
    // nothing here panics. Called in a process of one thread with all signals blocked. Both have one `errno`, which is written
    // where a call fails: at worst, if two fail at once, one is told with the other's number.
    let pid = unsafe { libc::clone(run::<F>, top, flags, child, unused, unused, is_here.as_ptr()) };
    let pid = if pid > 0 { Pid::from_raw(pid) } else { None }.ok_or_else(last_errno)?;
    let done = meanwhile(pid);
    wait_while(&is_here, 1);
    Ok((pid, done))
}

/// Puts a process on another core than this one, if there is one that it may use. The scheduler would often let it wait until
/// this process sleeps: the other core was busy a moment ago.
pub(crate) fn put_aside(process: Pid) {
    let Ok(mut allowed) = sched_getaffinity(None) else { return };
    allowed.unset(sched_getcpu());
    if allowed.count() > 0 {
        let _stays_here = sched_setaffinity(Some(process), &allowed);
    }
}

/// Whose open files a process has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    Own,
    /// What one opens, the other has open.
    Shared,
}

/// Waits until the number is another one. Not private to this process: the kernel wakes only those that wait like this.
fn wait_while(number: &AtomicU32, value: u32) {
    while number.load(Ordering::Acquire) == value {
        let _woken_or_changed = futex::wait(number, futex::Flags::empty(), value, None);
    }
}

/// Gives this process a network of its own, in which there is only the loopback interface, and that is down.
pub(crate) fn leave_network() -> Result<(), Errno> {
    // SAFETY: has no preconditions; what is shared with others of this process is left as it is.
    check(c_long::from(unsafe { libc::unshare(libc::CLONE_NEWNET) }))
}

/// Waits in the parent, on its runtime, until a descriptor is readable.
pub(crate) async fn readable(descriptor: BorrowedFd<'_>) -> std::io::Result<()> {
    // SAFETY: a `BorrowedFd` is open as long as it is borrowed, and the registration is dropped before.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered?.readable().await.map(drop)
}

/// Ends this process at once, without anything that would run at a normal exit.
pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Strings in the form that exec wants them.
#[derive(Debug)]
pub(crate) struct ExecArguments {
    /// Into `strings`, with a null at the end.
    pointers: Vec<*const c_char>,
    /// Never changed after `new`: the pointers go to their heap memory, which stays where it is when this moves.
    _strings: Vec<CString>,
}

// SAFETY: the pointers go to memory that the value owns and nobody changes.
unsafe impl Send for ExecArguments {}

impl ExecArguments {
    pub(crate) fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _strings: strings }
    }
}

/// Becomes another program; returns only when that failed.
pub(crate) fn execute(program: &CStr, arguments: &ExecArguments, environment: &ExecArguments) -> Errno {
    // SAFETY: both lists end with a null, and what they point to lives as long as they do.
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    last_errno()
}

/// Gives every signal its default meaning and lets all through: a program starts as it would from a shell.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: sets a disposition, of this single-threaded process only; those that cannot be set are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset writes the whole set before it is read.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

fn block_all_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes the whole set; pthread_sigmask with valid arguments fills `before`.
    unsafe {
        libc::sigemptyset(before.as_mut_ptr());
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: the set was filled by `block_all_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

/// A descriptor that is readable while an ended child waits. The signal must be blocked.
pub(crate) fn child_ended_descriptor() -> Result<OwnedFd, Errno> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is written before it is read; the descriptor is new and ours.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(last_errno()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Kills every process of this pid namespace but the caller, which must be its init.
pub(crate) fn kill_namespace() -> Result<(), Errno> {
    // SAFETY: neither call has preconditions. Outside of a namespace of its own, kill(-1) would hit everything that the
    // user runs: hence the check that this is process 1.
    unsafe {
        if libc::getpid() != 1 {
            return Err(Errno::PERM);
        }
        check(c_long::from(libc::kill(-1, libc::SIGKILL)))
    }
}

/// CPU time in microseconds of all children that were waited for, and the largest resident size of one in bytes.
pub(crate) fn usage_of_children() -> (u64, u64) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: an rusage of zeros is valid, and the kernel writes only into it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec)
            .unwrap_or(0)
            .saturating_mul(1_000_000)
            .saturating_add(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    let resident = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
    (micros(usage.ru_utime).saturating_add(micros(usage.ru_stime)), resident)
}

/// Makes `number` mean the same open file, also after an exec.
pub(crate) fn duplicate_to(file: BorrowedFd<'_>, number: RawFd) -> Result<(), Errno> {
    // SAFETY: called in a forked child, where nothing that is still used has that number.
    check(c_long::from(unsafe { libc::dup3(file.as_raw_fd(), number, 0) }))
}

/// Closes all descriptors from `first` to `last`.
pub(crate) fn close_range(first: RawFd, last: RawFd, only_on_exec: bool) -> Result<(), Errno> {
    if first > last {
        return Ok(());
    }
    let flags = if only_on_exec { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: called in a forked child whose owned descriptors are never dropped after this.
    check(unsafe { libc::syscall(libc::SYS_close_range, first.cast_unsigned(), last.cast_unsigned(), flags) })
}

/// Makes all mounts private to this namespace; where asked, also read-only and without set-user-id.
pub(crate) fn set_all_mounts(read_only: bool) -> Result<(), Errno> {
    /// The kernel's `struct mount_attr`.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const READ_ONLY: u64 = 1;
    const NO_SET_USER_ID: u64 = 2;
    let attributes = Attributes {
        set: if read_only { READ_ONLY | NO_SET_USER_ID } else { 0 },
        clear: 0,
        propagation: libc::MS_PRIVATE,
        user_namespace: 0,
    };
    // SAFETY: the structure is the kernel's, with its size beside it.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    })
}

/// Sets the loopback interface of this network namespace up; the kernel then gives it its two addresses.
pub(crate) fn bring_up_loopback() -> Result<(), Errno> {
    // SAFETY: an ifreq of zeros is valid; the name is shorter than the field and ends with a zero; `ifru_flags` is the member
    // that both requests use. The socket is ours.
    unsafe {
        // Any socket will do, and this one is made soonest.
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(last_errno());
        }
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l'.cast_signed();
        request.ifr_name[1] = b'o'.cast_signed();
        check(c_long::from(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request)))?;
        #[expect(clippy::cast_possible_truncation, reason = "IFF_UP is 1")]
        let up = libc::IFF_UP as libc::c_short;
        request.ifr_ifru.ifru_flags |= up;
        check(c_long::from(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)))
    }
}

/// Gives up every capability for good: none is held, and no program that is executed later can bring any.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522;
    for capability in 0..=63 {
        // SAFETY: takes numbers only. Fails for numbers that the kernel does not know, and without the right to it:
        // then the bounding set does not matter, because no new privileges are allowed either.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            break;
        }
    }
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: the layouts are those of capset(2), version 3: two blocks of three words.
    unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        check(libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()))
    }
}

/// No program that is executed from now on gains privileges.
pub(crate) fn forbid_new_privileges() -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    check(c_long::from(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }))
}

/// Hides this process's memory and the like from others of its user.
pub(crate) fn hide_memory() -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    check(c_long::from(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }))
}

/// Whoever loses its parent below this process becomes its child.
pub(crate) fn adopt_orphans() -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    check(c_long::from(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }))
}

/// Which version of Landlock the kernel has.
pub(crate) fn landlock_abi() -> Result<u32, Errno> {
    const VERSION: c_uint = 1;
    // SAFETY: with this flag the kernel takes a null pointer and reports a number.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u8>(), 0_usize, VERSION) };
    check(abi)?;
    Ok(u32::try_from(abi).unwrap_or(0))
}

/// What a Landlock ruleset handles, in the kernel's layout.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct LandlockHandled {
    pub(crate) files: u64,
    pub(crate) network: u64,
    pub(crate) scoped: u64,
}

/// A new, empty set of rules: what it handles is forbidden.
pub(crate) fn landlock_ruleset(handled: &LandlockHandled) -> Result<OwnedFd, Errno> {
    // SAFETY: the structure is the kernel's, with its size beside it; a kernel that does not know a field refuses the call
    // unless the field is zero. The descriptor is new and ours.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::from_ref(handled),
            size_of::<LandlockHandled>(),
            0 as c_uint,
        );
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(RawFd::try_from(fd).unwrap_or(-1)))
    }
}

/// Allows `access` to what is at and below `path`.
pub(crate) fn landlock_allow(rules: BorrowedFd<'_>, path: BorrowedFd<'_>, access: u64) -> Result<(), Errno> {
    #[repr(C, packed)]
    struct PathBeneath {
        access: u64,
        path: c_int,
    }
    const PATH_BENEATH: c_int = 1;
    let rule = PathBeneath { access, path: path.as_raw_fd() };
    // SAFETY: the layout is the kernel's `landlock_path_beneath_attr`, which is packed.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_raw_fd(),
            PATH_BENEATH,
            &raw const rule,
            0 as c_uint,
        )
    })
}

/// Restricts this thread, and all that it starts, to the rules.
pub(crate) fn landlock_restrict(rules: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0 as c_uint) })
}

/// Loads a filter of system calls for this thread and all that it starts.
pub(crate) fn load_filter(program: &[libc::sock_filter]) -> Result<(), Errno> {
    const SET_MODE_FILTER: c_uint = 1;
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::INVAL)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program and writes nothing to it.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0 as c_uint, &raw const program) })
}

fn check(result: c_long) -> Result<(), Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    // SAFETY: glibc's errno is a valid location of this thread.
    errno(unsafe { *libc::__errno_location() })
}

/// `Errno` panics for numbers that no system call returns.
pub(crate) fn errno(number: c_int) -> Errno {
    if (1..4096).contains(&number) { Errno::from_raw_os_error(number) } else { Errno::IO }
}
