//! The link scan against a C program of the same idea and against find: `cargo bench --bench link_scan`.
//!
//! Trees of 1000 files and more, ten to a directory, are made below TMPDIR and removed. Runs are interleaved and
//! the medians compared. As root it measures with a cold cache as well, which drops the machine's page cache.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a benchmark stops where it fails

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use confine::view::scan::{Options, Root, scan};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 500_000];
const FILES: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--scan") {
        return alone(Path::new(&arguments[at + 1]));
    }
    let base = std::env::temp_dir().join(format!("confine-bench-{}", std::process::id()));
    fs::create_dir(&base).expect("a directory for the trees");
    let reference = base.join("reference");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/link_scan_reference.c");
    let built = Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&reference).arg(source).status();
    assert!(built.is_ok_and(|status| status.success()), "the reference needs a C compiler");
    println!(
        "{:>8} {:>5} {:>12} {:>12} {:>12} {:>8} {:>8} {:>9}",
        "files", "cache", "scan us", "C us", "find us", "of C", "of find", "peak kB"
    );
    for size in SIZES {
        let tree = base.join(size.to_string());
        grow(&tree, size);
        compare(&tree, size, &reference, false);
        if rustix::process::geteuid().is_root() {
            compare(&tree, size, &reference, true);
        }
        fs::remove_dir_all(&tree).expect("remove the tree");
    }
    let _ = fs::remove_dir_all(base);
}

fn grow(tree: &Path, size: usize) {
    for directory in 0..size / FILES {
        let path = tree.join(format!("a{}/b{}/d{directory}", directory / 1000, directory / 30 % 40));
        fs::create_dir_all(&path).expect("make a directory");
        for file in 0..FILES {
            fs::write(path.join(format!("file_{file}.txt")), "").expect("make a file");
        }
    }
    // What was just made would be looked at twice.
    std::thread::sleep(std::time::Duration::from_millis(50));
}

/// In a process of its own, so that the peak is its own. Prints microseconds and kilobytes.
fn alone(tree: &Path) {
    let dir = fs::File::open(tree).expect("open the tree");
    let report =
        scan(&[Root { dir: dir.as_fd(), path: tree, writable: true }], &Options::default()).expect("scan");
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    let peak: String = peak.chars().filter(char::is_ascii_digit).collect();
    println!("{} {peak}", report.elapsed.as_micros());
}

fn compare(tree: &Path, size: usize, reference: &Path, cold: bool) {
    let rounds = match (cold, size) {
        (true, 500_000) => 3,
        (true, _) => 5,
        (false, 500_000) => 7,
        (false, _) => 15,
    };
    let own = std::env::current_exe().expect("this program");
    let (mut scans, mut references, mut finds, mut peak) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        chill(cold);
        let line = output(Command::new(&own).arg("--scan").arg(tree));
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
        scans.push(numbers.next().unwrap_or(0));
        peak = peak.max(numbers.next().unwrap_or(0));
        chill(cold);
        let line = output(Command::new(reference).arg("2").arg(tree));
        references.push(line.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap_or(0));
        chill(cold);
        let began = Instant::now();
        output(Command::new("find").arg(tree).args(["!", "-type", "d", "-links", "+1"]));
        finds.push(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    let (scan, reference, find) = (median(scans), median(references), median(finds));
    let ratio = |of: u64| scan as f64 / of.max(1) as f64;
    let cache = if cold { "cold" } else { "warm" };
    println!(
        "{size:>8} {cache:>5} {scan:>12} {reference:>12} {find:>12} {:>8.2} {:>8.2} {peak:>9}",
        ratio(reference),
        ratio(find)
    );
}

fn chill(cold: bool) {
    if cold {
        rustix::fs::sync();
        fs::write("/proc/sys/vm/drop_caches", "3").expect("drop caches");
    }
}

fn output(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().expect("run a scanner");
    assert!(output.status.success(), "{command:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
