//! Beside somebody who changes the tree meanwhile.

use super::*;

fn busy_tree(temp: &Temp) -> PathBuf {
    for directory in 0..40 {
        for file in 0..20 {
            temp.file(&format!("ws/d{directory}/f{file}"));
        }
        temp.link(&format!("ws/d{directory}/f0"), &format!("ws/d{}/g", (directory + 1) % 40));
    }
    temp.path("ws")
}

/// What a build next door does: links, renames and removes in some directories, and pauses.
fn build(ws: &Path, turn: u64) {
    let dir = |number: u64| ws.join(format!("d{}", number % 8 * 5));
    let made = dir(turn * 7).join("made");
    fs::write(&made, "x").unwrap();
    fs::hard_link(&made, dir(turn * 11 + 1).join("linked")).unwrap();
    fs::rename(&made, dir(turn * 13 + 2).join("moved")).unwrap();
    fs::remove_file(dir(turn * 11 + 1).join("linked")).unwrap();
    fs::remove_file(dir(turn * 13 + 2).join("moved")).unwrap();
    std::thread::sleep(Duration::from_millis(15));
}

#[test]
fn a_neighbour_that_links_and_renames_inside_makes_no_false_alias() {
    let temp = Temp::new();
    let ws = busy_tree(&temp);
    let mut clean = 0;
    beside(
        |turn| build(&ws, turn),
        || {
            for _ in 0..200 {
                match try_scan(&[&ws], &Options::default()) {
                    Ok(report) => {
                        assert!(report.suspects.is_empty(), "{:?}", report.suspects);
                        clean += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().starts_with("the workspace is changing"), "{error}")
                    }
                }
            }
        },
    );
    assert!(clean >= 190, "only {clean} of 200 scans came to an end beside an ordinary build");
}

#[test]
fn an_alias_beside_a_busy_neighbour_is_never_missed() {
    let temp = Temp::new();
    let ws = busy_tree(&temp);
    temp.file("outside/secret");
    temp.link("outside/secret", "ws/d23/alias");
    beside(
        |turn| build(&ws, turn),
        || {
            for _ in 0..200 {
                match try_scan(&[&ws], &Options::default()) {
                    Ok(report) => assert_eq!(suspects(&report), ["d23/alias"]),
                    Err(error) => {
                        assert!(error.to_string().starts_with("the workspace is changing"), "{error}")
                    }
                }
            }
        },
    );
}

#[test]
fn an_alias_that_is_moved_about_without_pause_is_found_or_the_scan_refuses() {
    let temp = Temp::new();
    let ws = busy_tree(&temp);
    temp.file("outside/secret");
    temp.link("outside/secret", "ws/d0/alias");
    let (mut found, mut refused) = (0, 0);
    beside(
        |turn| {
            let dir = |number: u64| ws.join(format!("d{}", number % 40)).join("alias");
            fs::rename(dir(turn * 17), dir(turn * 17 + 17)).unwrap();
        },
        || {
            for _ in 0..60 {
                match try_scan(&[&ws], &Options::default()) {
                    Ok(report) => {
                        assert_eq!(report.suspects.len(), 1, "missed: {report:?}");
                        found += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().starts_with("the workspace is changing"), "{error}");
                        refused += 1;
                    }
                }
            }
        },
    );
    assert_eq!(found + refused, 60);
}
