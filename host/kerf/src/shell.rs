//! `kerf completions` and `kerf man`: what shells and `man` know of the arguments, made from the arguments themselves.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;

use crate::args::{Args, Completions, Man};

/// Prints the completions for one shell.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn completions(args: &Completions) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "kerf", &mut text);
    std::io::stdout()
        .write_all(&text)
        .context("cannot print the completions")
}

/// Writes a page for kerf and one for each subcommand.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn man(args: &Man) -> Result<()> {
    let mut root = Args::command();
    root.build();
    let subcommands = root.get_subcommands().filter(|it| !it.is_hide_set());
    for command in subcommands.filter(|it| it.get_name() != "help") {
        write_page(
            &args.folder,
            &format!("kerf-{}", command.get_name()),
            command,
        )?;
    }
    write_page(&args.folder, "kerf", &root)
}

fn write_page(folder: &Path, name: &str, command: &clap::Command) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(name, command))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// A page in the macros of man(7). Pure.
fn page(name: &str, command: &clap::Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let first = about.split(". ").next().unwrap_or_default();
    let version = command.get_version().unwrap_or(env!("CARGO_PKG_VERSION"));
    let mut page = format!(
        ".TH {} 1 \"\" \"kerf {version}\"\n",
        escape(&name.to_uppercase())
    );
    page += &format!(
        ".SH NAME\n{} \\- {}\n",
        escape(name),
        escape(first.trim_end_matches('.'))
    );
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    page += &format!(".SH SYNOPSIS\n.nf\n{}\n.fi\n", lines(usage));
    page += &format!(".SH DESCRIPTION\n{}\n", lines(&about));
    let mut arguments = command
        .get_arguments()
        .filter(|it| !it.is_hide_set())
        .peekable();
    if arguments.peek().is_some() {
        page += ".SH OPTIONS\n";
    }
    page.extend(arguments.map(option));
    let subcommands = command.get_subcommands().filter(|it| !it.is_hide_set());
    let mut subcommands = subcommands.peekable();
    if subcommands.peek().is_some() {
        page += ".SH COMMANDS\n";
    }
    page.extend(subcommands.map(|it| {
        let about = it.get_about().map(ToString::to_string).unwrap_or_default();
        format!(
            ".TP\n\\fB{}\\fR\n{}\n",
            escape(it.get_name()),
            lines(&about)
        )
    }));
    page
}

fn option(argument: &clap::Arg) -> String {
    let short = argument.get_short().map(|it| format!("\\fB\\-{it}\\fR"));
    let long = argument
        .get_long()
        .map(|it| format!("\\fB\\-\\-{}\\fR", escape(it)));
    let mut head: Vec<String> = short.into_iter().chain(long).collect();
    let takes_value = argument.get_action().takes_values();
    if let Some(names) = argument.get_value_names().filter(|_| takes_value) {
        let names = names.iter().map(|it| format!("\\fI{}\\fR", escape(it)));
        head.push(names.collect::<Vec<_>>().join(" "));
    }
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    if let Some(variable) = argument.get_env() {
        text += &format!(" [env: {}]", variable.display());
    }
    let defaults = argument
        .get_default_values()
        .iter()
        .filter(|it| !it.is_empty());
    let defaults: Vec<_> = defaults.map(|it| it.to_string_lossy()).collect();
    if takes_value && !defaults.is_empty() {
        text += &format!(" [default: {}]", defaults.join(" "));
    }
    format!(".TP\n{}\n{}\n", head.join(", "), lines(&text))
}

/// Escapes each line; one that begins with a dot would be a macro.
fn lines(text: &str) -> String {
    let escaped = text.lines().map(|line| {
        let line = escape(line.trim());
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}")
        } else {
            line
        }
    });
    escaped.collect::<Vec<_>>().join("\n")
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_every_flag_with_its_variable_and_default_and_no_stray_macro() {
        let mut root = Args::command();
        root.build();
        let controller = root.find_subcommand("controller").unwrap();

        let page = page("kerf-controller", controller);

        assert!(page.starts_with(".TH KERF\\-CONTROLLER 1"), "{page}");
        let wanted = "\\fB\\-\\-cluster\\-id\\fR, \\fICLUSTER_ID\\fR\nACK cluster id";
        assert!(page.contains(wanted), "{page}");
        assert!(
            page.contains("[env: LAUNCH_TIMEOUT] [default: 5m]"),
            "{page}"
        );
        let macros = [".TH ", ".SH ", ".TP", ".nf", ".fi"];
        let stray = page
            .lines()
            .find(|it| it.starts_with('.') && !macros.iter().any(|known| it.starts_with(known)));
        assert_eq!(stray, None);
        // A hidden flag is for test builds only.
        assert!(!page.contains("failpoint"));
    }

    #[test]
    fn a_line_that_begins_with_a_dot_is_text() {
        assert_eq!(lines(".x\n--y"), "\\&.x\n\\-\\-y");
    }
}
