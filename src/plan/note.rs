//! `CONFINE_NOTE`: what a command, or the model behind it, needs to know about where it runs.

use std::fmt::Write;

use super::{Namespace, Plan};
use crate::enforce::seccomp::Inet;
use crate::error::show;
use crate::view::{Access, Backing, Origin, Place, View};

/// Plain text, short lines, facts first. Names come from the user and from hostile trees, so each is escaped.
pub fn text(plan: &Plan, view: &View) -> String {
    let mut note = String::from(
        "You run inside `confine`. What follows is enforced by the kernel; retrying or going around it does not help.\n",
    );
    let mut line = |text: &str| {
        note.push_str(text);
        note.push('\n');
    };
    line("\nFILES");
    for root in &view.roots {
        let what = if root.writable { "read and write" } else { "read only" };
        line(&format!("  {what}: {}", show(root.path.as_os_str())));
    }
    line("  private and gone afterwards:");
    for place in view.places().filter(|place| matches!(place.backing, Backing::Fresh { .. })) {
        line(&format!("    {}", show(place.path.as_os_str())));
    }
    line("  caches whose changes are private and gone afterwards:");
    for place in view.places().filter(|place| place.backing == Backing::Layer) {
        line(&format!("    {}", show(place.path.as_os_str())));
    }
    line("  the rest of the system is read only or does not exist here:");
    line("    ENOENT (No such file or directory): not visible; ask the user for `--ro PATH` or `--rw PATH`");
    line("    EROFS (Read-only file system) or EACCES (Permission denied) on writing: not a writable root;");
    line("      ask the user for `--rw PATH`");
    line("    EXDEV (Invalid cross-device link): rename and link do not cross roots; copy instead");
    let guarded = |place: &&Place| place.origin == Origin::Found && place.backing == Backing::Itself;
    if view.places().any(|place| guarded(&place)) {
        line("  guarded, because they run by themselves outside (EROFS or EBUSY on change):");
        for place in view.places().filter(guarded).filter(|place| place.access == Access::Read) {
            line(&format!("    {}", show(place.path.as_os_str())));
        }
        line("    a commit works; a new hook or git setting is for the user to make");
        line("    set one for a single command with `git -c KEY=VALUE`");
    }
    line("\nNETWORK");
    match (plan.process.seccomp.inet, plan.has(Namespace::Network)) {
        (Inet::All, true) => {
            line(
                "  none but a private loopback: servers and clients in here reach each other on 127.0.0.1 and ::1",
            );
            line(
                "    ENETUNREACH, or a name that does not resolve: there is no outside; ask for `--net host`",
            );
            line("      or `--connect PORT`");
            line("    ECONNREFUSED on 127.0.0.1: the user's own servers are not here");
        }
        (Inet::All, false) => line("  the host's"),
        (Inet::Tcp, _) => {
            let ports = plan.world.ruleset.connect.as_deref().unwrap_or_default();
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            line(&format!(
                "  TCP to port {} only (EACCES for others); no UDP, no listening",
                ports.join(", ")
            ));
            line("    (EAFNOSUPPORT, EPROTONOSUPPORT, EPERM); ask for `--connect PORT`");
        }
        (Inet::None, _) => line("  none, no loopback either (EAFNOSUPPORT)"),
    }
    line("  sockets of other programs (agents, docker, D-Bus, X11) are out of reach");
    line("\nPROCESSES");
    line("  processes outside cannot be signalled, traced or read (EPERM, EACCES); own children can");
    line("  no privilege is to be had: sudo, setuid programs, mounts and namespaces fail (EPERM)");
    line(
        "    bubblewrap, podman, and the sandboxes of Chromium and bazel fail: use their option without sandbox",
    );
    line("  io_uring and some newer calls are not there (ENOSYS); their callers fall back");
    line("  a setuid mode cannot be set (EPERM)");
    line("  signing with gpg or ssh keys is not possible: keys and agents are outside");
    if let Some(ceilings) = plan.supervision.as_ref().and_then(|supervision| supervision.ceilings.as_ref()) {
        line("\nLIMITS of everything in here together");
        if let Some(count) = ceilings.procs {
            line(&format!("  {count} processes and threads (EAGAIN, or the end of the run)"));
        }
        if let Some(bytes) = ceilings.memory {
            line(&format!("  {bytes} bytes of memory, /tmp included; above it everything in here is killed"));
        }
        if let Some(time) = ceilings.cpu {
            line(&format!("  {} s of processor time; above it everything is killed", time.as_secs_f64()));
        }
        if let Some(bytes) = ceilings.disk {
            line(&format!("  {bytes} bytes that the disk may lose meanwhile; above it everything is killed"));
        }
    }
    if !plan.waived.is_empty() {
        line("\nGIVEN UP ON THIS HOST");
        for (promise, why) in &plan.waived {
            line(&format!("  {promise}: {why}"));
        }
    }
    let _ = write!(note, "\npolicy {}\n", plan.id());
    note
}
