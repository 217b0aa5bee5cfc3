//! What an attacker tries: each act in a few lines, and what came of it in one word.
#![expect(unsafe_code, reason = "attacks are made of system calls")]

use std::ffi::CString;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::ptr::{null, null_mut};

pub(crate) const ACT: &str = "SANDBOX_TEST_ACT";
pub(crate) const ON: &str = "SANDBOX_TEST_ON";
const MARK: &str = "outcome: ";

/// Not a test of its own: the way into this binary for those that execute it again.
#[test]
fn perform() {
    let Ok(act) = std::env::var(ACT) else { return };
    let on = std::env::var(ON).unwrap();
    let outcome = match act_on(&act, &on) {
        Ok(said) => said,
        Err(error) => error_name(&error),
    };
    let mut output = std::io::stdout();
    writeln!(output, "\n{MARK}{outcome}").unwrap();
    output.flush().unwrap();
}

/// The word in the output of [`perform`].
pub(crate) fn outcome(output: &str) -> &str {
    output
        .lines()
        .find_map(|line| line.strip_prefix(MARK))
        .unwrap_or_else(|| panic!("no outcome in:\n{output}"))
}

fn error_name(error: &Error) -> String {
    let names = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EACCES, "EACCES"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EROFS, "EROFS"),
        (libc::EXDEV, "EXDEV"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EMFILE, "EMFILE"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
    ];
    let name = names.iter().find(|(number, _)| Some(*number) == error.raw_os_error());
    name.map_or_else(|| error.to_string(), |(_, name)| (*name).to_owned())
}

fn act_on(act: &str, on: &str) -> Result<String> {
    match act {
        "read" => std::fs::read_to_string(on),
        "list" => list(on),
        "write" => done(std::fs::File::options().create(true).append(true).open(on)?.write_all(b"x")),
        "write over" => done(std::fs::File::options().write(true).open(on)?.write_all(b"h")),
        "make directory" => done(std::fs::create_dir(on)),
        "hard link" => done(std::fs::hard_link(on, "link")),
        "write through a symbolic link" => {
            std::os::unix::fs::symlink(on, "link")?;
            done(std::fs::write("link", "x"))
        }
        "rename into" => {
            std::fs::write("/tmp/mine", "x")?;
            done(std::fs::rename("/tmp/mine", on))
        }
        "make device" => make_device(on),
        "read memory" => done(std::fs::File::open(on)?.read(&mut [0; 16])),
        "signal" => call(unsafe { libc::kill(on.parse().unwrap(), libc::SIGKILL) }.into()),
        "connect" => done(TcpStream::connect(on)),
        "send a datagram" => done(UdpSocket::bind("0.0.0.0:0")?.send_to(b"x", on)),
        "resolve" => match on.to_socket_addrs() {
            Ok(_) => Ok("resolved".into()),
            Err(_) => Ok("unresolved".into()),
        },
        "connect to a unix socket" => done(UnixStream::connect(on)),
        "connect to an abstract socket" => {
            done(UnixStream::connect_addr(&SocketAddr::from_abstract_name(on)?))
        }
        "serve" => serve(on),
        "serve on a unix socket" => serve_unix(on),
        "socket" => {
            let [family, kind] = numbers(on);
            call(unsafe { libc::socket(family, kind, 0) }.into())
        }
        "fork until refused" => fork_until_refused(),
        "take memory" => Ok(take_memory(on.parse().unwrap())),
        "fill" => fill(on),
        "open until refused" => open_until_refused(),
        "threads" => Ok((0..8)
            .map(|n| std::thread::spawn(move || n))
            .map(|t| t.join().unwrap())
            .sum::<u32>()
            .to_string()),
        other => kernel_act(other, on),
    }
}

/// Calls that nobody but the administrator of a machine needs.
fn kernel_act(act: &str, on: &str) -> Result<String> {
    let name = CString::new(on).unwrap();
    let name = name.as_ptr();
    let root = c"/".as_ptr();
    // SAFETY: pointers go to strings and buffers that live through the call, or are null where the kernel allows it.
    call(unsafe {
        match act {
            "ptrace" => libc::ptrace(libc::PTRACE_ATTACH, on.parse::<i32>().unwrap(), 0, 0),
            "process_vm_readv" => libc::syscall(
                libc::SYS_process_vm_readv,
                on.parse::<i32>().unwrap(),
                null::<u8>(),
                0,
                null::<u8>(),
                0,
                0,
            ),
            "mount" => libc::mount(c"none".as_ptr(), name, c"tmpfs".as_ptr(), 0, null()).into(),
            "remount" => libc::mount(null(), name, null(), libc::MS_REMOUNT | libc::MS_BIND, null()).into(),
            "unmount" => libc::umount2(name, libc::MNT_DETACH).into(),
            "unshare" => libc::unshare(libc::CLONE_NEWUSER).into(),
            "clone" => libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0),
            "clone3" => libc::syscall(libc::SYS_clone3, null::<u8>(), 0),
            "setns" => libc::syscall(libc::SYS_setns, 0, 0),
            "chroot" => libc::chroot(name).into(),
            "setuid" => libc::setuid(on.parse().unwrap()).into(),
            "bpf" => libc::syscall(libc::SYS_bpf, 0, null::<u8>(), 0),
            "perf_event_open" => libc::syscall(libc::SYS_perf_event_open, null::<u8>(), 0, -1, -1, 0),
            "io_uring_setup" => libc::syscall(libc::SYS_io_uring_setup, 1, null::<u8>()),
            "keyctl" => libc::syscall(libc::SYS_keyctl, 0, -3, 0),
            "open_by_handle_at" => libc::syscall(libc::SYS_open_by_handle_at, 0, null::<u8>(), 0),
            "userfaultfd" => libc::syscall(libc::SYS_userfaultfd, 0),
            "init_module" => libc::syscall(libc::SYS_init_module, null::<u8>(), 0, root),
            "reboot" => libc::syscall(libc::SYS_reboot, 0, 0, 0, null::<u8>()),
            "sethostname" => libc::sethostname(c"mine".as_ptr(), 4).into(),
            "settimeofday" => libc::syscall(libc::SYS_settimeofday, null::<u8>(), null::<u8>()),
            "type into a terminal" => type_into_a_terminal(),
            other => panic!("no such act: {other}"),
        }
    })
}

/// Opens a terminal of its own and pretends that somebody typed there.
unsafe fn type_into_a_terminal() -> i64 {
    let (mut outer, mut inner) = (0, 0);
    // SAFETY: the numbers are written; names and settings may be null.
    unsafe {
        assert_eq!(
            libc::openpty(&raw mut outer, &raw mut inner, null_mut(), null(), null()),
            0,
            "{}",
            Error::last_os_error()
        );
        libc::ioctl(inner, libc::TIOCSTI, c"x".as_ptr()).into()
    }
}

fn call(result: i64) -> Result<String> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok("done".into()) }
}

fn done<T>(result: Result<T>) -> Result<String> {
    result.map(|_| "done".into())
}

fn numbers<const N: usize>(text: &str) -> [i32; N] {
    text.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap()
}

fn list(directory: &str) -> Result<String> {
    let names = std::fs::read_dir(directory)?.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names.join(" "))
}

fn make_device(path: &str) -> Result<String> {
    let path = CString::new(path).unwrap();
    // SAFETY: the path is a string.
    call(unsafe { libc::mknod(path.as_ptr(), libc::S_IFBLK | 0o600, libc::makedev(8, 0)) }.into())
}

/// Listens, connects to itself and talks.
fn serve(address: &str) -> Result<String> {
    let listener = TcpListener::bind(address)?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    listener.accept()?.0.write_all(b"hello")?;
    let mut said = [0; 5];
    client.read_exact(&mut said)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn serve_unix(path: &str) -> Result<String> {
    let listener = UnixListener::bind(path)?;
    let mut client = UnixStream::connect(path)?;
    listener.accept()?.0.write_all(b"hello")?;
    let mut said = [0; 5];
    client.read_exact(&mut said)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn fork_until_refused() -> Result<String> {
    loop {
        // SAFETY: the child does nothing but wait for its end.
        match unsafe { libc::fork() } {
            0 => loop {
                unsafe { libc::pause() };
            },
            -1 => return Err(Error::last_os_error()),
            _ => {}
        }
    }
}

fn take_memory(bytes: usize) -> String {
    const PAGE: usize = 4096;
    let mut memory: Vec<u8> = Vec::new();
    if memory.try_reserve_exact(bytes).is_err() {
        return "ENOMEM".into();
    }
    memory.resize(bytes, 1);
    memory.iter().step_by(PAGE).map(|byte| usize::from(*byte)).sum::<usize>().to_string()
}

/// Writes until nothing more fits, and says how it was refused and how many MiB fitted.
fn fill(path: &str) -> Result<String> {
    let mut file = std::fs::File::create(Path::new(path))?;
    let block = vec![1; 1 << 20];
    for count in 0..1 << 14 {
        if let Err(error) = file.write_all(&block) {
            let name =
                if error.kind() == ErrorKind::StorageFull { "ENOSPC".into() } else { error_name(&error) };
            return Ok(format!("{name} after {count}"));
        }
    }
    Ok("never refused".into())
}

fn open_until_refused() -> Result<String> {
    let mut files = Vec::new();
    loop {
        // SAFETY: the path is a string; the descriptor is new and ours.
        match unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY) } {
            -1 => return Err(Error::last_os_error()),
            file => files.push(unsafe { OwnedFd::from_raw_fd(file) }),
        }
    }
}
