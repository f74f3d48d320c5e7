//! The exact count of a tree's memory, a slice at a time: whoever counts has signals and deadlines to look after, and a
//! tree can be made that takes long to read.

use super::stat::Stat;

/// Anonymous memory, and shared memory that is mapped.
pub type Shares = (u64, u64);

#[derive(Debug, Default)]
pub struct Walk {
    /// The largest last, so that what decides is read first.
    left: Vec<Stat>,
    read: Vec<(Stat, Shares)>,
    /// Of what was read.
    total: Shares,
    /// Shared memory, whether or not somebody has it mapped.
    unmapped: u64,
}

impl Walk {
    pub fn new(mut members: Vec<Stat>, unmapped: u64) -> Walk {
        members.sort_by_key(|member| member.resident);
        Walk { left: members, unmapped, ..Walk::default() }
    }

    pub fn next(&mut self) -> Option<Stat> {
        self.left.pop()
    }

    pub fn add(&mut self, member: Stat, shares: Shares) {
        self.total = (self.total.0 + shares.0, self.total.1 + shares.1);
        self.read.push((member, shares));
    }

    /// The shares of those that have ended since have gone over to others, and would count twice.
    pub fn retain(&mut self, is_there: impl Fn(&Stat) -> bool) {
        self.read.retain(|(member, _)| is_there(member));
        self.total = self.read.iter().fold((0, 0), |sum, (_, own)| (sum.0 + own.0, sum.1 + own.1));
    }

    /// Of what was read so far; what of shared memory is mapped is part of what is there.
    pub fn sum(&self) -> u64 {
        self.total.0 + self.unmapped.max(self.total.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, resident: u64) -> Stat {
        let line = format!("{pid} (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0 {resident} 0");
        Stat::parse(&line).unwrap()
    }

    #[test]
    fn the_largest_come_first_and_what_has_ended_counts_no_more() {
        let mut walk = Walk::new(vec![stat(1, 5), stat(2, 9), stat(3, 1)], 40);
        let order: Vec<i32> = std::iter::from_fn(|| walk.next()).map(|member| member.pid).collect();
        assert_eq!(order, [2, 1, 3]);
        walk.add(stat(2, 9), (100, 30));
        walk.add(stat(1, 5), (50, 20));
        assert_eq!(walk.sum(), 200);
        walk.retain(|member| member.pid == 1);
        assert_eq!(walk.sum(), 90);
    }
}
