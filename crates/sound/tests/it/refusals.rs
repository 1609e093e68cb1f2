//! Every kind of file that cannot be played, with the reason that its owner is told.

use sound::wav::{AudioError, Wav, WavLimits};

use super::support::{File, sine};

fn refusal(file: &[u8]) -> String {
    Wav::read(file, &WavLimits::default())
        .unwrap_err()
        .to_string()
}

fn silence(file: &File) -> Vec<u8> {
    file.with_bytes(&[0; 64])
}

#[test]
fn what_is_no_wav_file_or_no_whole_one_is_refused_with_its_reason() {
    let tone = sine(440.0, 8000, 0.1, 0.5);
    let plain = || File::pcm16(8000);
    let refusals: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "the file is empty"),
        (
            b"ID3\x04rest".to_vec(),
            "this is an MP3 file; a voice file must be WAV",
        ),
        (
            b"OggS....".to_vec(),
            "this is an Ogg file; a voice file must be WAV",
        ),
        (
            b"RIFX\0\0\0\0WAVEfmt ".to_vec(),
            "this is a big-endian WAV file (RIFX); a voice file must be WAV",
        ),
        (
            b"RIFF\0\0\0\0AVI LIST".to_vec(),
            "this is a RIFF file without sound; a voice file must be WAV",
        ),
        (
            b"RIFF".to_vec(),
            "this is a RIFF file without sound; a voice file must be WAV",
        ),
        (
            b"hello".to_vec(),
            "this is not a sound file we know; a voice file must be WAV",
        ),
        (
            b"RIFF\0\0\0\0WAVE".to_vec(),
            "the WAV file has no complete fmt chunk before its samples",
        ),
        (
            b"RIFF\0\0\0\0WAVEfmt \xff\xff\xff\xff\x01\0\x01\0\x40\x1f\0\0\0\0\0\0\0\0\x10\0"
                .to_vec(),
            "the WAV file has no complete fmt chunk before its samples",
        ),
        (
            b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd".to_vec(),
            "the WAV file has no complete fmt chunk before its samples",
        ),
        (
            plain().with(&tone)[..36].to_vec(),
            "the WAV file has no data chunk",
        ),
    ];
    for (file, reason) in refusals {
        assert_eq!(refusal(&file), reason);
    }
}

#[test]
fn what_no_line_can_play_is_refused_with_its_reason() {
    let refusals: Vec<(Vec<u8>, &str)> = vec![
        (
            File::pcm16(8000).with_bytes(&[1]),
            "the data chunk holds not one whole sample",
        ),
        (
            silence(&File::new(2, 4, 1, 8000)),
            "the samples are Microsoft ADPCM (format tag 0x0002); a voice file must be PCM, float, A-law or µ-law",
        ),
        (
            silence(&File::new(0x31, 0, 1, 8000)),
            "the samples are GSM 6.10 (format tag 0x0031); a voice file must be PCM, float, A-law or µ-law",
        ),
        (
            silence(&File::new(0x55, 0, 1, 8000)),
            "the samples are MP3 (format tag 0x0055); a voice file must be PCM, float, A-law or µ-law",
        ),
        (
            silence(&File::new(1, 0, 1, 8000)),
            "0 bits a sample; PCM may have 8 to 32, float 32 or 64, A-law and µ-law 8",
        ),
        (
            silence(&File::new(1, 64, 1, 8000)),
            "64 bits a sample; PCM may have 8 to 32, float 32 or 64, A-law and µ-law 8",
        ),
        (
            silence(&File::new(3, 16, 1, 8000)),
            "16 bits a sample; PCM may have 8 to 32, float 32 or 64, A-law and µ-law 8",
        ),
        (
            silence(&File::new(1, 16, 0, 8000)),
            "0 channels; a voice file has 1 to 32",
        ),
        (
            silence(&File::new(1, 16, 33, 8000)),
            "33 channels; a voice file has 1 to 32",
        ),
        (
            silence(&File::new(1, 16, 1, 0)),
            "0 samples a second; a voice file has 2000 to 384000",
        ),
        (
            silence(&File::new(1, 16, 1, 400_000)),
            "400000 samples a second; a voice file has 2000 to 384000",
        ),
        (
            File::new(1, 8, 1, 2000).with_bytes(&vec![128; 2000 * 1801]),
            "the sound lasts 1801 s; at most 1800 s are played",
        ),
        (
            vec![0; 20_000_001],
            "the file has 20000001 bytes; at most 20000000 are taken",
        ),
    ];
    for (file, reason) in refusals {
        assert_eq!(refusal(&file), reason);
    }
}

#[test]
fn a_private_kind_of_samples_is_refused() {
    let mut private = File {
        extensible: true,
        ..File::pcm16(8000)
    }
    .with(&sine(440.0, 8000, 0.1, 0.5));
    private[50] = 0x77;
    assert!(matches!(
        Wav::read(&private, &WavLimits::default()),
        Err(AudioError::Encoding { tag: 0xfffe, .. })
    ));
}
