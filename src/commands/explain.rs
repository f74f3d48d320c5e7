//! `confine explain`.
