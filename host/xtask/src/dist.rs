//! `cargo xtask dist`: everything that a release ships, in one folder, with checksums.
//!
//! The same commit gives the same bytes: the time is the commit's, archives are sorted, and the program has no path of this
//! machine in it ([`crate::image`]). What depends on the machine: the certificates of the image, which are its own, and the
//! versions of rustc, musl and gzip.

mod chart;
mod manifest;
mod sbom;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::archive::{self, Entry};
use crate::image::{self, Image};
use crate::oci::hex_digest;
use crate::source::VERSION;
use crate::{chart_e2e, plugins, process, source, workspace};

pub(crate) use sbom::licences;

const CHECKSUMS: &str = "SHA256SUMS";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Take this static program instead of building one.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Where it goes; the folder is made anew.
    #[arg(long, default_value = "target/dist")]
    output: PathBuf,
    /// Then install from it, by helm and by kubectl, and see that both controllers provision on a local control plane.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let script = workspace::root().join("tests/tools/build.sh");
    process::run(Command::new(script).arg(if args.check { "--all" } else { "helm" }))?;
    let inputs = Inputs {
        program: match &args.program {
            Some(program) => program.clone(),
            None => image::program()?,
        },
        policies: plugins::build()?,
        time: source::time()?,
    };
    let folder = workspace::root().join(&args.output);
    let sums = write(&inputs, &folder)?;
    print!("{sums}");
    println!("written to {}", folder.display());
    if args.check {
        process::build_all()?;
        chart_e2e::packaged::run(&folder)?;
        println!("dist: helm=ok kubectl=ok");
    }
    Ok(())
}

/// What is not made from text alone.
#[derive(Debug)]
struct Inputs {
    /// Static, and able to run here.
    program: PathBuf,
    /// Components.
    policies: Vec<PathBuf>,
    time: i64,
}

/// Makes the folder anew; its checksums.
fn write(inputs: &Inputs, folder: &Path) -> Result<String> {
    let files = files(inputs)?;
    if folder.exists() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut sums = String::new();
    for (name, content) in &files {
        sums += &format!("{}  {name}\n", hex_digest(content));
    }
    let all = files
        .iter()
        .map(|(name, content)| (name.as_str(), &content[..]));
    for (name, content) in all.chain([(CHECKSUMS, sums.as_bytes())]) {
        let path = folder.join(name);
        std::fs::write(&path, content)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(sums)
}

/// Names and contents, sorted.
fn files(inputs: &Inputs) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    files.push(program(inputs)?);
    let image = Image::make(&inputs.program, inputs.time)?;
    files.push((
        format!("kerf-{VERSION}-image-amd64.oci.tar"),
        image.layout.tar(inputs.time)?,
    ));
    files.extend(chart::files(inputs.time)?);
    files.push(("kerf.yaml".to_owned(), manifest::whole()?));
    files.push(("kerf-crds.yaml".to_owned(), manifest::definitions()?));
    files.push(policies(inputs)?);
    files.extend(sdks(inputs.time)?);
    files.push((format!("kerf-{VERSION}.cdx.json"), sbom::sbom(inputs.time)?));
    files.push(("THIRD-PARTY-LICENSES.txt".to_owned(), licences()?));
    files.push(("RELEASE-NOTES.md".to_owned(), notes()?));
    files.sort();
    Ok(files)
}

/// A gzipped archive below a folder of its own name.
fn packed(name: &str, entries: Vec<Entry>, time: i64) -> Result<(String, Vec<u8>)> {
    let archive = archive::gzip(&archive::tar(entries, time)?)?;
    Ok((format!("{name}.tar.gz"), archive))
}

/// The program with its licences, completions and manual pages.
fn program(inputs: &Inputs) -> Result<(String, Vec<u8>)> {
    let name = format!("kerf-{VERSION}-linux-amd64");
    let root = workspace::root();
    let mut entries = vec![
        Entry::program(&format!("{name}/kerf"), std::fs::read(&inputs.program)?),
        Entry::read(&root.join("LICENSE"), &format!("{name}/LICENSE"))?,
        Entry::read(&root.join("CHANGELOG.md"), &format!("{name}/CHANGELOG.md"))?,
        Entry::file(&format!("{name}/THIRD-PARTY-LICENSES.txt"), licences()?),
    ];
    for shell in ["bash", "zsh", "fish"] {
        let text = process::output(Command::new(&inputs.program).args(["completions", shell]))?;
        entries.push(Entry::file(
            &format!("{name}/completions/kerf.{shell}"),
            text,
        ));
    }
    let pages = tempfile::tempdir().context("cannot make a folder for manual pages")?;
    process::run(Command::new(&inputs.program).arg("man").arg(pages.path()))?;
    for (file, path) in files_in(pages.path())? {
        entries.push(Entry::read(&path, &format!("{name}/man/{file}"))?);
    }
    packed(&name, entries, inputs.time)
}

/// The examples, by language; what only tests load is not for anybody else.
fn policies(inputs: &Inputs) -> Result<(String, Vec<u8>)> {
    let name = format!("kerf-policies-{VERSION}");
    let examples = examples()?;
    let mut entries = Vec::new();
    let mut digests = String::new();
    for path in &inputs.policies {
        let language = path.parent().and_then(Path::file_name).unwrap_or_default();
        let place = Path::new(language).join(path.file_name().unwrap_or_default());
        if !examples.contains(&path.file_stem().unwrap_or_default().to_owned()) {
            continue;
        }
        let content =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let place = place.display();
        digests += &format!("sha256:{} {place}\n", hex_digest(&content));
        entries.push(Entry::file(&format!("{name}/{place}"), content));
    }
    if entries.is_empty() {
        bail!("no example policy was built");
    }
    entries.push(Entry::file(&format!("{name}/DIGESTS"), digests));
    packed(&name, entries, inputs.time)
}

/// Names of the folders in those of the languages.
fn examples() -> Result<BTreeSet<OsString>> {
    let below = Path::new("plugins/examples");
    let files = workspace::files()?;
    let names = files
        .iter()
        .filter_map(|it| it.strip_prefix(below).ok()?.iter().nth(1));
    Ok(names.map(OsString::from).collect())
}

/// One for each language, and the contract for all others.
fn sdks(time: i64) -> Result<Vec<(String, Vec<u8>)>> {
    let mut archives = vec![from_sources(
        &format!("kerf-wit-{VERSION}"),
        Path::new("wit"),
        time,
    )?];
    let sdks = Path::new("plugins/sdk");
    let mut languages: Vec<String> = Vec::new();
    for path in workspace::files()? {
        let below = path.strip_prefix(sdks).ok();
        let language = below.and_then(|it| it.components().next());
        let language = language.map(|it| it.as_os_str().to_string_lossy().into_owned());
        // A file beside the folders of the languages is for us.
        languages.extend(language.filter(|it| workspace::root().join(sdks).join(it).is_dir()));
    }
    languages.dedup();
    for language in languages {
        let name = format!("kerf-sdk-{language}-{VERSION}");
        archives.push(from_sources(&name, &sdks.join(&language), time)?);
    }
    Ok(archives)
}

/// What is committed below a folder.
fn from_sources(name: &str, folder: &Path, time: i64) -> Result<(String, Vec<u8>)> {
    packed(name, sources(name, folder)?, time)
}

fn sources(name: &str, folder: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for path in workspace::files()? {
        if let Ok(below) = path.strip_prefix(folder) {
            let place = format!("{name}/{}", below.display());
            entries.push(Entry::read(&workspace::root().join(&path), &place)?);
        }
    }
    if entries.is_empty() {
        bail!("nothing is committed below {}", folder.display());
    }
    Ok(entries)
}

/// Files of a folder with their names, sorted.
fn files_in(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let entry = entry?;
        files.push((
            entry.file_name().to_string_lossy().into_owned(),
            entry.path(),
        ));
    }
    files.sort();
    Ok(files)
}

/// The changelog's part about this version, or what is unreleased where it has not been cut yet.
fn notes() -> Result<Vec<u8>> {
    let path = workspace::root().join("CHANGELOG.md");
    let text = std::fs::read_to_string(&path).context("cannot read the changelog")?;
    let part = |name: &str| {
        let start = text.find(&format!("\n## [{name}]"))?;
        let rest = &text[start + 1..];
        Some(rest.find("\n## [").map_or(rest, |end| &rest[..end + 1]))
    };
    let part = part(VERSION).or_else(|| part("Unreleased"));
    Ok(part
        .context("the changelog has neither this version nor an Unreleased part")?
        .into())
}
