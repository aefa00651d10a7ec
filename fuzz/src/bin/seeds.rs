//! Writes the good inputs of each target into a folder of its name.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use kerf_tests::fuzz::TARGETS;
// What libFuzzer's flags put into the code calls it.
use libfuzzer_sys as _;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).ok_or("name the folder")?;
    for target in TARGETS {
        let corpus = PathBuf::from(&folder).join(target.name);
        fs::create_dir_all(&corpus)?;
        for (i, input) in (target.seeds)().iter().enumerate() {
            fs::write(corpus.join(format!("seed-{i}")), input)?;
        }
    }
    Ok(())
}
