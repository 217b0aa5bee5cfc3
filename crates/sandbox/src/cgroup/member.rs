//! A thread that is in a group of version 1, so that all it forks is in it from its first moment.
//!
//! Moving a process into a group makes the kernel wait for all its processors, ten milliseconds or more when nobody did so just
//! before. What is forked by a member of the group need not be moved. The thread waits for work as long as the group is there.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc;
use std::thread::JoinHandle;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub(super) struct Member {
    /// `None` only while it is dropped.
    work: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    /// Starts a thread that enters by these `tasks` files.
    pub(super) fn enter(mut doors: Vec<File>) -> io::Result<Self> {
        let (work, received) = mpsc::channel::<Work>();
        let (entered, outcome) = mpsc::channel();
        let thread = std::thread::Builder::new().name("sandbox-fork".to_owned()).spawn(move || {
            let _nobody_waits = entered.send(doors.iter_mut().try_for_each(|door| door.write_all(b"0")));
            drop(doors);
            for work in received {
                work();
            }
        })?;
        let member = Self { work: Some(work), thread: Some(thread) };
        outcome.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        Ok(member)
    }

    /// Does something in the thread, and waits for it.
    pub(super) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (done, outcome) = mpsc::channel();
        let work = Box::new(move || {
            let _nobody_waits = done.send(work());
        });
        let is_there = self.work.as_ref().is_some_and(|thread| thread.send(work).is_ok());
        let outcome = if is_there { outcome.recv().ok() } else { None };
        outcome.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
