//! The fuzz targets on their seeds, and on what follows from each seed by a few small changes: always the same ones.

use std::fs;
use std::path::{Path, PathBuf};

use clearway_fuzz::TARGETS;
use units::Stream;

/// Inputs made of each target's seeds.
const TRIES: u64 = 4_000;
/// Those that are compiled, by a compiler that is not optimised in tests.
const TRIES_COMPILED: u64 = 300;

/// Words that readers may stumble over, put in place of others.
#[rustfmt::skip]
const ODD: &[&str] = &[
    "", "0", "-1", "1", "255", "256", "65535", "65536", "4294967295", "4294967296", "9223372036854775807",
    "18446744073709551615", "18446744073709551616", "1e308", "-1e308", "1e-300", "nan", "inf", "0x10", "1_000", "true",
    "\"\"", "[]", "{}", "[[[[", "\"0bps\"", "\"-5us\"", "\"99999999999999999999s\"", "\"1.5B\"", "\u{0}", "\u{feff}",
    "é", "#", "=", ",", "->", "\n", "\r\n", "\t",
];

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut seeds: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder of seeds can be read").path())
        .map(|path| (path.clone(), fs::read(path).expect("a seed can be read")))
        .collect();
    seeds.sort();
    seeds
}

/// Runs a target, and says what it was given if it panics.
fn tried(name: &str, reader: clearway_fuzz::Reader, bytes: &[u8]) -> bool {
    let outcome = std::panic::catch_unwind(|| reader(bytes));
    outcome.unwrap_or_else(|_| panic!("{name} panicked at {:?}", bytes.escape_ascii().to_string()))
}

#[test]
fn every_target_has_seeds_and_every_folder_of_seeds_a_target() {
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")).expect("seeds");
    let mut folders: Vec<String> =
        folders.map(|entry| entry.expect("seeds").file_name().to_string_lossy().into_owned()).collect();
    folders.sort();
    let mut names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(folders, names);
}

/// A seed that its reader refuses, because a format has changed, leads no further than the first check.
#[test]
fn seeds_are_accepted_unless_their_name_says_otherwise() {
    for (name, reader) in TARGETS {
        let seeds = seeds(name);
        assert!(seeds.iter().any(|(_, bytes)| reader(bytes)), "{name} accepts none of its seeds");
        for (path, bytes) in seeds {
            let refused = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("refused"));
            let hint = "`cargo run -p clearway-fuzz --example seeds` writes those of packets and frames anew";
            assert_eq!(tried(name, *reader, &bytes), !refused, "{}; {hint}", path.display());
        }
    }
}

#[test]
fn small_changes_to_seeds_are_accepted_or_refused() {
    for (name, reader) in TARGETS {
        let seeds: Vec<Vec<u8>> = seeds(name).into_iter().map(|(_, bytes)| bytes).collect();
        let mut chance = Stream::new(1, 0, name);
        let mut accepted = 0;
        let tries = if *name == "module" { TRIES_COMPILED } else { TRIES };
        for _ in 0..tries {
            let mut bytes = chance.choose(&seeds).expect("there are seeds").clone();
            for _ in 0..=chance.below(3) {
                change(&mut bytes, &seeds, &mut chance);
            }
            accepted += u64::from(tried(name, *reader, &bytes));
        }
        assert!(accepted > 0 && accepted < tries, "{name}: {accepted} of {tries} accepted");
    }
}

/// One change: of a bit, a byte, a range, or a word.
fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], chance: &mut Stream) {
    let length = bytes.len() as u64;
    let at = chance.below(length + 1) as usize;
    let end = at + chance.below(length + 1 - at as u64).min(32) as usize;
    let kind = chance.below(8);
    match kind {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 if at < bytes.len() => bytes[at] = *chance.choose(&[0, 1, 0x7F, 0x80, 0xFF]).expect("five"),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => {
            let other = chance.choose(seeds).expect("there are seeds");
            let from = chance.below(other.len() as u64 + 1) as usize;
            bytes.splice(at..end, other[from..].iter().copied().take(64));
        }
        _ => {
            // A whole word, of signs that numbers and names are made of, where there is one.
            let of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+".contains(byte);
            let begin = at - bytes[..at].iter().rev().take_while(|byte| of_word(byte)).count();
            let end = at + bytes[at..].iter().take_while(|byte| of_word(byte)).count();
            let odd = chance.choose(ODD).expect("there are some");
            bytes.splice(begin..end, odd.bytes());
        }
    }
}
