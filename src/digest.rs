//! SHA-256 in text.
#![forbid(unsafe_code)]

use std::fmt::Write;

/// In hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(64);
    for byte in hmac_sha256::Hash::hash(bytes) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Enough to tell apart the paths of one user in a name.
pub fn short(bytes: &[u8]) -> String {
    let mut digits = sha256(bytes);
    digits.truncate(16);
    digits
}
