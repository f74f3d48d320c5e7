//! Sizes and durations as they are written on the command line.
