//! Zip files: good ones, and those that were made to hurt.

use std::io::{Cursor, Write};

use sound::archive::{ArchiveError, ArchiveLimits, is_zip, unpack};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn refusal(bytes: &[u8]) -> String {
    unpack(bytes, &ArchiveLimits::default())
        .unwrap_err()
        .to_string()
}

#[test]
fn a_zip_of_wav_files_is_unpacked_in_order() {
    let bytes = zip(&[("b.wav", b"one"), ("欢迎.WAV", b"two")]);
    assert!(is_zip(&bytes));
    let entries = unpack(&bytes, &ArchiveLimits::default()).unwrap();
    let found: Vec<_> = entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.bytes.as_slice()))
        .collect();
    assert_eq!(found, [("b.wav", b"one".as_slice()), ("欢迎.WAV", b"two")]);
}

#[test]
fn names_that_chinese_windows_wrote_are_read() {
    let (gbk, ..) = encoding_rs::GBK.encode("欢迎.wav");
    let mut bytes = zip(&[("12345678.wav", b"x")]);
    let name = b"12345678";
    // The same length, so only the names change; and the flag that says UTF-8 is not set for plain ones.
    assert_eq!(gbk.len(), 8);
    let replaced: Vec<usize> = (0..bytes.len() - 12)
        .filter(|at| bytes[*at..].starts_with(name))
        .collect();
    for at in &replaced {
        bytes[*at..*at + 8].copy_from_slice(&[&gbk[..4], b"0000"].concat());
    }
    assert_eq!(replaced.len(), 2);
    let entries = unpack(&bytes, &ArchiveLimits::default()).unwrap();
    assert_eq!(entries[0].name, "欢迎0000.wav");
}

#[test]
fn paths_and_other_names_are_refused() {
    for name in [
        "../a.wav",
        "/etc/a.wav",
        "dir/a.wav",
        "..\\a.wav",
        "c:a.wav",
        ".hidden.wav",
    ] {
        assert_eq!(
            refusal(&zip(&[(name, b"x")])),
            format!("{name:?} in the zip file is a path; only plain file names are taken")
        );
    }
    assert_eq!(
        refusal(&zip(&[("a.mp3", b"x")])),
        "\"a.mp3\" in the zip file is not named as a WAV file (.wav)"
    );
    assert_eq!(refusal(&zip(&[])), "the zip file holds no file");
    assert!(refusal(b"PK\x03\x04 and then nothing").starts_with("the zip file cannot be read"));
}

#[test]
fn a_zip_bomb_is_refused_before_it_goes_off() {
    let zeros = vec![0; 21_000_000];
    let bomb = zip(&[("a.wav", &zeros)]);
    assert!(bomb.len() < 100_000);
    assert_eq!(
        refusal(&bomb),
        "\"a.wav\" in the zip file is larger than 20000000 bytes unpacked"
    );
    let many: Vec<String> = (0..6).map(|number| format!("{number}.wav")).collect();
    let nearly = vec![0; 19_000_000];
    let files: Vec<(&str, &[u8])> = many
        .iter()
        .map(|name| (name.as_str(), nearly.as_slice()))
        .collect();
    assert_eq!(
        refusal(&zip(&files)),
        "the zip file is larger than 100000000 bytes unpacked"
    );
    let names: Vec<String> = (0..101).map(|number| format!("{number}.wav")).collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), b"x".as_slice()))
        .collect();
    assert_eq!(
        refusal(&zip(&files)),
        "the zip file holds 101 files; at most 100 are taken"
    );
}

/// Sets the unpacked size in both headers of a zip with one file.
fn with_size(mut bytes: Vec<u8>, size: u32) -> Vec<u8> {
    let find = |bytes: &[u8], mark: &[u8]| bytes.windows(4).position(|four| four == mark).unwrap();
    let (local, central) = (find(&bytes, b"PK\x03\x04"), find(&bytes, b"PK\x01\x02"));
    bytes[local + 22..local + 26].copy_from_slice(&size.to_le_bytes());
    bytes[central + 24..central + 28].copy_from_slice(&size.to_le_bytes());
    bytes
}

#[test]
fn a_header_that_lies_about_the_size_is_refused() {
    // It claims 4 GB.
    let small = zip(&[("a.wav", b"small")]);
    assert_eq!(
        refusal(&with_size(small, u32::MAX - 1)),
        "\"a.wav\" in the zip file is larger than 20000000 bytes unpacked"
    );
    // It claims ten bytes and holds millions.
    let zeros = vec![0; 21_000_000];
    let lying = with_size(zip(&[("a.wav", &zeros)]), 10);
    match unpack(&lying, &ArchiveLimits::default()) {
        Err(ArchiveError::TooLarge { .. } | ArchiveError::Broken(_)) => {}
        Ok(entries) => assert!(entries[0].bytes.len() <= 10, "{}", entries[0].bytes.len()),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn an_encrypted_file_is_refused() {
    let mut bytes = zip(&[("a.wav", b"secret")]);
    for (mark, at) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let header = bytes.windows(4).position(|four| four == mark).unwrap();
        bytes[header + at] |= 1;
    }
    assert_eq!(refusal(&bytes), "\"a.wav\" in the zip file is encrypted");
}
