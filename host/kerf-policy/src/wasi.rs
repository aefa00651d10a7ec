//! `wasi: Inert`: what language runtimes look for when they start, without anything behind it.
//!
//! The clock stands at the time of the question and moves only by what is waited for. Random numbers come from a seed, so
//! that equal questions have equal answers. There are no arguments, environment, files or network; what is written to
//! standard output and error becomes lines of the log. Functions that would need more exist, and end the call.

use crate::bindings::selection::kerf::policy::log::{self, Host as _};
use crate::call::HostState;
use crate::limits::{HANDLES_MAX, RANDOM_BYTES_MAX};
use wasmtime::component::{
    Component, ComponentNamedList, ComponentType, Linker, LinkerInstance, Lower, Resource,
    ResourceType,
};
use wasmtime::{Result, StoreContextMut, Trap, bail};

/// What a policy's language runtime finds of WASI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Wasi {
    /// Nothing: a component that imports any of it is refused.
    #[default]
    None,
    /// A fixed clock and a seeded random source; no files, network or environment.
    Inert,
}

/// The packages of which a component may import interfaces when its policy says `wasi: Inert`.
const PACKAGES: [&str; 6] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];
/// The line that a program writes before it gives up is longer than this only by accident.
const WRITE_BYTES_MAX: u64 = 4096;
const NANOS_PER_SEC: u64 = 1_000_000_000;
/// What every clock says of its precision: a millisecond.
const RESOLUTION_NANOS: u64 = 1_000_000;

/// Whether an import is served in this mode.
pub(crate) fn grants(wasi: Wasi, import: &str) -> bool {
    let is_ours = PACKAGES.iter().any(|package| import.starts_with(package));
    let is_preview_2 = import
        .split_once('@')
        .is_some_and(|(_, version)| version.starts_with("0.2."));
    wasi == Wasi::Inert && is_ours && is_preview_2
}

/// The clock and the random source of one call.
#[derive(Debug)]
pub(crate) struct Inert {
    random: u64,
    unix_secs: u64,
    /// Since the start of the call; runtimes take 0 for a broken clock.
    nanos: u64,
    /// When what is waited for is there, by number of the pollable.
    deadlines: Vec<u64>,
}

impl Inert {
    pub(crate) fn new(seed: u64, unix_secs: u32) -> Self {
        Self {
            // The generator stays at 0 if it starts there.
            random: seed.max(1),
            unix_secs: u64::from(unix_secs),
            nanos: 1,
            deadlines: Vec::new(),
        }
    }

    /// splitmix64: every seed gives a full period.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.random;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        if len > RANDOM_BYTES_MAX {
            bail!("it asked for {len} random bytes, and the most is {RANDOM_BYTES_MAX}");
        }
        let words = std::iter::repeat_with(|| self.next().to_le_bytes());
        let len = usize::try_from(len)?;
        Ok(words.take(len.div_ceil(8)).flatten().take(len).collect())
    }

    fn wait_until(&mut self, nanos: u64) -> Result<Resource<Pollable>> {
        if self.deadlines.len() >= HANDLES_MAX {
            bail!("it waits for more than {HANDLES_MAX} things");
        }
        self.deadlines.push(nanos);
        Ok(Resource::new_own(u32::try_from(self.deadlines.len() - 1)?))
    }

    fn deadline(&self, it: &Resource<Pollable>) -> u64 {
        let place = usize::try_from(it.rep()).unwrap_or(usize::MAX);
        self.deadlines.get(place).copied().unwrap_or_default()
    }

    fn datetime(&self) -> Datetime {
        Datetime {
            seconds: self.unix_secs + self.nanos / NANOS_PER_SEC,
            nanoseconds: u32::try_from(self.nanos % NANOS_PER_SEC).unwrap_or_default(),
        }
    }
}

/// Offers `component` what it imports of WASI. `imports` are the full names of all that it imports.
pub(crate) fn add_to_linker(
    linker: &mut Linker<HostState>,
    component: &Component,
    imports: &[String],
) -> Result<()> {
    for import in imports.iter().filter(|it| grants(Wasi::Inert, it)) {
        let interface = import.split_once('@').map_or(&**import, |(name, _)| name);
        let mut instance = linker.instance(import)?;
        for name in resources_of(interface) {
            instance.resource(name, resource_type(name), |_, _| Ok(()))?;
        }
        define(&mut instance, interface)?;
    }
    // Nobody has a file or a socket, so the rest can only be called in vain.
    linker.define_unknown_imports_as_traps(component)
}

enum IoError {}
enum Pollable {}
enum InputStream {}
enum OutputStream {}
enum Descriptor {}
enum TerminalInput {}
enum TerminalOutput {}
enum Network {}
enum TcpSocket {}
enum UdpSocket {}
/// Those that only one interface knows.
enum Other {}

fn resource_type(name: &str) -> ResourceType {
    match name {
        "error" => ResourceType::host::<IoError>(),
        "pollable" => ResourceType::host::<Pollable>(),
        "input-stream" => ResourceType::host::<InputStream>(),
        "output-stream" => ResourceType::host::<OutputStream>(),
        "descriptor" => ResourceType::host::<Descriptor>(),
        "terminal-input" => ResourceType::host::<TerminalInput>(),
        "terminal-output" => ResourceType::host::<TerminalOutput>(),
        "network" => ResourceType::host::<Network>(),
        "tcp-socket" => ResourceType::host::<TcpSocket>(),
        "udp-socket" => ResourceType::host::<UdpSocket>(),
        _ => ResourceType::host::<Other>(),
    }
}

/// The resources that an interface defines or uses: each has to be the same everywhere.
fn resources_of(interface: &str) -> &'static [&'static str] {
    match interface {
        "wasi:io/error" => &["error"],
        "wasi:io/poll" | "wasi:clocks/monotonic-clock" => &["pollable"],
        "wasi:io/streams" => &["error", "pollable", "input-stream", "output-stream"],
        "wasi:cli/stdin" => &["input-stream"],
        "wasi:cli/stdout" | "wasi:cli/stderr" => &["output-stream"],
        "wasi:cli/terminal-input" | "wasi:cli/terminal-stdin" => &["terminal-input"],
        "wasi:cli/terminal-output" | "wasi:cli/terminal-stdout" | "wasi:cli/terminal-stderr" => {
            &["terminal-output"]
        }
        "wasi:filesystem/types" => &["descriptor", "input-stream", "output-stream", "error"],
        "wasi:filesystem/preopens" => &["descriptor"],
        "wasi:sockets/network" | "wasi:sockets/instance-network" => &["network"],
        "wasi:sockets/tcp" => &[
            "tcp-socket",
            "network",
            "pollable",
            "input-stream",
            "output-stream",
        ],
        "wasi:sockets/tcp-create-socket" => &["tcp-socket", "network"],
        "wasi:sockets/udp" => &["udp-socket", "network", "pollable"],
        "wasi:sockets/udp-create-socket" => &["udp-socket", "network"],
        "wasi:sockets/ip-name-lookup" => &["network", "pollable"],
        _ => &[],
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

#[derive(ComponentType, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[allow(dead_code, reason = "a case of the contract; nothing here fails")]
    LastOperationFailed(Resource<IoError>),
    #[component(name = "closed")]
    Closed,
}

type Linking<'a> = LinkerInstance<'a, HostState>;
type Store<'a> = StoreContextMut<'a, HostState>;

fn define(instance: &mut Linking<'_>, interface: &str) -> Result<()> {
    match interface {
        "wasi:cli/environment" => environment(instance),
        "wasi:cli/exit" => exit(instance),
        "wasi:cli/stdin" => gives(instance, "get-stdin", || {
            Resource::<InputStream>::new_own(0)
        }),
        "wasi:cli/stdout" => gives(instance, "get-stdout", || {
            Resource::<OutputStream>::new_own(STDOUT)
        }),
        "wasi:cli/stderr" => gives(instance, "get-stderr", || {
            Resource::<OutputStream>::new_own(STDERR)
        }),
        "wasi:cli/terminal-stdin" => gives(instance, "get-terminal-stdin", || {
            None::<Resource<TerminalInput>>
        }),
        "wasi:cli/terminal-stdout" => gives(instance, "get-terminal-stdout", || {
            None::<Resource<TerminalOutput>>
        }),
        "wasi:cli/terminal-stderr" => gives(instance, "get-terminal-stderr", || {
            None::<Resource<TerminalOutput>>
        }),
        "wasi:filesystem/preopens" => gives(instance, "get-directories", || {
            Vec::<(Resource<Descriptor>, String)>::new()
        }),
        "wasi:clocks/wall-clock" => wall_clock(instance),
        "wasi:clocks/monotonic-clock" => monotonic_clock(instance),
        "wasi:random/random" => random(instance, "get-random-bytes", "get-random-u64"),
        "wasi:random/insecure" => random(
            instance,
            "get-insecure-random-bytes",
            "get-insecure-random-u64",
        ),
        "wasi:random/insecure-seed" => {
            instance.func_wrap("insecure-seed", |mut store: Store<'_>, (): ()| {
                let inert = store.data_mut().inert()?;
                Ok(((inert.next(), inert.next()),))
            })
        }
        "wasi:io/poll" => poll(instance),
        "wasi:io/streams" => {
            input(instance)?;
            output(instance)
        }
        _ => Ok(()),
    }
}

const STDOUT: u32 = 1;
const STDERR: u32 = 2;

/// A function that always gives the same.
fn gives<T>(
    instance: &mut Linking<'_>,
    name: &str,
    make: impl Fn() -> T + Send + Sync + 'static,
) -> Result<()>
where
    (T,): ComponentNamedList + Lower + 'static,
{
    instance.func_wrap(name, move |_: Store<'_>, (): ()| Ok((make(),)))
}

fn environment(instance: &mut Linking<'_>) -> Result<()> {
    gives(instance, "get-environment", Vec::<(String, String)>::new)?;
    gives(instance, "get-arguments", Vec::<String>::new)?;
    gives(instance, "initial-cwd", || None::<String>)
}

fn exit(instance: &mut Linking<'_>) -> Result<()> {
    instance.func_wrap(
        "exit",
        |_: Store<'_>, (_,): (Result<(), ()>,)| -> Result<()> {
            // As a crash: a policy has no reason to end before it has answered.
            Err(Trap::UnreachableCodeReached.into())
        },
    )
}

fn wall_clock(instance: &mut Linking<'_>) -> Result<()> {
    instance.func_wrap("now", |mut store: Store<'_>, (): ()| {
        Ok((store.data_mut().inert()?.datetime(),))
    })?;
    gives(instance, "resolution", || Datetime {
        seconds: 0,
        nanoseconds: 1_000_000,
    })
}

fn monotonic_clock(instance: &mut Linking<'_>) -> Result<()> {
    instance.func_wrap("now", |mut store: Store<'_>, (): ()| {
        Ok((store.data_mut().inert()?.nanos,))
    })?;
    gives(instance, "resolution", || RESOLUTION_NANOS)?;
    instance.func_wrap(
        "subscribe-instant",
        |mut store: Store<'_>, (at,): (u64,)| Ok((store.data_mut().inert()?.wait_until(at)?,)),
    )?;
    instance.func_wrap(
        "subscribe-duration",
        |mut store: Store<'_>, (nanos,): (u64,)| {
            let inert = store.data_mut().inert()?;
            let at = inert.nanos.saturating_add(nanos);
            Ok((inert.wait_until(at)?,))
        },
    )
}

fn random(instance: &mut Linking<'_>, bytes: &str, number: &str) -> Result<()> {
    instance.func_wrap(bytes, |mut store: Store<'_>, (len,): (u64,)| {
        Ok((store.data_mut().inert()?.bytes(len)?,))
    })?;
    instance.func_wrap(number, |mut store: Store<'_>, (): ()| {
        Ok((store.data_mut().inert()?.next(),))
    })
}

/// Every wait is over at once, and waiting for the clock moves it.
fn poll(instance: &mut Linking<'_>) -> Result<()> {
    instance.func_wrap(
        "[method]pollable.ready",
        |_: Store<'_>, (_,): (Resource<Pollable>,)| Ok((true,)),
    )?;
    instance.func_wrap(
        "[method]pollable.block",
        |mut store: Store<'_>, (it,): (Resource<Pollable>,)| {
            let inert = store.data_mut().inert()?;
            inert.nanos = inert.nanos.max(inert.deadline(&it));
            Ok(())
        },
    )?;
    instance.func_wrap(
        "poll",
        |mut store: Store<'_>, (all,): (Vec<Resource<Pollable>>,)| {
            let inert = store.data_mut().inert()?;
            let first = all.iter().map(|it| inert.deadline(it)).min();
            inert.nanos = inert.nanos.max(first.unwrap_or_default());
            let ready = (0_u32..).zip(&all);
            let ready = ready.filter(|(_, it)| inert.deadline(it) <= inert.nanos);
            Ok((ready.map(|(place, _)| place).collect::<Vec<u32>>(),))
        },
    )
}

fn input(instance: &mut Linking<'_>) -> Result<()> {
    for name in ["read", "blocking-read"] {
        instance.func_wrap(
            &format!("[method]input-stream.{name}"),
            |_: Store<'_>, (_, _): (Resource<InputStream>, u64)| {
                Ok((Err::<Vec<u8>, _>(StreamError::Closed),))
            },
        )?;
    }
    instance.func_wrap(
        "[method]input-stream.subscribe",
        |mut store: Store<'_>, (_,): (Resource<InputStream>,)| {
            Ok((store.data_mut().inert()?.wait_until(0)?,))
        },
    )
}

fn output(instance: &mut Linking<'_>) -> Result<()> {
    instance.func_wrap(
        "[method]output-stream.check-write",
        |_: Store<'_>, (_,): (Resource<OutputStream>,)| {
            Ok((Ok::<u64, StreamError>(WRITE_BYTES_MAX),))
        },
    )?;
    for name in ["write", "blocking-write-and-flush"] {
        instance.func_wrap(
            &format!("[method]output-stream.{name}"),
            |mut store: Store<'_>, (it, bytes): (Resource<OutputStream>, Vec<u8>)| {
                write(store.data_mut(), it.rep(), &bytes)?;
                Ok((Ok::<(), StreamError>(()),))
            },
        )?;
    }
    for name in ["flush", "blocking-flush"] {
        instance.func_wrap(
            &format!("[method]output-stream.{name}"),
            |_: Store<'_>, (_,): (Resource<OutputStream>,)| Ok((Ok::<(), StreamError>(()),)),
        )?;
    }
    instance.func_wrap(
        "[method]output-stream.subscribe",
        |mut store: Store<'_>, (_,): (Resource<OutputStream>,)| {
            Ok((store.data_mut().inert()?.wait_until(0)?,))
        },
    )
}

fn write(state: &mut HostState, stream: u32, bytes: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(bytes);
    let level = match stream {
        STDERR => log::Level::Error,
        _ => log::Level::Info,
    };
    match text.trim_end() {
        "" => Ok(()),
        line => state.emit(level, line.to_owned(), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_and_others_do_not() {
        let numbers = |seed| {
            let mut inert = Inert::new(seed, 0);
            [inert.next(), inert.next(), inert.next()]
        };

        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn only_preview_2_is_served_and_only_when_it_was_asked_for() {
        assert!(grants(Wasi::Inert, "wasi:clocks/wall-clock@0.2.6"));
        for (wasi, import) in [
            (Wasi::None, "wasi:clocks/wall-clock@0.2.6"),
            (Wasi::Inert, "wasi:clocks/wall-clock@0.3.0"),
            (Wasi::Inert, "wasi:http/types@0.2.6"),
            (Wasi::Inert, "kerf:policy/types@0.1.0"),
        ] {
            assert!(!grants(wasi, import), "{wasi:?} {import}");
        }
    }
}
