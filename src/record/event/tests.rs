use std::os::unix::ffi::OsStringExt;

use super::*;

#[test]
fn a_time_is_told_as_the_calendar_has_it() {
    let at = |seconds, milliseconds| {
        rfc3339(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(milliseconds))
    };
    assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
    assert_eq!(at(951_782_399, 999), "2000-02-28T23:59:59.999Z");
    assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000Z");
    assert_eq!(at(951_868_800, 0), "2000-03-01T00:00:00.000Z");
    assert_eq!(at(1_735_603_200, 0), "2024-12-31T00:00:00.000Z");
    assert_eq!(at(1_735_689_599, 7), "2024-12-31T23:59:59.007Z");
    assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    assert_eq!(at(4_107_456_000, 0), "2100-02-28T00:00:00.000Z");
}

fn words(list: &[&[u8]]) -> Vec<OsString> {
    list.iter().map(|word| OsString::from_vec(word.to_vec())).collect()
}

#[test]
fn an_argv_that_fits_is_whole_byte_for_byte() {
    let asked = Asked::new(7, &words(&[b"a\n", b"\xff\x00b".as_slice(), b""]));
    let told = serde_json::to_value(&asked).unwrap();
    assert_eq!(told, serde_json::json!({ "uid": 7, "argv": ["a\n", [255, 0, 98], ""], "argv_cut": null }));
}

#[test]
fn a_long_argv_is_cut_and_its_hash_stands_for_it() {
    let long = "ä".repeat(PART).into_bytes();
    for list in [
        words(&[b"x", &long]),
        words(&[b"x", &[b'\n'; PART]]),
        words(&[b"x", &[0xff; PART]]),
        words(&vec![b"yes".as_slice(); PART]),
    ] {
        let asked = Asked::new(0, &list);
        let cut = asked.argv_cut.as_ref().unwrap();
        assert_eq!(cut.arguments, list.len());
        let mut all = list.join(OsStr::new("\0")).into_vec();
        all.push(0);
        assert_eq!((cut.bytes, &cut.sha256), (all.len() as u64, &sha256(&all)));
        let told = serde_json::to_string(&asked.argv).unwrap();
        assert!(told.len() > PART / 8 && told.len() < PART + 16, "{}", told.len());
    }
}

#[test]
fn the_longest_line_fits_into_a_pipe() {
    let told = Told { status: 125, message: "\u{10ffff}".repeat(9000), hint: Some("\"".repeat(9000)) };
    let asked = Asked::new(0, &words(&[&[b'\x01'; PART]]));
    let refused = Event::Refused(Refused::new(told, None, &asked));
    let line = serde_json::to_string(&Line::new("0123456789abcdef", &refused)).unwrap();
    assert!(line.len() < LINE / 2, "{}", line.len());
}
