//! The picture of one look: two bars on top, then a row for each machine from the claim to its pods.

use super::look::{Claim, Instance, Look, Stage};
use super::paint::{Colour, bar, fit, paint};

const BAR_WIDTH: usize = 24;
/// Squares for pods on a node; more are a number.
const SQUARES_MAX: usize = 12;
/// The widest column of text; longer names are cut.
const COLUMN_MAX: usize = 24;

/// A machine: a claim, its instance, or both.
#[derive(Debug)]
struct Row {
    cells: [(String, Colour); 8],
}

const HEADINGS: [&str; 8] = [
    "NODECLAIM",
    "TYPE",
    "ZONE",
    "INSTANCE",
    "",
    "PROGRESS",
    "NODE",
    "PODS",
];

pub(super) fn render(look: &Look) -> Vec<String> {
    let mut lines = summary(look);
    lines.push(String::new());
    let rows = rows(look);
    if rows.is_empty() {
        lines.push(paint("  no machines yet", Colour::Dim));
        return lines;
    }
    let widths = widths(&rows);
    let heading = HEADINGS.map(|heading| (heading.to_owned(), Colour::Dim));
    lines.push(line(&heading, &widths));
    lines.extend(rows.iter().map(|row| line(&row.cells, &widths)));
    lines
}

fn summary(look: &Look) -> Vec<String> {
    let pods = look
        .pods
        .len()
        .max(usize::try_from(look.pods_wanted).unwrap_or(usize::MAX));
    let running = look.pods.iter().filter(|pod| pod.is_running).count();
    let (bound, ready) = (
        look.pods_bound(),
        look.nodes.iter().filter(|node| node.is_ready).count(),
    );
    let machines = look.claims.len().max(look.instances.len());
    let colour = |part, whole| {
        if part == whole && whole > 0 {
            Colour::Green
        } else {
            Colour::Yellow
        }
    };
    let pods_bar = paint(&bar(bound, pods, BAR_WIDTH), colour(bound, pods));
    let nodes_bar = paint(&bar(ready, machines, BAR_WIDTH), colour(ready, machines));
    let price = format!("{:.2} CNY per hour", look.price_per_hour());
    let mut lines = vec![
        format!("  pods   {pods_bar}  {bound} of {pods} bound, {running} running"),
        format!(
            "  nodes  {nodes_bar}  {ready} of {machines} ready, {} instances, {}",
            look.instances.len(),
            paint(&price, Colour::Bold)
        ),
    ];
    lines.extend(
        look.unready
            .iter()
            .map(|text| paint(&format!("  {text}"), Colour::Red)),
    );
    lines
}

/// Claims by name, then instances that no claim knows.
fn rows(look: &Look) -> Vec<Row> {
    let instance_of = |claim: &Claim| {
        look.instances
            .iter()
            .find(|it| Some(&it.id) == claim.instance_id.as_ref())
    };
    let mut claims: Vec<&Claim> = look.claims.iter().collect();
    claims.sort_by(|a, b| a.name.cmp(&b.name));
    let mut rows: Vec<Row> = claims
        .iter()
        .map(|claim| claim_row(look, claim, instance_of(claim)))
        .collect();
    let is_claimed = |instance: &&Instance| {
        look.claims
            .iter()
            .any(|claim| claim.instance_id.as_deref() == Some(instance.id.as_str()))
    };
    rows.extend(
        look.instances
            .iter()
            .filter(|it| !is_claimed(it))
            .map(instance_row),
    );
    rows
}

fn claim_row(look: &Look, claim: &Claim, instance: Option<&Instance>) -> Row {
    let (progress, colour) = progress(claim.stage);
    let plain = |text: &str| (text.to_owned(), Colour::Plain);
    let pods = claim.node.as_deref().map_or(0, |node| look.pods_on(node));
    Row {
        cells: [
            plain(&claim.name),
            plain(&claim.instance_type),
            plain(&claim.zone),
            plain(claim.instance_id.as_deref().unwrap_or_default()),
            (
                instance.map(|it| it.status.clone()).unwrap_or_default(),
                Colour::Dim,
            ),
            (progress.to_owned(), colour),
            plain(claim.node.as_deref().unwrap_or_default()),
            (squares(pods), Colour::Green),
        ],
    }
}

fn instance_row(instance: &Instance) -> Row {
    let plain = |text: &str| (text.to_owned(), Colour::Plain);
    Row {
        cells: [
            ("(none yet)".to_owned(), Colour::Dim),
            plain(&instance.instance_type),
            plain(&instance.zone),
            plain(&instance.id),
            (instance.status.clone(), Colour::Dim),
            plain(""),
            plain(""),
            plain(""),
        ],
    }
}

fn progress(stage: Stage) -> (&'static str, Colour) {
    match stage {
        Stage::Planned => ("●○○○ planned", Colour::Yellow),
        Stage::Launched => ("●●○○ launched", Colour::Yellow),
        Stage::Registered => ("●●●○ joined", Colour::Yellow),
        Stage::Ready => ("●●●● ready", Colour::Green),
        Stage::Deleting => ("✕    leaving", Colour::Red),
    }
}

fn squares(pods: usize) -> String {
    if pods <= SQUARES_MAX {
        "▪".repeat(pods)
    } else {
        format!("{} +{}", "▪".repeat(SQUARES_MAX), pods - SQUARES_MAX)
    }
}

fn widths(rows: &[Row]) -> [usize; 8] {
    let mut widths = HEADINGS.map(str::len);
    for row in rows {
        for (width, (text, _)) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(text.chars().count().min(COLUMN_MAX));
        }
    }
    widths
}

fn line(cells: &[(String, Colour); 8], widths: &[usize; 8]) -> String {
    let painted = cells
        .iter()
        .zip(widths)
        .map(|((text, colour), width)| paint(&fit(text, *width), *colour));
    format!("  {}", painted.collect::<Vec<_>>().join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::look::{Node, Pod};

    fn plain(lines: &[String]) -> Vec<String> {
        let strip = |line: &String| {
            let mut text = String::new();
            let mut rest = line.as_str();
            while let Some((before, after)) = rest.split_once('\u{1b}') {
                text.push_str(before);
                rest = after.split_once('m').map_or("", |(_, rest)| rest);
            }
            (text + rest).trim_end().to_owned()
        };
        lines.iter().map(strip).collect()
    }

    #[test]
    fn an_empty_cluster_says_so() {
        let lines = plain(&render(&Look {
            pods_wanted: 2,
            ..Look::default()
        }));

        assert_eq!(
            lines[0],
            "  pods   ░░░░░░░░░░░░░░░░░░░░░░░░  0 of 2 bound, 0 running"
        );
        assert_eq!(lines.last().unwrap(), "  no machines yet");
    }

    #[test]
    fn a_machine_is_one_row_from_its_claim_to_its_pods() {
        let pod = || Pod {
            name: "p".to_owned(),
            node: Some("n1".to_owned()),
            is_running: true,
        };
        let look = Look {
            pods: vec![pod(), pod()],
            pods_wanted: 2,
            claims: vec![Claim {
                name: "default-a".to_owned(),
                instance_type: "ecs.g7.large".to_owned(),
                zone: "cn-hangzhou-h".to_owned(),
                stage: Stage::Ready,
                message: String::new(),
                instance_id: Some("i-1".to_owned()),
                node: Some("n1".to_owned()),
            }],
            nodes: vec![Node {
                name: "n1".to_owned(),
                is_ready: true,
            }],
            instances: vec![Instance {
                id: "i-1".to_owned(),
                status: "Running".to_owned(),
                price_per_hour: 0.5,
                ..Instance::default()
            }],
            ..Look::default()
        };

        let lines = plain(&render(&look));

        assert_eq!(
            lines[3..],
            [
                "  NODECLAIM  TYPE          ZONE           INSTANCE           PROGRESS    NODE  PODS",
                "  default-a  ecs.g7.large  cn-hangzhou-h  i-1       Running  ●●●● ready  n1    ▪▪",
            ]
        );
    }
}
