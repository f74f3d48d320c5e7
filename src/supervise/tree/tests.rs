#![forbid(unsafe_code)]

use super::*;
use crate::sys;

/// Forks and ends, over and over, for a minute unless somebody ends it.
fn hop(own_session: bool) -> i32 {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        match sys::fork_into_two() {
            Ok(None) if own_session => _ = nix::unistd::setsid(),
            Ok(None) => {}
            _ => return 0,
        }
    }
    0
}

/// In a process of its own, since it ends all that it has.
fn end_hoppers(own_session: bool) -> i32 {
    let Ok(()) = set_child_subreaper(true) else { return 2 };
    for _ in 0..4 {
        let _ = sys::fork(|| hop(own_session));
    }
    std::thread::sleep(Duration::from_millis(50));
    let tree = Tree { root: Pid::this(), enclosure: None, foreign: Vec::new() };
    let ended = tree.end().is_ok();
    i32::from(!(ended && reap() == Err(Errno::ECHILD)))
}

#[test]
fn without_an_enclosure_what_hops_is_chased_until_the_kernel_says_that_none_is_left() {
    for own_session in [false, true] {
        let child = sys::fork(|| end_hoppers(own_session)).unwrap();
        let status = nix::sys::wait::waitpid(Pid::from_raw(child), None).unwrap();
        assert_eq!(status, nix::sys::wait::WaitStatus::Exited(Pid::from_raw(child), 0), "{own_session}");
    }
}
