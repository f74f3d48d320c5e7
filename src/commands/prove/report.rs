//! What was found, as a table and as an object, from the same rows.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::session::Ending;
use super::{Finding, Outcome, Promises};
use crate::error::{Error, Result};
use crate::plan::JSON_VERSION;
use crate::policy::Promise;

#[derive(Serialize)]
pub struct Report {
    version: u32,
    pub holds: bool,
    /// Why the run did not start.
    refused: Option<Refused>,
    promises: BTreeMap<Promise, Vec<String>>,
    waived: BTreeMap<Promise, String>,
    pub attempts: Vec<Finding>,
}

#[derive(Serialize)]
struct Refused {
    message: String,
    hint: Option<String>,
}

impl Report {
    pub fn of(attempts: Vec<Finding>, promises: Promises, ending: Option<Ending>) -> Report {
        let bad = |finding: &Finding| matches!(finding.outcome, Outcome::Escaped | Outcome::Fails);
        Report {
            version: JSON_VERSION,
            holds: ending.is_none() && !attempts.iter().any(bad),
            refused: ending.map(|Ending { message, hint }| Refused { message, hint }),
            promises: promises.kept,
            waived: promises.waived,
            attempts,
        }
    }

    pub fn text(&self, json: bool) -> Result<String> {
        if !json {
            return Ok(self.prose());
        }
        let text = serde_json::to_string(self)
            .map_err(|error| Error::step("write JSON", std::io::Error::other(error)))?;
        Ok(text + "\n")
    }

    fn prose(&self) -> String {
        let mut text = String::new();
        if let Some(Refused { message, hint }) = &self.refused {
            let _ = writeln!(text, "not started: {message}");
            if let Some(hint) = hint {
                let _ = writeln!(text, "hint: {hint}");
            }
            return text;
        }
        let mut last = None;
        for finding in &self.attempts {
            let promise = finding.promise.name();
            let heading = if last == Some(promise) { "" } else { promise };
            last = Some(promise);
            let outcome = match finding.outcome {
                Outcome::Denied => "denied",
                Outcome::Granted => "granted",
                Outcome::Waived => "waived",
                Outcome::Open => "open",
                Outcome::Escaped => "ESCAPED",
                Outcome::Works => "works",
                Outcome::Fails => "FAILS",
                Outcome::Untried => "untried",
            };
            let mut detail = finding.errno.clone().unwrap_or_default();
            match finding.outcome {
                // It was let through and reached nobody.
                Outcome::Denied if detail.is_empty() => detail.push_str("no effect"),
                Outcome::Granted | Outcome::Waived | Outcome::Open | Outcome::Escaped => {
                    detail = finding.changed.join(", ");
                }
                _ => {}
            }
            detail.push_str(finding.why.as_deref().unwrap_or_default());
            let line = format!("{heading:<15} {:<36} {outcome:<8} {detail}", finding.attempt);
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let count = |wanted: &[Outcome]| {
            self.attempts.iter().filter(|finding| wanted.contains(&finding.outcome)).count()
        };
        let _ = writeln!(text);
        for (outcome, meaning) in [
            (Outcome::Granted, "granted: the options allow it"),
            (Outcome::Waived, "waived: the promise was given up"),
            (Outcome::Open, "open: no promise of this run is about it (see --require)"),
            (Outcome::Untried, "untried: there is nothing of the kind here to be aimed at"),
        ] {
            if count(&[outcome]) > 0 {
                let _ = writeln!(text, "{meaning}");
            }
        }
        let tried = self.attempts.len() - count(&[Outcome::Works, Outcome::Fails, Outcome::Untried]);
        let (escaped, failed) = (count(&[Outcome::Escaped]), count(&[Outcome::Fails]));
        let _ = match (escaped, failed) {
            (0, 0) => writeln!(
                text,
                "The boundary held: of {tried} attempts none had an effect that the options do not allow."
            ),
            (0, _) => writeln!(text, "What should work inside does not ({failed}): this proves nothing."),
            _ => writeln!(text, "The boundary did NOT hold: {escaped} of {tried} attempts had an effect."),
        };
        text
    }
}
