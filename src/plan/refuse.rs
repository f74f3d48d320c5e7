//! What a host, a policy or a view is refused for, and in which words.

use crate::error::{Error, Result, paste, show};
use crate::host::{Host, Lack, World};
use crate::policy::{Git, Hardlinks, Listen, Policy, Promise};
use crate::supervise::broker::probe::Abilities;
use crate::view::danger::danger;
use crate::view::{Access, Backing, Place, Root, View};

/// Denials are logged, Linux 6.15.
const LOG_ABI: u32 = 7;

/// Options that open something which nothing but a broker narrows: no waiver makes one.
pub fn without_broker(policy: &Policy, host: &Host) -> Result<()> {
    let options = [
        ("--loopback host", policy.network.grants_loopback()),
        ("--listen", policy.network.listen != Listen::None),
    ];
    match (&host.broker, options.iter().find(|(_, asked)| *asked)) {
        (Some(Abilities { connect: Err(why), .. }), Some((option, _))) => {
            Err(Error::refused(format!("{option} needs a broker, which cannot be had here ({why})")))
        }
        _ => Ok(()),
    }
}

/// Every promise that is lacking in one message, so that one look says all that must be decided.
pub fn lacking(policy: &Policy, host: &Host, lacking: &[(Promise, Lack)]) -> Result<()> {
    if lacking.is_empty() {
        return Ok(());
    }
    let shared = match &host.world {
        World::Missing(lack) => format!(", and {}", lack.why),
        World::User | World::Privileged => String::new(),
    };
    let (mut names, mut whys, mut hints) = (Vec::new(), Vec::<&str>::new(), Vec::<&str>::new());
    for (promise, lack) in lacking {
        let why = lack.why.strip_suffix(&shared).unwrap_or(&lack.why);
        names.push(promise.name());
        whys.extend(Some(why).filter(|why| !whys.contains(why)));
        hints.extend(lack.help.as_deref().filter(|help| !hints.contains(help)));
    }
    let mut message = format!("{} cannot be kept: {}", names.join(" and "), whys.join("; "));
    if lacking.iter().any(|(_, lack)| lack.why.ends_with(&shared)) {
        message.push_str(&shared);
    }
    let required = lacking.iter().filter_map(|(promise, _)| policy.setting("require", promise.name()));
    for setting in required.filter(|setting| setting.origin.is_file()) {
        message.push_str(&format!(" ({} is required by {})", setting.value.display(), setting.origin));
    }
    let names: Vec<Promise> = lacking.iter().map(|(promise, _)| *promise).collect();
    let mut hint = hints.join("; ");
    // What the administrator demands nobody gives up.
    if names.iter().all(|name| can_be_waived(*name) && !policy.never_waive.contains(name)) {
        let or = if hint.is_empty() { "" } else { "; or " };
        hint.push_str(&format!("{or}{}", giving_up(policy, &names)));
    }
    let error = Error::refused(message);
    Err(if hint.is_empty() { error } else { error.with_hint(hint) })
}

/// What to change on the line: what is required there cannot be waived there as well.
fn giving_up(policy: &Policy, lacking: &[Promise]) -> String {
    let told = |option: &str, promises: &[Promise]| {
        let words: Vec<String> = promises.iter().map(|promise| format!("{option} {promise}")).collect();
        format!("`{}`", words.join(" "))
    };
    let required: Vec<Promise> =
        lacking.iter().copied().filter(|promise| policy.require.contains(promise)).collect();
    let optional = [Promise::PathHiding, Promise::ProcessHiding, Promise::Teardown];
    let wanted: Vec<Promise> =
        lacking.iter().copied().filter(|promise| !optional.contains(promise)).collect();
    let them = |promises: &[Promise]| if promises.len() == 1 { "it" } else { "them" };
    let waive =
        |promises: &[Promise]| format!("give {} up with {}", them(promises), told("--waive", promises));
    if required.is_empty() {
        return waive(lacking);
    }
    let all = policy.require.len() == Promise::ALL.len();
    let option = if all { "`--strict`".to_owned() } else { told("--require", &required) };
    let and = if wanted.is_empty() { String::new() } else { format!(" and {}", waive(&wanted)) };
    let profile = told("--waive", lacking);
    format!("leave out {option}{and} ({profile} where a profile asks for {})", them(lacking))
}

/// Without Landlock nothing is left that rules files, and the self-check would find that out.
pub fn can_be_waived(promise: Promise) -> bool {
    !matches!(promise, Promise::WriteScope | Promise::ReadScope)
}

/// Options that mean something only where there is a view: Landlock adds rights and takes none away.
pub fn options(policy: &Policy, host: &Host) -> Result<()> {
    if policy.kernel_log && host.landlock.abi() < LOG_ABI {
        return Err(Error::refused(format!(
            "--kernel-log needs Landlock ABI {LOG_ABI}, this kernel has {}",
            host.landlock.abi()
        ))
        .with_hint("boot a kernel of at least 6.15, or list what is denied with `confine trace`"));
    }
    let World::Missing(lack) = &host.world else { return Ok(()) };
    let options = [
        ("--user", policy.user.is_some()),
        ("--git read-only", policy.git == Git::ReadOnly),
        ("--hardlinks protect", policy.hardlinks == Hardlinks::Protect),
    ];
    if let Some((option, _)) = options.iter().find(|(_, asked)| *asked) {
        return Err(needs_view(format!("{option} needs a mount namespace"), lack));
    }
    Ok(())
}

fn needs_view(what: String, lack: &Lack) -> Error {
    let error = Error::refused(format!("{what}: {}", lack.why));
    match &lack.help {
        Some(help) => error.with_hint(help.clone()),
        None => error,
    }
}

/// What the view would have narrowed.
pub fn without_view(view: &View, host: &Host) -> Result<()> {
    let World::Missing(lack) = &host.world else { return Ok(()) };
    let narrowed = |place: &&Place| {
        let inside =
            |root: &Root| root.writable && place.path != root.path && place.path.starts_with(&root.path);
        place.backing == Backing::Sealed || place.access < Access::Write && view.roots.iter().any(inside)
    };
    if let Some(place) = view.places().find(narrowed) {
        let path = show(place.path.as_os_str());
        return Err(needs_view(format!("{path} cannot be narrowed without a mount namespace"), lack));
    }
    if let Some(path) = view.mounted.first() {
        let warning = danger(path, &view.home, true)
            .map(|warning| format!("  # careful: {warning}"))
            .unwrap_or_default();
        return Err(Error::refused(format!(
            "{} is mounted inside a writable root and cannot be kept read-only: {}",
            show(path.as_os_str()),
            lack.why
        ))
        .with_hint(format!("make it writable on purpose with `--rw {}`{warning}", paste(path.as_os_str()))));
    }
    Ok(())
}
