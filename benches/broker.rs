//! What the broker of hosts without namespaces costs: programs that change metadata all the time, bare and confined
//! in turn, and whether a million calls leave anything behind in the process that answers them.
//!
//!     cargo bench --bench broker           [-- ratios | growth] [ROUNDS]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CONFINE: &str = env!("CARGO_BIN_EXE_confine");
const FILES: usize = 10_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--chmods", file, count] => chmods(file, count),
        rest => bench(rest),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The load of `growth`.
fn chmods(file: &str, count: &str) -> Outcome<()> {
    for number in 0..count.parse::<u32>()? {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600 | (number & 1) << 5))?;
    }
    Ok(())
}

fn bench(words: &[&str]) -> Outcome<()> {
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(7);
    let base = std::env::temp_dir().join(format!("broker-bench-{}", std::process::id()));
    let workspace = base.join("w");
    fs::create_dir_all(&workspace)?;
    fs::copy(std::env::current_exe()?, workspace.join("load"))?;
    if !words.contains(&"growth") {
        ratios(&workspace, rounds)?;
    }
    if !words.contains(&"ratios") {
        growth(&workspace)?;
    }
    Ok(fs::remove_dir_all(base)?)
}

fn ratios(workspace: &Path, rounds: usize) -> Outcome<()> {
    tree(&workspace.join("tree"))?;
    shell(workspace, false, "tar -cf tree.tar tree")?;
    package(workspace)?;
    let mut loads = vec![
        ("chmod -R of 10k files", "chmod -R go-w tree"),
        ("tar -x of 10k files", "rm -rf out; mkdir out; tar -xf tree.tar -C out"),
        ("tar -xm, times not set", "rm -rf out; mkdir out; tar -xmf tree.tar -C out"),
        ("cp -a of 10k files", "rm -rf out; cp -a tree out"),
    ];
    if which("npm") {
        loads.push((
            "npm install of a tarball",
            "rm -rf node_modules package-lock.json; npm install --offline --no-audit --no-fund ./package.tgz",
        ));
    }
    println!("{:<28} {:>9} {:>9}  ratio", "least of alternating runs", "bare", "broker");
    for (name, script) in loads {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for confined in [false, true] {
                times[usize::from(confined)].push(shell(workspace, confined, script)?);
            }
        }
        let [bare, broker] = times.map(least);
        let ratio = broker.as_secs_f64() / bare.as_secs_f64();
        println!("{name:<28} {:>6} ms {:>6} ms  {ratio:.2}", bare.as_millis(), broker.as_millis());
    }
    Ok(())
}

fn growth(workspace: &Path) -> Outcome<()> {
    fs::write(workspace.join("file"), "")?;
    let load = "./load --chmods file";
    let script = format!("{load} 1000 && touch warm && {load} 1000000 && touch done && sleep 600");
    let mut child = command(workspace, true, &script).spawn()?;
    let before = at(&workspace.join("warm"), child.id());
    let start = Instant::now();
    let after = at(&workspace.join("done"), child.id());
    let each = start.elapsed() / 1_000_000;
    child.kill()?;
    child.wait()?;
    let ((descriptors, resident), (now, weighs)) = (before?, after?);
    println!("a million calls, {} ns each", each.as_nanos());
    println!("descriptors of the monitor: {descriptors} before, {now} after");
    println!("resident memory of the monitor: {resident} before, {weighs} after");
    Ok(())
}

/// Once the mark is there: descriptors and resident memory of the process.
fn at(mark: &Path, pid: u32) -> Outcome<(usize, String)> {
    // A million calls take a minute where the machine is slow.
    for _ in 0..120_000 {
        if mark.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    Ok((descriptors, line.trim().to_owned()))
}

fn tree(top: &Path) -> Outcome<()> {
    for dir in 0..100 {
        let dir = top.join(format!("dir{dir}"));
        fs::create_dir_all(&dir)?;
        for file in 0..FILES / 100 {
            fs::write(dir.join(format!("file{file}")), "a few bytes\n")?;
        }
    }
    Ok(())
}

/// Two thousand files in a package.
fn package(workspace: &Path) -> Outcome<()> {
    let dir = workspace.join("package");
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("package.json"), "{\"name\":\"many\",\"version\":\"1.0.0\"}")?;
    for file in 0..2000 {
        fs::write(dir.join(format!("file{file}.js")), "module.exports = 1\n")?;
    }
    shell(workspace, false, "tar -czf package.tgz package").map(drop)
}

fn which(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn command(workspace: &Path, confined: bool, script: &str) -> Command {
    let shell = ["bash", "-c", script];
    let mut command = Command::new(if confined { CONFINE } else { shell[0] });
    if confined {
        command.args(["--namespaces", "off", "--workspace", "."]).arg("--").args(shell);
    } else {
        command.args(&shell[1..]);
    }
    command.current_dir(workspace).stdout(Stdio::null());
    command
}

fn shell(workspace: &Path, confined: bool, script: &str) -> Outcome<Duration> {
    let start = Instant::now();
    let status = command(workspace, confined, script).status()?;
    let elapsed = start.elapsed();
    if status.success() { Ok(elapsed) } else { Err(format!("{script}: {status}").into()) }
}

/// What other programs of the machine add is never negative.
fn least(times: Vec<Duration>) -> Duration {
    times.into_iter().min().unwrap_or_default()
}
