//! The filter in the running kernel. A filter belongs to the thread that installs it, so each test makes a thread
//! and confines that; the same call from an unconfined thread is the allowed twin.
//!
//! Every call here is harmless should it pass: its other arguments are ones that the kernel refuses.
#![allow(unsafe_code)]
// A failing step fails the test, in helper functions too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;

use confine::enforce::seccomp::{Inet, Rules, install, native, program};
use libc::{EAFNOSUPPORT, EBADF, EFAULT, EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT, ESRCH, c_long};

/// An address that is mapped nowhere.
const NOWHERE: c_long = 1;
const GARBAGE: c_long = 0x1234_5678 << 32;

fn ordinary() -> Rules {
    Rules {
        inet: Inet::All,
        sysv_ipc: true,
        namespaces: false,
        listen: true,
        broker: Default::default(),
        unix_datagrams: false,
        own_processes: false,
    }
}

fn call(number: c_long, arguments: &[c_long]) -> Result<c_long, i32> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f] = all;
    // SAFETY: syscall(2) demands what the call itself demands. The callers below pass integers, descriptors of
    // their own, NUL-terminated strings that outlive the call, and addresses that the kernel refuses to follow;
    // none of the calls writes to this process's memory or starts a second flow of control in it.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap()),
        value => Ok(value),
    }
}

/// What `body` returns in a thread under these rules.
fn inside<T: Send + 'static>(rules: Rules, body: impl FnOnce() -> T + Send + 'static) -> T {
    let confined = move || {
        let program = program(native().expect("a supported architecture"), &rules);
        install(&program).unwrap();
        body()
    };
    std::thread::spawn(confined).join().unwrap()
}

type Try = (&'static str, c_long, &'static [c_long]);

fn under(rules: Rules, (_, number, arguments): Try) -> Result<c_long, i32> {
    inside(rules, move || call(number, arguments))
}

/// Asserts both sides: what an unconfined caller gets, and what a confined one gets.
fn compare(rules: &Rules, tries: &[(Try, Result<c_long, i32>, i32)]) {
    for (attempt, outside, confined) in tries {
        let (name, number, arguments) = *attempt;
        assert_eq!(call(number, arguments), *outside, "{name} outside");
        assert_eq!(under(rules.clone(), *attempt), Err(*confined), "{name} inside");
    }
}

#[test]
fn calls_that_need_no_privilege_are_denied() {
    compare(
        &ordinary(),
        &[
            (("keyctl", libc::SYS_keyctl, &[9999]), Err(EOPNOTSUPP), EPERM),
            (("add_key", libc::SYS_add_key, &[NOWHERE, NOWHERE]), Err(EFAULT), EPERM),
            (("kcmp", libc::SYS_kcmp, &[-1, -1]), Err(ESRCH), EPERM),
            (("openat2", libc::SYS_openat2, &[-1, NOWHERE, NOWHERE, 0]), Err(EINVAL), ENOSYS),
            (("clone3", libc::SYS_clone3, &[NOWHERE, 0]), Err(EINVAL), ENOSYS),
            (("unshare", libc::SYS_unshare, &[0]), Ok(0), EPERM),
            (("setns", libc::SYS_setns, &[-1, 0]), Err(EBADF), EPERM),
            (("process_mrelease", libc::SYS_process_mrelease, &[-1, 0]), Err(EBADF), EPERM),
        ],
    );
}

#[test]
fn calls_that_need_privilege_are_denied() {
    let tries: &[(Try, i32)] = &[
        (("mount", libc::SYS_mount, &[NOWHERE, NOWHERE, NOWHERE]), EPERM),
        (("umount2", libc::SYS_umount2, &[NOWHERE]), EPERM),
        (("pivot_root", libc::SYS_pivot_root, &[NOWHERE, NOWHERE]), EPERM),
        (("chroot", libc::SYS_chroot, &[NOWHERE]), EPERM),
        (("fsopen", libc::SYS_fsopen, &[NOWHERE]), ENOSYS),
        (("move_mount", libc::SYS_move_mount, &[-1, NOWHERE, -1, NOWHERE]), ENOSYS),
        (("bpf", libc::SYS_bpf, &[9999]), EPERM),
        (("acct", libc::SYS_acct, &[NOWHERE]), EPERM),
        (("swapon", libc::SYS_swapon, &[NOWHERE]), EPERM),
        (("reboot", libc::SYS_reboot, &[0, 0, 0, 0]), EPERM),
        (("sethostname", libc::SYS_sethostname, &[NOWHERE, -1]), EPERM),
        (("clock_settime", libc::SYS_clock_settime, &[9999, NOWHERE]), EPERM),
        (("open_by_handle_at", libc::SYS_open_by_handle_at, &[-1, NOWHERE, 0]), EPERM),
        (("fanotify_init", libc::SYS_fanotify_init, &[-1]), EPERM),
    ];
    for (attempt, errno) in tries {
        assert_eq!(under(ordinary(), *attempt), Err(*errno), "{}", attempt.0);
    }
}

#[test]
fn arguments_are_judged_on_the_half_that_the_kernel_reads() {
    const TIOCSTI: c_long = 0x5412;
    compare(
        &ordinary(),
        &[
            (("TIOCSTI", libc::SYS_ioctl, &[-1, TIOCSTI]), Err(EBADF), EPERM),
            (("TIOCSTI, high bits", libc::SYS_ioctl, &[-1, TIOCSTI | GARBAGE]), Err(EBADF), EPERM),
            (("setpriority", libc::SYS_setpriority, &[0, 0x7fff_fffe, 0]), Err(ESRCH), EPERM),
            (("prlimit64", libc::SYS_prlimit64, &[0x7fff_fffe, 7, NOWHERE]), Err(EFAULT), EPERM),
            // CLONE_SIGHAND without CLONE_VM is refused by the kernel.
            (("clone", libc::SYS_clone, &[0x1000_0800]), Err(EINVAL), EPERM),
            (("clone, high bits", libc::SYS_clone, &[0x1000_0800 | GARBAGE]), Err(EINVAL), EPERM),
            // CLONE_PARENT, with the same.
            (("clone a sibling", libc::SYS_clone, &[0x8800]), Err(EINVAL), EPERM),
            (("F_SET_RW_HINT", libc::SYS_fcntl, &[-1, 1036, NOWHERE]), Err(EBADF), EPERM),
            (("fast open", libc::SYS_sendto, &[-1, 0, 0, 0x2000_0000]), Err(EBADF), EOPNOTSUPP),
            (("sendmsg", libc::SYS_sendmsg, &[-1, 0, 0x2000_0000]), Err(EBADF), EOPNOTSUPP),
        ],
    );
    let passing: &[(Try, Result<c_long, i32>)] = &[
        (("TCGETS", libc::SYS_ioctl, &[-1, 0x5401]), Err(EBADF)),
        (("setpriority of oneself", libc::SYS_setpriority, &[0, 0, 19]), Ok(0)),
        (("prlimit64 of oneself", libc::SYS_prlimit64, &[0, 7, NOWHERE]), Err(EFAULT)),
        (("prlimit64, reading", libc::SYS_prlimit64, &[0x7fff_fffe, 7, 0, 0]), Err(ESRCH)),
        (("clone", libc::SYS_clone, &[0x800]), Err(EINVAL)),
        (("F_GET_RW_HINT", libc::SYS_fcntl, &[-1, 1035, NOWHERE]), Err(EBADF)),
        (("sendto", libc::SYS_sendto, &[-1, 0, 0, 0x4000]), Err(EBADF)),
    ];
    for (attempt, expected) in passing {
        assert_eq!(under(ordinary(), *attempt), *expected, "{}", attempt.0);
    }
}

/// The errno, or 0 for a socket; it is closed again.
fn socket(rules: &Rules, family: c_long, kind: c_long, protocol: c_long) -> i32 {
    inside(rules.clone(), move || match call(libc::SYS_socket, &[family, kind, protocol]) {
        Ok(descriptor) => call(libc::SYS_close, &[descriptor]).err().unwrap_or(0),
        Err(errno) => errno,
    })
}

#[test]
fn sockets_follow_the_rules() {
    let (none, tcp) = (Rules { inet: Inet::None, ..ordinary() }, Rules { inet: Inet::Tcp, ..ordinary() });
    for rules in [&none, &tcp, &ordinary()] {
        assert_eq!(socket(rules, 1, 1, 0), 0, "unix");
        assert_eq!(socket(rules, 16, 3, 0), 0, "netlink, routes");
        assert_eq!(socket(rules, 16, 3, 9), EPROTONOSUPPORT, "netlink, audit");
        assert_eq!(socket(rules, 40, 1, 0), EAFNOSUPPORT, "vsock");
        assert_eq!(socket(rules, 38, 5, 0), EAFNOSUPPORT, "AF_ALG");
        assert_eq!(socket(rules, 17, 3, 0), EAFNOSUPPORT, "packet");
    }
    assert_eq!(socket(&none, 2, 1, 0), EAFNOSUPPORT, "TCP without a network");
    assert_eq!(socket(&none, 2 | GARBAGE, 1, 0), EAFNOSUPPORT, "TCP without a network, high bits");
    for rules in [&tcp, &ordinary()] {
        assert_eq!(socket(rules, 2, 1, 0), 0, "TCP");
        assert_eq!(socket(rules, 2, 1, 262), EPROTONOSUPPORT, "MPTCP");
        assert_eq!(socket(rules, 2, 3, 1), EPROTONOSUPPORT, "raw");
    }
    assert_eq!(socket(&tcp, 2, 2, 0), EPROTONOSUPPORT, "UDP where ports are ruled");
    assert_eq!(socket(&ordinary(), 2, 2, 0), 0, "UDP");
}

#[test]
fn setuid_files_cannot_be_made() {
    let directory = Scratch::new("setuid");
    let (old, new) = (directory.0.join("old"), directory.0.join("new\0"));
    let file = File::create(&old).unwrap();
    let descriptor = c_long::from(file.as_raw_fd());
    let (creat, path) = (c_long::from(libc::O_CREAT | libc::O_WRONLY), new.into_os_string());
    let tries = inside(ordinary(), move || {
        let open = |mode| {
            let path = path.as_encoded_bytes().as_ptr() as c_long;
            let descriptor = call(libc::SYS_openat, &[c_long::from(libc::AT_FDCWD), path, creat, mode])?;
            call(libc::SYS_close, &[descriptor])
        };
        let chmod = |mode| call(libc::SYS_fchmod, &[descriptor, mode]);
        [chmod(0o4755), chmod(0o755), open(0o4755), open(0o755)]
    });
    assert_eq!(tries, [Err(EPERM), Ok(0), Err(EPERM), Ok(0)]);
    assert_eq!(call(libc::SYS_fchmod, &[descriptor, 0o4755]), Ok(0), "outside");
}

#[test]
fn system_v_ipc_follows_the_rules() {
    let attempt: Try = ("semget", libc::SYS_semget, &[0, -1, 0]);
    assert_eq!(under(Rules { sysv_ipc: false, ..ordinary() }, attempt), Err(ENOSYS));
    assert_eq!(under(ordinary(), attempt), Err(EINVAL));
}

#[test]
fn listen_follows_the_rules() {
    let attempt: Try = ("listen", libc::SYS_listen, &[-1, 1]);
    assert_eq!(under(Rules { listen: false, ..ordinary() }, attempt), Err(EPERM));
    assert_eq!(under(ordinary(), attempt), Err(EBADF));
}

#[test]
fn namespaces_follow_the_rules() {
    let attempt: Try = ("unshare", libc::SYS_unshare, &[0]);
    assert_eq!(under(ordinary(), attempt), Err(EPERM));
    assert_eq!(under(Rules { namespaces: true, ..ordinary() }, attempt), Ok(0));
}

#[test]
fn commands_threads_and_filters_of_its_own_still_work_inside() {
    let (status, thread) = inside(ordinary(), || {
        let status = Command::new("/bin/sh").args(["-c", "exit 7"]).status().unwrap();
        let again = install(&program(native().unwrap(), &ordinary()));
        (status, std::thread::spawn(move || again.is_ok()).join().unwrap())
    });
    assert_eq!((status.code(), thread), (Some(7), true));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_the_32_bit_architecture_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    const CHILD: &str = "CONFINE_TEST_INT80";
    if std::env::var_os(CHILD).is_some() {
        inside(ordinary(), || {
            let result: c_long;
            // SAFETY: getpid of the 32-bit table (20) reads no argument and writes nothing but rax; int 0x80
            // clobbers r8 to r11.
            unsafe {
                std::arch::asm!("int 0x80", inlateout("rax") 20 as c_long => result,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _);
            }
            println!("int 0x80 returned {result}");
        });
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_call_of_the_32_bit_architecture_ends_the_process"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    // A kernel without 32-bit calls has no such gate and sends SIGSEGV.
    let signal = child.status.signal();
    assert!(signal == Some(libc::SIGSYS) || signal == Some(libc::SIGSEGV), "{child:?}");
}

/// A directory of the test's own that goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("confine-syscalls-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
