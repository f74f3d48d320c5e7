//! The first and the last of a stream, and how much is missing in between.

use std::collections::VecDeque;

/// Passes the head on and holds the tail back.
pub struct HeadTail {
    head_left: u64,
    tail_size: usize,
    tail: VecDeque<u8>,
    /// Dropped between the two.
    missing: u64,
    /// Whoever reads is told so.
    marked: bool,
}

impl HeadTail {
    /// At most `limit` bytes, the last `tail` of which are for the end of the stream.
    pub fn new(limit: u64, tail: u64) -> HeadTail {
        HeadTail {
            head_left: limit.saturating_sub(tail),
            tail_size: usize::try_from(tail).unwrap_or(usize::MAX),
            tail: VecDeque::new(),
            missing: 0,
            marked: true,
        }
    }

    /// Nothing but what fits, when going over ends the run.
    pub fn cut(limit: u64) -> HeadTail {
        HeadTail { marked: false, ..HeadTail::new(limit, 0) }
    }

    pub fn is_head_full(&self) -> bool {
        self.head_left == 0
    }

    /// What belongs to the head.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let count = usize::try_from(self.head_left).unwrap_or(usize::MAX).min(bytes.len());
        let (head, rest) = bytes.split_at(count);
        self.head_left -= count as u64;
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_size);
        self.missing += over as u64;
        let of_tail = over.min(self.tail.len());
        self.tail.drain(..of_tail);
        self.tail.extend(rest.iter().skip(over - of_tail));
        head
    }

    /// The marker, if something is missing, and the tail.
    pub fn finish(self, to: &mut Vec<u8>) {
        if self.missing > 0 && self.marked {
            to.extend_from_slice(marker(self.missing).as_bytes());
        }
        to.extend(self.tail);
    }
}

pub fn marker(missing: u64) -> String {
    format!("\n[confine: {missing} bytes left out]\n")
}

/// The same, with the head kept too.
pub struct Kept {
    head: Vec<u8>,
    rest: HeadTail,
}

/// What is told of a stream: all of it in `head`, unless something is missing.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    pub missing: u64,
}

impl Kept {
    pub fn new(limit: u64, tail: u64) -> Kept {
        Kept { head: Vec::new(), rest: HeadTail::new(limit, tail) }
    }

    pub fn take(&mut self, bytes: &[u8]) {
        let head = self.rest.take(bytes);
        self.head.extend_from_slice(head);
    }

    pub fn parts(&self) -> Parts {
        let (mut head, mut tail): (Vec<u8>, Vec<u8>) =
            (self.head.clone(), self.rest.tail.iter().copied().collect());
        let mut missing = self.rest.missing;
        if missing == 0 {
            head.append(&mut tail);
            return Parts { head, tail, missing };
        }
        // A character that the cut went through would make the text none.
        let whole = match std::str::from_utf8(&head) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => head.len(),
        };
        missing += (head.len() - whole) as u64;
        head.truncate(whole);
        let inner = |byte: &u8| byte & 0xC0 == 0x80;
        let cut = tail.iter().take(3).take_while(|byte| inner(byte)).count();
        if std::str::from_utf8(tail.get(cut..).unwrap_or_default()).is_ok() {
            tail.drain(..cut);
            missing += cut as u64;
        }
        Parts { head, tail, missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(limit: u64, tail: u64, chunks: &[&str]) -> String {
        let mut bounded = HeadTail::new(limit, tail);
        let mut all = Vec::new();
        for chunk in chunks {
            all.extend_from_slice(bounded.take(chunk.as_bytes()));
        }
        bounded.finish(&mut all);
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn what_fits_is_whole_and_what_does_not_keeps_both_ends() {
        for chunks in [&["0123456789"][..], &["0", "12345678", "9"], &["012345", "6789"]] {
            assert_eq!(passed(10, 5, chunks), "0123456789");
            assert_eq!(passed(9, 4, chunks), "01234\n[confine: 1 bytes left out]\n6789");
            assert_eq!(passed(4, 2, chunks), "01\n[confine: 6 bytes left out]\n89");
            assert_eq!(passed(4, 0, chunks), "0123\n[confine: 6 bytes left out]\n");
            assert_eq!(passed(1, 0, chunks), "0\n[confine: 9 bytes left out]\n");
        }
        assert_eq!(passed(4, 2, &[]), "");
    }

    #[test]
    fn a_cut_character_is_left_out_as_a_whole() {
        let mut kept = Kept::new(6, 3);
        kept.take("ä€ö€ä".as_bytes());
        let parts = kept.parts();
        assert_eq!(parts, Parts { head: "ä".into(), tail: "ä".into(), missing: 8 });
        let mut bytes = Kept::new(4, 2);
        bytes.take(&[0xff, 0xfe, 1, 2, 0x80, 0xff]);
        assert_eq!(bytes.parts(), Parts { head: vec![0xff, 0xfe], tail: vec![0x80, 0xff], missing: 2 });
    }
}
