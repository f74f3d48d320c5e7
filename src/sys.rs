//! The only room with `unsafe`: calls that nix, rustix, landlock and caps do not have. Each wrapper is a few
//! lines, holds no policy, returns `io::Result` and owns the descriptors it makes.
#![allow(unsafe_code)]
