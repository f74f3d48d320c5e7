//! What a run costs: the start against an empty program and against other sandboxes, and what the boundary costs
//! the command afterwards.
//!
//!     cargo bench --bench start            [-- start | steady] [ROUNDS]
//!
//! Contestants take turns, so that a machine that slows down slows all of them. The program
//! is its own empty program, target and load, told so by its first argument: what is compared is linked alike.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CONFINE: &str = env!("CARGO_BIN_EXE_confine");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--nothing"] => Ok(()),
        ["--become", program, rest @ ..] => Err(Command::new(program).args(rest).exec().into()),
        ["--landlock", workspace, program, rest @ ..] => landlock(workspace, program, rest),
        ["--getppid"] => load(1_000_000, || _ = std::hint::black_box(std::os::unix::process::parent_id())),
        ["--open", file] => load(200_000, || drop(fs::File::open(file))),
        ["--repeat", count, program, rest @ ..] => repeat(count, program, rest),
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

fn bench(words: &[&str]) -> Outcome<()> {
    let rounds = words.iter().find_map(|word| word.parse().ok());
    let place = Place::make()?;
    let all = !words.contains(&"start") && !words.contains(&"steady");
    if all || words.contains(&"start") {
        start(&place, rounds.unwrap_or(200))?;
    }
    if all || words.contains(&"steady") {
        steady(&place, rounds.unwrap_or(9))?;
    }
    Ok(fs::remove_dir_all(&place.base)?)
}

/// A workspace and a HOME of its own, with a copy of this program in the workspace: a hard link would be refused.
struct Place {
    base: PathBuf,
    workspace: PathBuf,
    home: PathBuf,
    program: PathBuf,
}

impl Place {
    fn make() -> Outcome<Place> {
        let base = std::env::temp_dir().canonicalize()?.join(format!("confine-start-{}", std::process::id()));
        let workspace = base.join("workspace");
        let home = base.join("home");
        fs::create_dir_all(&workspace)?;
        fs::create_dir_all(&home)?;
        let program = workspace.join("program");
        fs::copy(std::env::current_exe()?, &program)?;
        Ok(Place { base, workspace, home, program })
    }

    fn command(&self, line: &[String]) -> Command {
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).current_dir(&self.workspace).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", &self.home);
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        command
    }

    fn text(&self) -> (String, String, String) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        (text(&self.workspace), text(&self.home), text(&self.program))
    }
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

fn confine(place: &Place, inner: &[&str]) -> Vec<String> {
    let (workspace, ..) = place.text();
    let mut line = words(&[CONFINE, "--workspace", &workspace, "--"]);
    line.extend(words(inner));
    line
}

/// The same job as far as bubblewrap does it: the same trees, a private /dev, /tmp and HOME, the same namespaces.
fn bubblewrap(place: &Place, inner: &[&str]) -> Vec<String> {
    let (workspace, home, _) = place.text();
    let mut line = words(&["bwrap"]);
    for row in
        ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/var/lib/dpkg", "/var/cache/fontconfig"]
    {
        match fs::read_link(row) {
            Ok(to) => line.extend(words(&["--symlink", &to.to_string_lossy(), row])),
            Err(_) if Path::new(row).exists() => line.extend(words(&["--ro-bind", row, row])),
            Err(_) => {}
        }
    }
    line.extend(words(&["--dev", "/dev", "--ro-bind", "/proc", "/proc", "--ro-bind", "/sys", "/sys"]));
    line.extend(words(&["--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", &home]));
    line.extend(words(&["--bind", &workspace, &workspace, "--chdir", &workspace]));
    line.extend(words(&[
        "--unshare-user",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup",
    ]));
    line.push("--".to_owned());
    line.extend(words(inner));
    line
}

fn start(place: &Place, rounds: usize) -> Outcome<()> {
    let (workspace, _, program) = place.text();
    let target = [program.as_str(), "--nothing"];
    let mut contestants = vec![
        ("bare", words(&target)),
        ("empty program", words(&[&program, "--become", &program, "--nothing"])),
        ("Landlock alone", words(&[&program, "--landlock", &workspace, &program, "--nothing"])),
        ("confine", confine(place, &target)),
    ];
    let network = [CONFINE, "--workspace", &workspace, "--net", "host", "--", &program, "--nothing"];
    contestants.push(("confine --net host", words(&network)));
    contestants.push(("bubblewrap", bubblewrap(place, &target)));
    contestants.retain(|(name, line)| {
        let works = place.command(line).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !works {
            println!("{name}: not here, or it does not work here");
        }
        works
    });
    let mut walls = vec![Vec::with_capacity(rounds); contestants.len()];
    let mut spent = walls.clone();
    for _ in 0..rounds {
        for (((_, line), walls), spent) in contestants.iter().zip(&mut walls).zip(&mut spent) {
            let mut command = place.command(line);
            let before = processor_time()?;
            let began = Instant::now();
            command.status()?;
            walls.push(began.elapsed().as_nanos() as f64 / 1e6);
            spent.push(processor_time()? - before);
        }
    }
    let figures: Vec<[f64; 3]> = walls
        .iter_mut()
        .zip(&mut spent)
        .map(|(walls, spent)| [least(walls), median(walls), median(spent)])
        .collect();
    let of = |wanted: &str| {
        let index = contestants.iter().position(|(name, _)| *name == wanted);
        index.and_then(|index| figures.get(index)).copied()
    };
    let empty = of("empty program").unwrap_or_default();
    println!("\nstart, ms, {rounds} rounds in turn; in brackets what is over the empty program");
    println!("{:<20} {:>18} {:>18} {:>18}", "", "least", "median", "processor, median");
    for ((name, _), figures) in contestants.iter().zip(&figures) {
        print!("{name:<20}");
        for (figure, empty) in figures.iter().zip(empty) {
            print!(" {figure:>8.3} ({:>+7.3})", figure - empty);
        }
        println!();
    }
    if let (Some(ours), Some(theirs)) = (of("confine"), of("bubblewrap")) {
        print!("{:<20}", "confine / bubblewrap");
        for (ours, theirs) in ours.iter().zip(theirs) {
            print!(" {:>8.2}          ", ours / theirs);
        }
        println!();
    }
    Ok(())
}

/// Of all children so far, in ms: other load on the machine does not lengthen it, and waiting is not in it.
fn processor_time() -> Outcome<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let milliseconds = |time: TimeVal| time.num_microseconds() as f64 / 1e3;
    Ok(milliseconds(usage.user_time()) + milliseconds(usage.system_time()))
}

fn steady(place: &Place, rounds: usize) -> Outcome<()> {
    let (workspace, _, program) = place.text();
    make_repository(place)?;
    let file = place.workspace.join("program").to_string_lossy().into_owned();
    let jobs: [(&str, Vec<&str>); 5] = [
        ("getppid", vec![&program, "--getppid"]),
        ("openat and close", vec![&program, "--open", &file]),
        ("git status, 20000 files", vec![&program, "--repeat", "5", "git", "status", "--short"]),
        ("find, 20000 files", vec![&program, "--repeat", "5", "find", ".", "-newer", "program"]),
        (
            "python3 imports",
            vec![&program, "--repeat", "5", "python3", "-c", "import json, ssl, asyncio, unittest"],
        ),
    ];
    println!(
        "\nsteady state, {rounds} rounds in turn {:>12} {:>10} {:>10}",
        "outside", "Landlock", "confine"
    );
    for (name, job) in jobs {
        let mut landlocked = words(&[&program, "--landlock", &workspace]);
        landlocked.extend(words(&job));
        let lines = [words(&job), landlocked, confine(place, &job)];
        let mut times = vec![Vec::new(); lines.len()];
        for _ in 0..rounds {
            for (line, times) in lines.iter().zip(&mut times) {
                let output = place.command(line).stdout(Stdio::piped()).output()?;
                let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                times.push(text.parse::<f64>().map_err(|_| format!("{name}: no figure from {line:?}"))?);
            }
        }
        let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
        let [outside, landlock, inside] = medians[..] else { continue };
        println!(
            "{name:<32} {:>9.3} us {:>9.3}x {:>9.3}x",
            outside / 1e3,
            landlock / outside,
            inside / outside
        );
    }
    Ok(())
}

fn make_repository(place: &Place) -> Outcome<()> {
    for directory in 0..200 {
        let path = place.workspace.join(format!("src/{directory}"));
        fs::create_dir_all(&path)?;
        for file in 0..100 {
            fs::write(path.join(format!("{file}.txt")), format!("{directory} {file}\n"))?;
        }
    }
    for line in [
        &["git", "init", "-q"][..],
        // In the background it would move files while confine looks for hard links.
        &["git", "config", "gc.auto", "0"],
        &["git", "config", "maintenance.auto", "false"],
        &["git", "add", "."],
        &["git", "-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "all"],
    ] {
        if !place.command(&words(line)).status()?.success() {
            return Err(format!("{line:?} failed").into());
        }
    }
    Ok(())
}

/// Prints nanoseconds a call, the least of five series.
fn load(count: u32, call: impl Fn()) -> Outcome<()> {
    let series = (0..5).map(|_| {
        let began = Instant::now();
        (0..count / 5).for_each(|_| call());
        began.elapsed().as_nanos() as f64 / f64::from(count / 5)
    });
    println!("{}", series.fold(f64::INFINITY, f64::min));
    Ok(())
}

/// Prints the median nanoseconds of a command run several times: the start of the sandbox is not in it.
fn repeat(count: &str, program: &str, rest: &[&str]) -> Outcome<()> {
    let mut times = Vec::new();
    for _ in 0..count.parse::<u32>()? + 1 {
        let began = Instant::now();
        let status = Command::new(program).args(rest).stdout(Stdio::null()).status()?;
        times.push(began.elapsed().as_nanos() as f64);
        if !status.success() {
            return Err(format!("{program}: {status}").into());
        }
    }
    // The first fills the caches.
    times.remove(0);
    println!("{}", median(&mut times));
    Ok(())
}

/// One ruleset on the running process, and nothing else: what the kernel charges for Landlock as such.
fn landlock(workspace: &str, program: &str, rest: &[&str]) -> Outcome<()> {
    use landlock::{ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr};
    let all = AccessFs::from_all(ABI::V5);
    let mut ruleset = Ruleset::default().handle_access(all)?.create()?;
    let read = AccessFs::from_read(ABI::V5);
    let rows =
        [("/usr", read), ("/etc", read), ("/opt", read), ("/proc", read), ("/dev", all), (workspace, all)];
    for (path, access) in rows {
        ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
    }
    ruleset.restrict_self()?;
    Err(Command::new(program).args(rest).exec().into())
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
