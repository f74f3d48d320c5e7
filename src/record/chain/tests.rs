use std::fs;
use std::path::PathBuf;

use super::*;

/// A file that goes with the test.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Scratch {
    fn new(name: &str, text: &[u8]) -> Scratch {
        let path = std::env::temp_dir().join(format!("confine-chain-{name}-{}", std::process::id()));
        fs::write(&path, text).unwrap();
        Scratch(path)
    }

    fn append(&self, word: &str) -> io::Result<()> {
        let file = fs::OpenOptions::new().read(true).append(true).open(&self.0).unwrap();
        append(&file, || serde_json::json!({ "event": word, "time": "now" }))
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap()
    }

    fn verify(&self) -> (Chain, Option<Broken>) {
        judge(self.text().as_bytes(), None)
    }
}

fn judge(text: &[u8], expect: Option<&str>) -> (Chain, Option<Broken>) {
    verify(text, expect).unwrap()
}

#[track_caller]
fn assert_broken(text: &str, line: u64, reason: &str) {
    let (_, broken) = judge(text.as_bytes(), None);
    let broken = broken.unwrap_or_else(|| panic!("not broken: {text}"));
    assert!(broken.line == line && broken.reason.contains(reason), "{broken:?}");
}

fn three(name: &str) -> (Scratch, Vec<String>) {
    let scratch = Scratch::new(name, b"");
    for word in ["a", "b", "c"] {
        scratch.append(word).unwrap();
    }
    let lines = scratch.text().split_inclusive('\n').map(str::to_owned).collect();
    (scratch, lines)
}

#[test]
fn each_line_has_the_hash_of_the_one_before() {
    let (scratch, lines) = three("hash");
    let (chain, broken) = scratch.verify();
    assert_eq!((chain.lines, broken), (3, None));
    assert!(lines[1].contains(&sha256(lines[0].trim_end().as_bytes())));
    assert_eq!(chain.last, Some(sha256(lines[2].trim_end().as_bytes())));
    let (empty, none) = judge(b"", None);
    assert_eq!((empty, none), (Chain::default(), None));
}

#[test]
fn whatever_is_done_to_a_line_before_the_last_is_found() {
    let (_scratch, lines) = three("tamper");
    let line = |at: usize| lines[at].as_str();
    assert_broken(&(line(0).replace("\"a\"", "\"x\"") + line(1) + line(2)), 2, "was changed");
    assert_broken(&(line(0).to_owned() + line(2)), 2, "removed");
    assert_broken(&(line(1).to_owned() + line(2)), 1, "missing");
    assert_broken(&(line(0).to_owned() + line(2) + line(1)), 2, "moved");
    assert_broken(&(line(0).to_owned() + line(0) + line(1) + line(2)), 2, "begins here");
    assert_broken(&(line(0).to_owned() + line(1) + line(1) + line(2)), 3, "put in");
    assert_broken(&(line(0).to_owned() + "\n" + line(1)), 2, "not a line");
    assert_broken(&(line(0).to_owned() + line(1).trim_end()), 2, "torn");
    assert_broken(&("x".repeat(LINE + 1) + "\n"), 1, "longer");
}

#[test]
fn an_end_that_is_gone_shows_against_a_hash_only() {
    let (scratch, lines) = three("end");
    let last = scratch.verify().0.last.unwrap();
    let cut = lines[..2].concat();
    assert_eq!(judge(cut.as_bytes(), None).1, None);
    assert_eq!(judge(cut.as_bytes(), Some(&last)).0.expected, Some(false));
    assert_eq!(judge(scratch.text().as_bytes(), Some(&last)).0.expected, Some(true));
    // It has grown since.
    scratch.append("d").unwrap();
    assert_eq!(judge(scratch.text().as_bytes(), Some(&last)).0.expected, Some(true));
}

#[test]
fn a_torn_line_is_cut_off_and_told_of() {
    let (scratch, lines) = three("torn");
    for torn in ["{\"seq", "\0\0\0", lines[1].trim_end()] {
        let before = scratch.text();
        fs::write(&scratch.0, before.clone() + torn).unwrap();
        scratch.append("after").unwrap();
        let text = scratch.text();
        let added: Vec<&str> = text.strip_prefix(&before).unwrap().lines().collect();
        assert_eq!(added.len(), 2);
        assert!(added[0].contains("\"repaired\"") && added[0].contains(&sha256(torn.as_bytes())), "{text}");
        assert!(added[0].contains(&format!("\"bytes\":{}", torn.len())));
    }
    assert_eq!((scratch.verify().0.repaired, scratch.verify().1), (3, None));
    let first = Scratch::new("first", lines[0].trim_end().as_bytes());
    first.append("after").unwrap();
    assert_eq!((first.verify().0.lines, first.verify().1), (2, None));
}

#[test]
fn what_is_no_record_is_left_as_it_is() {
    let long = "x".repeat(3 * LINE);
    for text in ["key\n", "a word", "{}\n", "\n", "[1]\n", &long, &format!("{long}\n")] {
        let scratch = Scratch::new("other", text.as_bytes());
        let error = scratch.append("a").unwrap_err();
        assert!(error.to_string().contains("not an audit record"), "{error}");
        assert_eq!(scratch.text(), text);
    }
}

#[test]
fn a_line_that_is_too_long_is_not_written() {
    let (scratch, _) = three("long");
    let before = scratch.text();
    assert!(scratch.append(&"x".repeat(LINE)).is_err());
    assert_eq!(scratch.text(), before);
}

#[test]
fn who_holds_the_lock_is_waited_for() {
    let (scratch, _) = three("lock");
    let other = File::open(&scratch.0).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| scratch.append("d"));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        flock(&other, FlockOperation::Unlock).unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(scratch.verify().0.lines, 4);
}
