//! The contract, wit/, as this program was built with it.

use std::path::Path;

use crate::error::BuildError;

/// The files of wit/; all of one package.
const FILES: [(&str, &str); 4] = [
    ("types.wit", include_str!("../../../wit/types.wit")),
    ("host.wit", include_str!("../../../wit/host.wit")),
    ("plugin.wit", include_str!("../../../wit/plugin.wit")),
    ("worlds.wit", include_str!("../../../wit/worlds.wit")),
];

/// The whole package as one text.
pub(crate) fn text() -> String {
    let mut text = String::new();
    for (_, file) in FILES {
        let is_repeated = |line: &&str| text.is_empty() || !line.starts_with("package ");
        let lines: Vec<&str> = file.lines().filter(is_repeated).collect();
        text.push_str(&lines.join("\n"));
        text.push('\n');
    }
    text
}

/// Writes the files into a folder, for tools that read one.
///
/// # Errors
/// When the folder cannot be written.
pub fn write(folder: &Path) -> Result<(), BuildError> {
    let failed = |source| BuildError::File {
        doing: "write",
        path: folder.to_owned(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    FILES
        .iter()
        .try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_is_the_released_version_until_its_number_changes() {
        let released = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/released/0.1.0");
        assert!(text().starts_with("package kerf:policy@0.1.0;"));
        for (name, text) in FILES {
            let frozen = std::fs::read_to_string(Path::new(released).join(name)).unwrap();
            assert_eq!(
                text, frozen,
                "{name}: a change needs a new version of the package"
            );
        }
    }
}
