//! The forms of a report.

use clap::ValueEnum;
use interlock_core::api::docs::DocsUrl;

use super::decision::Report;

mod json;
mod junit;
mod sarif;
mod text;

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// JUnit XML: a test case for each object.
    Junit,
    /// SARIF 2.1.0: a result for each violation.
    Sarif,
}

impl ReportFormat {
    /// The report in this form.
    pub(super) fn of(self, report: &Report, docs: Option<&DocsUrl>) -> String {
        match self {
            Self::Text => text::of(report),
            Self::Json => format!("{:#}\n", json::of(report)),
            Self::Junit => junit::of(report),
            Self::Sarif => format!("{:#}\n", sarif::of(report, docs)),
        }
    }
}
