//! The answer as one page that needs nothing else: no network, no script but its own.

use crate::simulate::report::Report;

const PAGE: &str = include_str!("page.html");

/// The page with the answer in it. `json` is the report as `-o json` prints it.
pub(crate) fn page(report: &Report, json: &str) -> String {
    let summary = &report.summary;
    let interrupted = report.interrupted.as_ref();
    let partial = interrupted.map(|it| format!("PARTIAL, interrupted {it}: "));
    let headline = format!(
        "{}{} pods, {} new nodes, {} {:.2} per hour, {} without a place",
        partial.unwrap_or_default(),
        summary.pods,
        summary.new_nodes,
        report.currency,
        summary.price_per_hour,
        summary.unschedulable
    );
    // Inside a script element only `</` could end it.
    PAGE.replace("{{headline}}", &headline)
        .replace("{{report}}", &json.replace("</", "<\\/"))
}
