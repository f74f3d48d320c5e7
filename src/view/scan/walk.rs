//! The walk: every directory below the roots once, every entry that is not a directory looked at once.
//!
//! A directory costs openat2, getdents64, one statx of its own descriptor and close; an entry costs one statx.
//! Directories are taken depth first from a stack of each thread; the stack is shared out when another thread
//! has nothing to do. Threads are only started when a tree proves large: starting one costs as much as some
//! hundred entries.
//!
//! Each directory is reached once, without a set of those seen: it has one parent, so it lies below exactly one
//! root when the walk stops at directories that are roots themselves.

use std::collections::HashSet;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::Scope;
use std::time::Instant;

use super::count::Names;
use super::progress::Progress;
use super::tree::{Budget, Cursor, Node, Opener};
use super::{Device, Unverifiable};
use crate::policy::Git;
use crate::view::control::{Guarded, Id};

const BUFFER: usize = 64 * 1024;
const STACK: usize = 256 * 1024;
/// A second thread pays off from about here on (a millisecond of warm work).
const ALONE: u64 = 1500;
/// Slower than this an entry waits for a disk, and more threads than processors keep the disk's queue full.
const COLD_NANOSECONDS: u64 = 6000;
const COLD_THREADS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything below the roots.
    Full,
    /// Only which directories have changed.
    Changed,
    /// The directories given, and what lies below them that no walk has read yet.
    Again,
}

/// What all threads of one walk read.
pub struct Plan<'a> {
    pub mode: Mode,
    /// A change time from here on means: changed since the walk began.
    pub since: i64,
    pub git: Git,
    /// Directories at which the walk stops, sorted: roots, and parts that are read-only or hidden inside.
    pub stops: &'a [Id],
    pub guarded: &'a RwLock<HashSet<Id>>,
    pub visited: &'a HashSet<Id>,
    pub mounts: &'a [u64],
    pub opener: &'a Opener,
    pub budget: &'a Arc<Budget>,
    pub progress: &'a Progress,
    pub max_threads: usize,
}

/// What a walk, or one thread of it, has found.
#[derive(Default)]
pub struct Gathered {
    pub entries: u64,
    pub directories: u64,
    pub read: Vec<Id>,
    pub names: Names,
    pub changed: Vec<(Id, Arc<Node>)>,
    /// Directories read in `Again`, with their change time from before.
    pub times: Vec<(Arc<Node>, Id, i64)>,
    /// A name was listed and gone when it was looked at.
    pub vanished: bool,
    pub devices: Vec<Device>,
    pub submounts: Vec<(usize, PathBuf)>,
    pub unverifiable: Vec<Unverifiable>,
    pub control: Vec<(usize, PathBuf)>,
    pub git_dirs: Vec<(usize, PathBuf)>,
    pub git_files: Vec<(usize, PathBuf)>,
    pub leftovers: Vec<(usize, PathBuf)>,
    pub guarded: Vec<Guarded>,
    pub(super) filesystems: Vec<u64>,
    pub coarse_times: bool,
}

impl Gathered {
    pub fn merge(&mut self, other: Gathered) {
        self.entries += other.entries;
        self.directories += other.directories;
        self.read.extend(other.read);
        self.names.merge(other.names);
        self.changed.extend(other.changed);
        self.times.extend(other.times);
        self.vanished |= other.vanished;
        self.devices.extend(other.devices);
        self.submounts.extend(other.submounts);
        self.unverifiable.extend(other.unverifiable);
        self.control.extend(other.control);
        self.git_dirs.extend(other.git_dirs);
        self.git_files.extend(other.git_files);
        self.leftovers.extend(other.leftovers);
        self.guarded.extend(other.guarded);
        self.coarse_times |= other.coarse_times;
    }
}

pub(super) enum Work {
    Start(Arc<Node>),
    /// Names, each ended by NUL, of directories below `node`; the first `at` bytes are done.
    Children {
        node: Arc<Node>,
        names: Vec<u8>,
        at: usize,
    },
}

#[derive(Default)]
struct Queue {
    work: Vec<Work>,
    /// Threads that may still add work.
    busy: usize,
}

pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan<'a>,
    queue: Mutex<Queue>,
    wake: Condvar,
    hungry: AtomicUsize,
    entries: AtomicU64,
    /// Bytes of the paths that were kept.
    pub(super) told: AtomicUsize,
    failed: AtomicBool,
    results: Mutex<Vec<io::Result<Gathered>>>,
}

impl Shared<'_> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is work or nobody is left who could make some.
    fn take(&self) -> Option<Work> {
        let mut queue = self.queue();
        loop {
            if let Some(work) = queue.work.pop() {
                return Some(work);
            }
            queue.busy -= 1;
            if queue.busy == 0 {
                // Counted under the lock that is held here.
                if self.hungry.load(Ordering::Relaxed) > 0 {
                    self.wake.notify_all();
                }
                return None;
            }
            self.hungry.fetch_add(1, Ordering::Relaxed);
            while queue.work.is_empty() && queue.busy > 0 {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            self.hungry.fetch_sub(1, Ordering::Relaxed);
            if queue.work.is_empty() {
                return None;
            }
            queue.busy += 1;
        }
    }
}

/// Walks from `starts` and joins every thread before it returns.
pub fn walk(plan: &Plan<'_>, starts: Vec<Arc<Node>>) -> io::Result<Gathered> {
    let shared = Shared {
        plan,
        queue: Mutex::new(Queue { work: Vec::new(), busy: 1 }),
        wake: Condvar::new(),
        hungry: AtomicUsize::new(0),
        entries: AtomicU64::new(0),
        told: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        results: Mutex::new(Vec::new()),
    };
    let mut first = Worker::new(&shared);
    first.stack.extend(starts.into_iter().rev().map(Work::Start));
    std::thread::scope(|scope| {
        let mut starter = Starter::new(plan.max_threads);
        first.run(|worker| starter.consider(worker, scope));
    });
    let mut all = first.gathered;
    let results = shared.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    for result in results {
        all.merge(result?);
    }
    Ok(all)
}

/// Decides on the calling thread when others are worth their start.
struct Starter {
    began: Instant,
    /// 0 lets the walk choose.
    asked: usize,
    /// Threads while nothing waits, and at most. Found when they matter: std reads the limits of every control
    /// group for it, which a small workspace need not wait for.
    limits: Option<(usize, usize)>,
    started: usize,
    checked: u64,
}

impl Starter {
    fn new(max: usize) -> Starter {
        Starter { began: Instant::now(), asked: max, limits: None, started: 1, checked: 0 }
    }

    fn limits(&mut self) -> (usize, usize) {
        let asked = self.asked;
        *self.limits.get_or_insert_with(|| {
            let cores = std::thread::available_parallelism().map_or(2, usize::from).max(2);
            let max = if asked == 0 { COLD_THREADS.max(cores) } else { asked };
            (cores.min(max), max)
        })
    }

    fn consider<'s, 'env>(&mut self, worker: &Worker<'env>, scope: &'s Scope<'s, 'env>) {
        let directories = worker.gathered.directories;
        if directories < self.checked + 16 {
            return;
        }
        let (warm, max) = self.limits();
        if self.started >= max {
            return;
        }
        self.checked = directories;
        let own = worker.gathered.entries.max(1);
        let elapsed = self.began.elapsed();
        let cold = elapsed.as_nanos() as u64 / own > COLD_NANOSECONDS && elapsed.as_micros() > 2000;
        let wanted = if cold { max } else { warm };
        let enough_left = worker.stack.len() > 1 || worker.has_several();
        if (own < ALONE && !cold) || !enough_left {
            return;
        }
        while self.started < wanted {
            worker.shared.queue().busy += 1;
            let shared = worker.shared;
            let body = move || {
                let mut worker = Worker::new(shared);
                worker.run(|_| ());
                let result = worker.failure.map_or(Ok(worker.gathered), Err);
                shared.results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
            };
            // A limit on threads makes the walk slower, not wrong.
            if std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body).is_err() {
                worker.shared.queue().busy -= 1;
                self.started = max;
                return;
            }
            self.started += 1;
        }
    }
}

/// One entry with several links, until the directory's own identity is known.
pub(super) struct Local {
    pub id: Id,
    pub nlink: u32,
    pub ctime: i64,
    pub name: usize,
}

pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) stack: Vec<Work>,
    pub(super) gathered: Gathered,
    pub(super) buffer: Box<[MaybeUninit<u8>]>,
    pub(super) children: Vec<u8>,
    pub(super) locals: Vec<Local>,
    pub(super) local_names: Vec<u8>,
    name: Vec<u8>,
    pub(super) cursor: Cursor,
    failure: Option<io::Error>,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared<'a>) -> Worker<'a> {
        Worker {
            shared,
            stack: Vec::new(),
            gathered: Gathered::default(),
            buffer: vec![MaybeUninit::uninit(); BUFFER].into_boxed_slice(),
            children: Vec::new(),
            locals: Vec::new(),
            local_names: Vec::new(),
            name: Vec::new(),
            cursor: Cursor::default(),
            failure: None,
        }
    }

    fn run(&mut self, mut after_each: impl FnMut(&Worker<'a>)) {
        let mut told = 0;
        loop {
            if self.stack.is_empty() {
                match self.shared.take() {
                    Some(work) => self.stack.push(work),
                    None => return,
                }
            }
            if self.shared.failed.load(Ordering::Relaxed) {
                self.stack.clear();
                self.shared.queue().work.clear();
                continue;
            }
            if let Err(error) = self.step() {
                self.failure = Some(error);
                self.shared.failed.store(true, Ordering::Relaxed);
            }
            if self.shared.hungry.load(Ordering::Relaxed) > 0 {
                self.share();
            }
            if self.gathered.entries >= told + 4096 {
                let all = self.shared.entries.fetch_add(self.gathered.entries - told, Ordering::Relaxed);
                told = self.gathered.entries;
                self.shared.plan.progress.tick(all);
            }
            after_each(self);
        }
    }

    /// Whether several names are left in the lowest entry of the stack: those are the largest parts of the tree. Asked
    /// often, so that it may not cost as much as there are names.
    fn has_several(&self) -> bool {
        match self.stack.first() {
            Some(Work::Children { names, at, .. }) => {
                let left = &names[*at..];
                left.iter().position(|byte| *byte == 0).is_some_and(|end| end + 1 < left.len())
            }
            Some(Work::Start(_)) | None => false,
        }
    }

    fn share(&mut self) {
        let several = self.stack.len() > 1;
        let given = match self.stack.first_mut() {
            Some(Work::Children { node, names, at }) => {
                let left = &names[*at..];
                let half = left.len() / 2;
                // Cut behind a name's end; the upper half goes, the lower stays on top of the way it is read.
                match left[..left.len().saturating_sub(1)].iter().skip(half).position(|byte| *byte == 0) {
                    Some(cut) => {
                        let given = names.split_off(*at + half + cut + 1);
                        Some(Work::Children { node: Arc::clone(node), names: given, at: 0 })
                    }
                    None if several => Some(self.stack.remove(0)),
                    None => None,
                }
            }
            Some(Work::Start(_)) if several => Some(self.stack.remove(0)),
            _ => None,
        };
        if let Some(work) = given {
            self.shared.queue().work.push(work);
            self.shared.wake.notify_one();
        }
    }

    /// Reads one directory.
    fn step(&mut self) -> io::Result<()> {
        let Some(top) = self.stack.last_mut() else { return Ok(()) };
        let node = match top {
            Work::Start(node) => {
                let node = Arc::clone(node);
                self.stack.pop();
                return self.start(&node);
            }
            Work::Children { node, names, at } => {
                let rest = &names[*at..];
                let end = rest.iter().position(|byte| *byte == 0).map_or(rest.len(), |end| end + 1);
                self.name.clear();
                self.name.extend_from_slice(&rest[..end]);
                *at += end;
                let last = *at >= names.len();
                let taken = Arc::clone(node);
                if last {
                    // Before the child is read, so that a chain of single directories holds no descriptors.
                    self.stack.pop();
                }
                taken
            }
        };
        let name = std::mem::take(&mut self.name);
        let result = match CStr::from_bytes_with_nul(&name) {
            Ok(name) => self.child(&node, name),
            Err(_) => Err(io::ErrorKind::InvalidData.into()),
        };
        self.name = name;
        result
    }
}
