//! Fields of proc_pid_stat(5), and what they tell of a tree of processes.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// `root` and all below it. Orphans became children of the init, which is `root`.
pub fn descendants(all: Vec<Stat>, root: i32) -> Vec<Stat> {
    let mut inside = HashSet::from([root]);
    loop {
        let before = inside.len();
        inside.extend(
            all.iter().filter(|stat| inside.contains(&stat.parent)).map(|stat| stat.pid).collect::<Vec<_>>(),
        );
        if inside.len() == before {
            return all.into_iter().filter(|stat| inside.contains(&stat.pid)).collect();
        }
    }
}

/// Fields of proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// Only its number is left, until it is waited for. One whose first thread alone has ended is called a zombie too, and
    /// lives.
    pub dead: bool,
    /// A thread that lives on where the process's first has ended and has no memory any more.
    pub thread: Option<i32>,
    /// In ticks: this process, and those children that it has waited for.
    own: u64,
    children: u64,
    /// What of both the kernel did on their behalf.
    system: u64,
    pub threads: u64,
    start: u64,
    /// In pages.
    pub resident: u64,
}

impl Stat {
    pub fn parse(text: &str) -> Option<Stat> {
        let pid = text.split(' ').next()?.parse().ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        // From the state on, which is field 3.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let id = |field: usize| fields.get(field - 3)?.parse::<i32>().ok();
        let is_zombie = matches!(fields.first(), Some(&"Z" | &"X"));
        let threads = number(20)?.max(1);
        Some(Stat {
            pid,
            parent: id(4)?,
            group: id(5)?,
            session: id(6)?,
            dead: is_zombie && threads == 1,
            thread: None,
            own: number(14)? + number(15)?,
            children: number(16)? + number(17)?,
            system: number(15)? + number(17)?,
            // A zombie still has its number, and counts against a limit of processes.
            threads,
            start: number(22)?,
            resident: if is_zombie { 0 } else { number(24)? },
        })
    }

    /// Whether its first thread has ended before others.
    pub fn is_headless(&self) -> bool {
        self.resident == 0 && self.threads > 1
    }

    /// Where in /proc it is read.
    pub fn place(&self) -> String {
        match self.thread {
            None => self.pid.to_string(),
            Some(thread) => format!("{}/task/{thread}", self.pid),
        }
    }

    /// Numbers are given again.
    pub fn key(&self) -> (i32, u64) {
        (self.pid, self.start)
    }
}

/// Processor time of a tree. What was waited for stands in the parent's account; a parent that ignores SIGCHLD has
/// no such account (wait(2)), so what was seen of each process is added up as well. The greater of the two holds.
#[derive(Debug, Default)]
pub struct Clock {
    ticks_a_second: u64,
    last: HashMap<(i32, u64), u64>,
    seen: u64,
    most: u64,
}

impl Clock {
    pub fn new(ticks_a_second: u64) -> Clock {
        Clock { ticks_a_second, ..Clock::default() }
    }

    pub fn count(&mut self, members: &[Stat]) -> Duration {
        let mut last = HashMap::with_capacity(members.len());
        let mut accounts = 0;
        for member in members {
            self.seen += member.own.saturating_sub(self.last.get(&member.key()).copied().unwrap_or(0));
            accounts += member.own + member.children;
            last.insert(member.key(), member.own);
        }
        self.last = last;
        self.most = self.most.max(accounts).max(self.seen);
        self.time(self.most)
    }

    /// User and system time in the accounts of these.
    pub fn accounts(&self, members: &[Stat]) -> (Duration, Duration) {
        let all: u64 = members.iter().map(|member| member.own + member.children).sum();
        let system: u64 = members.iter().map(|member| member.system).sum();
        (self.time(all.saturating_sub(system)), self.time(system))
    }

    fn time(&self, ticks: u64) -> Duration {
        Duration::from_millis(ticks.saturating_mul(1000) / self.ticks_a_second.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, parent: i32, own: u64, children: u64) -> Stat {
        let (group, session, dead) = (pid, pid, false);
        let (threads, start, resident) = (1, 7, 1);
        Stat {
            pid,
            parent,
            group,
            session,
            dead,
            thread: None,
            own,
            children,
            system: 0,
            threads,
            start,
            resident,
        }
    }

    #[test]
    fn fields_are_counted_from_behind_a_hostile_name() {
        let text =
            "42 (a) R 1 (b) S 41 43 44 0 -1 4194304 1 2 3 4 50 60 70 80 20 0 9 0 12345 1000000 250 1844\n";
        let found = Stat::parse(text).unwrap();
        let wanted = Stat {
            pid: 42,
            parent: 41,
            group: 43,
            session: 44,
            dead: false,
            thread: None,
            own: 110,
            children: 150,
            system: 140,
            threads: 9,
            start: 12345,
            resident: 250,
        };
        assert_eq!(found, wanted);
        assert_eq!(Stat::parse("42 (a"), None);
    }

    #[test]
    fn a_process_is_dead_when_its_last_thread_is() {
        let rest = "0 -1 4194304 1 2 3 4 5 6 7 8 20 0";
        let dead = |state: &str, threads: u32| {
            Stat::parse(&format!("7 (a) Z 1 (x) {state} 42 43 44 {rest} {threads} 0 5 6 7")).unwrap().dead
        };
        assert!(!dead("S", 1));
        assert!(dead("Z", 1));
        assert!(!dead("Z", 2));
    }

    #[test]
    fn only_what_hangs_below_the_init_is_the_tree() {
        let all =
            vec![stat(9, 8, 0, 0), stat(8, 5, 0, 0), stat(5, 1, 0, 0), stat(6, 1, 0, 0), stat(1, 0, 0, 0)];
        let pids: Vec<i32> = descendants(all, 5).iter().map(|stat| stat.pid).collect();
        assert_eq!(pids, [9, 8, 5]);
    }

    #[test]
    fn time_of_children_counts_whether_or_not_they_were_waited_for() {
        let mut clock = Clock::new(100);
        assert_eq!(clock.count(&[stat(1, 0, 0, 0), stat(2, 1, 50, 0)]), Duration::from_millis(500));
        // Waited for: now in the account of process 1, and more of it than was seen.
        assert_eq!(clock.count(&[stat(1, 0, 0, 80)]), Duration::from_millis(800));
        // Not waited for: it stays counted, and so does what comes after it.
        let mut clock = Clock::new(100);
        clock.count(&[stat(1, 0, 0, 0), stat(2, 1, 50, 0)]);
        assert_eq!(clock.count(&[stat(1, 0, 0, 0)]), Duration::from_millis(500));
        assert_eq!(clock.count(&[stat(1, 0, 0, 0), stat(3, 1, 25, 0)]), Duration::from_millis(750));
    }
}
