//! What good tests need keeps working.

use std::os::fd::OwnedFd;

use crate::support::{Place, in_time};

#[test]
fn a_command_runs_with_its_output_and_its_exit_code() {
    let run = Place::new().prepare().shell("echo hello; echo oops >&2; exit 3");
    assert_eq!((run.output.as_str(), run.code()), ("hello\noops\n", Some(3)));
}

#[test]
fn it_runs_as_the_same_user_in_the_same_place() {
    let sandbox = Place::new().prepare();
    let run = sandbox.shell("id -u; id -g; pwd; umask");
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022)).bits();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
    assert_eq!(run.output, format!("{user}\n{group}\n{}\n{mask:04o}\n", sandbox.path("project")));
}

#[test]
fn temporary_files_shared_memory_and_the_home_can_be_used() {
    let script = "for d in /tmp /var/tmp /dev/shm ~; do echo x > $d/f && cat $d/f || exit 1; done";
    assert_eq!(Place::new().prepare().shell(script).output, "x\nx\nx\nx\n");
}

#[test]
fn devices_and_proc_work() {
    let script = "echo x > /dev/null && head -c 4 /dev/zero | wc -c && head -c 8 /dev/urandom | wc -c && \
                  cat /proc/self/comm && echo y | cat /dev/stdin && test -t 0; test -d /proc/self/fd";
    assert_eq!(Place::new().prepare().shell(script).output, "4\n8\ncat\ny\n");
}

#[test]
fn threads_and_subprocesses_work() {
    let sandbox = Place::new().prepare();
    assert_eq!(sandbox.attempt("threads", "").outcome(), "28");
    assert_eq!(sandbox.shell("echo a | sed s/a/b/ | tr b c; (exit 4) || echo $?").output, "c\n4\n");
}

#[test]
fn a_program_is_found_by_its_name() {
    assert_eq!(Place::new().prepare().run("echo", &["found"]).output, "found\n");
}

#[test]
fn python_works_with_its_threads_processes_and_sockets() {
    let sandbox = Place::new().prepare();
    if which::which_in("python3", Some("/usr/local/bin:/usr/bin:/bin"), "/").is_err() {
        return;
    }
    let script = "import socket, subprocess, tempfile, threading, multiprocessing as m\n\
                  t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n\
                  print(subprocess.check_output(['echo', 'process'], text=True), end='')\n\
                  s = socket.create_server(('localhost', 0)); s.close()\n\
                  tempfile.NamedTemporaryFile().write(b'x')\n\
                  q = m.get_context('fork').Queue(); q.put('queue'); print(q.get())";
    let run = sandbox.run("python3", &["-c", script]);
    assert_eq!(run.output, "thread\nprocess\nqueue\n");
}

#[test]
fn node_starts_with_workers() {
    let sandbox = Place::new().prepare();
    if which::which_in("node", Some("/usr/local/bin:/usr/bin:/bin"), "/").is_err() {
        return;
    }
    let script = "const {Worker} = require('worker_threads'); \
                  new Worker('require(\"worker_threads\").parentPort.postMessage(1+1)', {eval: true})\
                  .on('message', m => console.log('worker', m)); \
                  require('http').createServer((q, r) => r.end('ok')).listen(0, 'localhost', function () { \
                  fetch('http://localhost:' + this.address().port).then(r => r.text()).then(t => { console.log('http', t); this.close() }) })";
    let run = sandbox.run("node", &["-e", script]);
    let mut lines: Vec<_> = run.output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["http ok", "worker 2"]);
}

#[test]
fn more_open_files_can_be_given() {
    let sandbox = Place::new().prepare();
    let (reader, writer) = std::io::pipe().unwrap();
    let (command, output) =
        sandbox.command("/bin/sh", &["-c", "echo report >&7; ls /proc/self/fd | tr '\\n' ' '"]);
    let mut confined = sandbox.sandbox.spawn(command.descriptor(7, OwnedFd::from(writer))).unwrap();
    in_time(confined.wait());
    assert_eq!(std::io::read_to_string(reader).unwrap(), "report\n");
    assert_eq!(crate::support::all_of(output), "0 1 2 3 7 ");
}

#[test]
fn several_run_at_the_same_time() {
    let sandbox = Place::new().prepare();
    let outputs = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let sandbox = &sandbox;
                scope.spawn(move || sandbox.shell(&format!("echo {number} > mine; cat mine; ls")).output)
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for (number, output) in outputs.iter().enumerate() {
        assert_eq!(*output, format!("{number}\ndoomed\nmine\nsource\n"));
    }
}

#[test]
fn what_was_used_is_told() {
    let run = Place::new().prepare().shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    assert!(run.ended.cpu_ms > 0, "{:?}", run.ended);
    assert!(run.ended.peak_memory > 100_000, "{:?}", run.ended);
    assert_eq!(run.ended.left_running, 0);
}
