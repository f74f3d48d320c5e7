//! A file that a run is told of in, and that the command would hold open as well.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use rustix::fs::{Stat, fstat};

use super::Record;
use super::audit::{Place, refuse};
use crate::enforce::descriptors::{Inherited, Kind};
use crate::error::{Error, Result};
use crate::policy::Policy;
use crate::view::caller::Caller;
use crate::view::trace::object;

impl Record {
    pub fn refuse_handed(&mut self, policy: &Policy, caller: &Caller) -> Result<()> {
        self.refuse_status(caller)?;
        match (&self.audit, &policy.audit) {
            (Some(audit), _) => refuse_audit(audit.named(), audit.stat(), caller),
            // Only asked about.
            (None, Some(file)) => {
                Place::find(file).and_then(|place| refuse_audit(place.named(), place.stat(), caller))
            }
            (None, None) => Ok(()),
        }
        .inspect_err(|_| self.audit = None)
    }

    /// A command that could write to the file of the status lines would tell whatever it likes. A pipe or a terminal
    /// that both go to is another matter: nothing said there can be taken back, and whoever joins them knows it.
    fn refuse_status(&self, caller: &Caller) -> Result<()> {
        let Some(status) = &self.status else { return Ok(()) };
        let regular = |handed: &&Inherited| handed.kind == Kind::Regular && handed.write;
        let mut files = caller.inherited().filter(regular).peekable();
        if files.peek().is_none() {
            return Ok(());
        }
        let stat =
            fstat(status).map_err(|errno| Error::step("look at the status file", io::Error::from(errno)))?;
        match files.find(|handed| handed.object() == object(&stat)) {
            Some(handed) => Err(Error::usage(format!(
                "the file of --status-fd is {} as well, so that the command could change it",
                handed.what()
            ))
            .with_hint("open another file for it: `confine --status-fd 3 … 3>status.json`")),
            None => Ok(()),
        }
    }
}

/// By a descriptor of it the command could empty it and begin the chain anew, or lock it for ever. Also where confine
/// would pass the output on: it is no place for other lines.
fn refuse_audit(named: &Path, stat: Option<Stat>, caller: &Caller) -> Result<()> {
    let is_it = |handed: &&Inherited| stat.is_some_and(|stat| object(&stat) == handed.object());
    match caller.inherited().find(is_it) {
        Some(handed) => {
            let error =
                refuse(named, &format!("is {} as well, so that the command could change it", handed.what()));
            Err(match handed.fd {
                0..=2 => error.with_hint(handed.remedy()),
                number => error.with_hint(format!("leave out `--fd {number}`, or open another file there")),
            })
        }
        None => Ok(()),
    }
}
