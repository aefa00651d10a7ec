//! The pages of the program itself and of its libraries, most of which only its start needs.
//!
//! The kernel maps sixteen pages where one is touched and keeps them as long as it has room, so that a controller which has
//! been idle for days still holds the code of everything that it ever did. It is here because this is the crate that may say
//! `unsafe`.

use nix::sys::mman::{MmapAdvise, madvise};
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// A part of this process's memory, as /proc/self/smaps lists it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mapping {
    start: usize,
    end: usize,
    /// Nobody writes to it, not even the loader: what can be executed, and what lies at the beginning of the file, which is
    /// constants and the tables of the loader and of unwinding. Data that the loader relocates lies further behind, is written
    /// once, and what of it was swapped out later is counted nowhere here.
    is_constant: bool,
    is_code: bool,
    path: PathBuf,
    /// Pages that are no longer the file's, here and swapped out.
    anonymous_kib: Option<u64>,
    swap_kib: Option<u64>,
}

/// What the kernel maps around a page that is touched lies within one mapping. Code that is used lies all over the program: of
/// sixteen pages, five are touched. Two are four thousand mappings, of the 65,530 that a process may have. Where pages are larger, it is one.
const WINDOW_BYTES: usize = 8 * 1024;

/// The code and constants of this program, and of the libraries that were loaded with it, that are as they are in their files.
#[derive(Debug)]
pub struct CodePages(Vec<Range<usize>>);

impl CodePages {
    /// Finds them, and makes the kernel map less of them at a time from now on.
    ///
    /// # Errors
    /// When the kernel does not tell what there is, or does not take it.
    pub fn find() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let smaps = std::fs::read_to_string("/proc/self/smaps")?;
        let mappings = mappings(&smaps).into_iter();
        let clean = mappings.filter(|it| it.is_clean_part_of(&program) || it.is_clean_library());
        let ranges: Vec<Range<usize>> = clean.map(|it| it.start..it.end).collect();
        let window_bytes = WINDOW_BYTES.max(page_bytes(&smaps));
        for range in &ranges {
            for window in windows(range, window_bytes).step_by(2) {
                // Neighbours of different advice are mappings of their own; what it says about reading ahead does not matter
                // for a file that the kernel has in its cache.
                advise(&window, MmapAdvise::MADV_RANDOM)?;
            }
        }
        Ok(Self(ranges))
    }

    /// Gives the pages back; what is used again comes from the file, or rather from the kernel's cache of it.
    ///
    /// # Errors
    /// When the kernel does not take them.
    pub fn give_back(&self) -> io::Result<()> {
        for range in &self.0 {
            advise(range, MmapAdvise::MADV_DONTNEED)?;
        }
        Ok(())
    }
}

/// The range in whole windows and what is left at both ends.
fn windows(range: &Range<usize>, bytes: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let (start, end) = (range.start, range.end);
    let first = start / bytes;
    (first..end.div_ceil(bytes)).map(move |idx| {
        let window = idx * bytes..(idx + 1) * bytes;
        window.start.max(start)..window.end.min(end)
    })
}

impl Mapping {
    fn is_clean_part_of(&self, program: &Path) -> bool {
        self.path == program && self.is_clean()
    }

    /// Of the C library alone a megabyte is mapped where a fifth of it is used. Machine code of policies, which comes and goes,
    /// is in files of other names; and whoever only reads a library, to name what is in a backtrace, maps nothing executable.
    fn is_clean_library(&self) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str());
        let is_library = name.is_some_and(|name| name.ends_with(".so") || name.contains(".so."));
        is_library && self.is_code && self.is_clean()
    }

    fn is_clean(&self) -> bool {
        self.is_constant && (self.anonymous_kib, self.swap_kib) == (Some(0), Some(0))
    }
}

#[expect(
    unsafe_code,
    reason = "the pages are the program's own and as they are in their file"
)]
fn advise(range: &Range<usize>, advice: MmapAdvise) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(range.start);
    let Some(start) = NonNull::new(start) else {
        return Ok(());
    };
    // SAFETY: the range is code or constants of the running program's file, or code of a library that was loaded with it; both stay
    // mapped for the life of the process, because nothing here loads or unloads libraries. Nobody but a debugger or a probe writes to
    // it, whose breakpoints are lost, and none of its pages was changed when it was found (Anonymous and Swap were 0): after
    // MADV_DONTNEED the next access reads the same bytes again, and MADV_RANDOM changes no byte.
    unsafe { madvise(start, range.len(), advice) }.map_err(io::Error::from)
}

/// The size of a page, which is the first that the kernel tells; zero where it tells none.
fn page_bytes(smaps: &str) -> usize {
    let mut sizes = smaps
        .lines()
        .filter_map(|line| line.split_once("PageSize:"));
    let kib = sizes.find_map(|(_, size)| size.trim().trim_end_matches("kB").trim().parse().ok());
    kib.map_or(0, |kib: usize| kib * 1024)
}

/// What the kernel lists; a line that cannot be read belongs to nothing that is of interest here.
fn mappings(smaps: &str) -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        if let Some(mapping) = header(line) {
            all.push(mapping);
        } else if let (Some(last), Some((key, value))) = (all.last_mut(), line.split_once(':')) {
            let kib = value.trim().trim_end_matches("kB").trim().parse();
            match (key, kib) {
                ("Anonymous", Ok(kib)) => last.anonymous_kib = Some(kib),
                ("Swap", Ok(kib)) => last.swap_kib = Some(kib),
                _ => {}
            }
        }
    }
    all
}

/// `start-end permissions offset device inode path`
fn header(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let offset = usize::from_str_radix(words.next()?, 16).ok()?;
    let is_code = permissions.starts_with("r-x");
    Some(Mapping {
        start: usize::from_str_radix(start, 16).ok()?,
        end: usize::from_str_radix(end, 16).ok()?,
        is_code,
        is_constant: is_code || (permissions.starts_with("r--") && offset == 0),
        path: words.nth(2).unwrap_or_default().into(),
        ..Mapping::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
00200000-00400000 r--p 00000000 fe:00 17 /bin/kerf
KernelPageSize:        4 kB
Rss:                6300 kB
Anonymous:             0 kB
Swap:                  0 kB
00400000-00c00000 r-xp 00200000 fe:00 17 /bin/kerf
Rss:               20296 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00c00000-00d00000 r--p 00a00000 fe:00 17 /bin/kerf
Rss:                1504 kB
Anonymous:             0 kB
Swap:               1500 kB
00d00000-00e00000 rw-p 00b00000 fe:00 17 /bin/kerf
Rss:                  12 kB
Anonymous:             0 kB
Swap:                  0 kB
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
Rss:                 512 kB
7f0000200000-7f0000300000 r-xp 00028000 fe:00 17 /usr/lib/libc.so.6
Rss:                1072 kB
Anonymous:             0 kB
Swap:                  0 kB
7f0000300000-7f0000400000 r--p 00000000 fe:00 17 /usr/lib/libc.so.6
Rss:                 152 kB
Anonymous:             0 kB
Swap:                  0 kB
7f0000400000-7f0000500000 r-xp 00001000 fe:00 17 /tmp/kerf-policies/0cf1.cwasm
Rss:                 212 kB
Anonymous:             0 kB
Swap:                  0 kB
";

    #[test]
    fn only_what_is_the_programs_and_was_never_written_goes() {
        let all = mappings(SMAPS);
        let clean: Vec<bool> = all
            .iter()
            .map(|it| it.is_clean_part_of(Path::new("/bin/kerf")))
            .collect();

        assert_eq!(
            clean,
            [true, true, false, false, false, false, false, false]
        );
        let libraries: Vec<usize> = (0..all.len())
            .filter(|idx| all[*idx].is_clean_library())
            .collect();
        assert_eq!(
            libraries,
            [5],
            "and no policy, and nobody who only reads one"
        );
        assert_eq!((all[1].start, all[1].end), (0x40_0000, 0xc0_0000));
        let unread = Mapping {
            swap_kib: None,
            ..mappings(SMAPS).remove(0)
        };
        assert!(!unread.is_clean_part_of(Path::new("/bin/kerf")));
        assert!(!all[0].is_clean_part_of(Path::new("/bin/other")));
    }

    #[test]
    fn a_range_is_cut_at_whole_windows() {
        let cut: Vec<Range<usize>> = windows(&(0x3000..0xa000), 0x2000).collect();

        assert_eq!(
            cut,
            [
                0x3000..0x4000,
                0x4000..0x6000,
                0x6000..0x8000,
                0x8000..0xa000
            ]
        );
    }

    #[test]
    fn a_process_goes_on_after_its_code_went() {
        let count = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().count()
        };
        let before = count();

        let pages = CodePages::find().unwrap();

        let windows: usize = pages
            .0
            .iter()
            .map(|it| windows(it, WINDOW_BYTES).count())
            .sum();
        assert!(windows > 50, "{windows}");
        assert!(count() >= before + windows / 2, "{before} {}", count());
        pages.give_back().unwrap();
        pages.give_back().unwrap();
        assert_eq!(mappings(SMAPS).len(), 8);
        assert_eq!((page_bytes(SMAPS), page_bytes("")), (4096, 0));
    }
}
