//! `confine check`.
