//! What a parent costs at the start: against the ordinary run, and against bubblewrap with a PID namespace.
//!
//!     cargo bench --bench supervise            [-- ROUNDS]
//!
//! Contestants take turns, so that a machine that slows down slows all of them; medians are compared. The command is
//! this program itself, told to do nothing; its bare start is what all of them have in common.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CONFINE: &str = env!("CARGO_BIN_EXE_confine");

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "--nothing") {
        return ExitCode::SUCCESS;
    }
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(200);
    match bench(rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(rounds: usize) -> Outcome<()> {
    let base = std::env::temp_dir().canonicalize()?.join(format!("confine-supervise-{}", std::process::id()));
    fs::create_dir_all(&base)?;
    let program = base.join("program");
    fs::copy(std::env::current_exe()?, &program)?;
    let done = compare(&base, &program.display().to_string(), rounds);
    fs::remove_dir_all(&base)?;
    done
}

fn compare(base: &Path, program: &str, rounds: usize) -> Outcome<()> {
    let workspace = base.display().to_string();
    let confined = |options: &[&str]| {
        let mut line = vec![CONFINE.to_owned(), "--workspace".to_owned(), workspace.clone()];
        line.extend(options.iter().map(|option| (*option).to_owned()));
        line.push("--".to_owned());
        line
    };
    // The same job as confine's: a view of system directories only, every namespace, the end with the caller.
    let mut bubblewrap: Vec<String> =
        "bwrap --unshare-all --die-with-parent --proc /proc --dev /dev --tmpfs /tmp \
        --ro-bind /usr /usr --ro-bind /etc /etc --ro-bind-try /bin /bin --ro-bind-try /sbin /sbin \
        --ro-bind-try /lib /lib --ro-bind-try /lib64 /lib64 --ro-bind-try /opt /opt"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    bubblewrap.extend(["--bind".to_owned(), workspace.clone(), workspace.clone(), "--".to_owned()]);
    let contestants = [
        ("bare", Vec::new()),
        ("ordinary run", confined(&[])),
        ("--require process-hiding", confined(&["--require", "process-hiding"])),
        ("--require teardown", confined(&["--require", "teardown"])),
        ("--strict --timeout 1h", confined(&["--strict", "--timeout", "1h"])),
        ("bubblewrap, PID namespace", bubblewrap),
    ];
    let mut times: Vec<Vec<u128>> = vec![Vec::new(); contestants.len()];
    for round in 0..=rounds {
        for ((name, line), times) in contestants.iter().zip(&mut times) {
            let words: Vec<&str> = line.iter().map(String::as_str).chain([program, "--nothing"]).collect();
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).current_dir(base).env_clear();
            command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/home/nobody");
            let start = Instant::now();
            let status = command.stdin(Stdio::null()).status()?;
            let took = start.elapsed().as_micros();
            if !status.success() {
                return Err(format!("{name}: {status}").into());
            }
            // The first round only warms up.
            if round > 0 {
                times.push(took);
            }
        }
    }
    let medians: Vec<u128> = times.into_iter().map(median).collect();
    let ordinary = medians.get(1).copied().unwrap_or(1) as f64;
    let bubblewrap = medians.last().copied().unwrap_or(1) as f64;
    println!("{:<28} {:>9} {:>14} {:>14}", "", "us", "/ ordinary", "/ bubblewrap");
    for ((name, _), median) in contestants.iter().zip(&medians) {
        let (a, b) = (*median as f64 / ordinary, *median as f64 / bubblewrap);
        println!("{name:<28} {median:>9} {a:>14.2} {b:>14.2}");
    }
    Ok(())
}

fn median(mut times: Vec<u128>) -> u128 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
