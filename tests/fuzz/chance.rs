//! Decisions from bytes: a structure is read out of an input, so that whoever changes the bytes changes it.

pub struct Chance<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Chance<'a> {
    pub fn new(bytes: &'a [u8]) -> Chance<'a> {
        Chance { bytes, at: 0 }
    }

    pub fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Zero once the bytes are used up.
    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
