"""Adapts the listener to our English voice and to the telephone: adapt.py FILE. It takes minutes, and espeak-ng, numpy and scipy beside pocketsphinx.

The model of the Python package knows people in rooms, with twice the band of a telephone: of an s little is left for it. As a person gets used to a voice
after some words, the means of the model are moved by one linear map for each of its three kinds of features (maximum likelihood linear regression). The map is
learned from the words below, none of which is a digit, in six voices of espeak-ng: they are aligned where the full band is heard, and compared with what the
telephone leaves of them.
"""

import glob
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pocketsphinx
from pocketsphinx import Decoder
from scipy.signal import resample_poly

WORDS = """weather pleasant river evening boat bridge market pressure system building children garden brother letter journey mountains judge question
public morning train workers villages factory fog valley path teacher machine voltage temperature vision future patience courage money vegetables cheese bread
square church police others sister version civil divide given ribbon heaven proven lesson seldom session second sentence sofa sun zebra wine line mine find
kind write light fixture mixed""".split()
# Voice, words a minute, pitch.
VOICES = [("en-us", 112, 60), ("en-us", 112, 50), ("en-us", 100, 65), ("en-us+m3", 112, 60), ("en-us+f2", 112, 50), ("en-gb", 112, 60)]
WORDS_AT_ONCE = 6
PAUSE = 0.6
ESPEAK_RATE = 22050
STREAMS, DENSITIES, FEATURES = 3, 128, 13
# The model has a codebook for each of its phones, in this order.
PHONES = """+NSN+ +SPN+ AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH SIL T TH UH UW V W Y Z ZH""".split()
PASSES = 4

random = np.random.default_rng(1)


def spoken(words, voice, pace, pitch):
    """The words with a pause behind each, as the voice says them."""
    parts = []
    for word in words:
        command = ["espeak-ng", "-v", voice, "-s", str(pace), "-p", str(pitch), "--stdout", word]
        wav = subprocess.run(command, capture_output=True, check=True).stdout
        sound = np.frombuffer(wav[44:], "<i2") / 32768
        loud = np.nonzero(np.abs(sound) > 0.01)[0]
        parts += [sound[max(0, loud[0] - 300) : loud[-1] + 600], np.zeros(int(PAUSE * ESPEAK_RATE))]
    sound = np.concatenate(parts)
    return sound * 0.5 / np.abs(sound).max()


def on_a_line(sound, rate):
    """Half a second before and behind, with the faint noise of a line."""
    around = np.zeros(rate // 2)
    sound = np.concatenate([around, sound, around])
    return sound + (random.random(len(sound)) - 0.5) * 0.003


def whole(sound):
    return np.clip(sound * 32767, -32768, 32767).astype("<i2").tobytes()


def in_a_room(sound):
    return whole(on_a_line(resample_poly(sound, 640, 882) * 0.9, 16000))


def through_a_telephone(sound):
    """8 kHz, A-law, and at 16 kHz again."""
    narrow = resample_poly(sound, 320, 882) * 0.9
    scale = 1 + np.log(87.6)
    size = np.abs(narrow)
    coded = np.where(size < 1 / 87.6, 87.6 * size / scale, (1 + np.log(np.maximum(87.6 * size, 1e-9))) / scale)
    coded = np.round(coded * 127) / 127
    decoded = np.where(coded < 1 / scale, coded * scale / 87.6, np.exp(coded * scale - 1) / 87.6)
    return whole(resample_poly(on_a_line(np.sign(narrow) * decoded, 8000), 2, 1))


def hear(decoder, sound, search):
    decoder.start_utt()
    decoder.process_raw(sound, no_search=not search, full_utt=True)
    decoder.end_utt()


def aligned(decoder, sound, words):
    """The phones, each with its first frame and the number of its frames."""
    decoder.set_align_text(" ".join(words))
    hear(decoder, sound, True)
    decoder.set_alignment()
    hear(decoder, sound, True)
    return [(phone.name, phone.start, phone.duration) for word in decoder.get_alignment() for phone in word]


def features(decoder, folder, sound):
    """The three kinds of features of each frame: the cepstrum without its mean, how it changes, and how that does."""
    for old in glob.glob(f"{folder}/*"):
        os.remove(old)
    hear(decoder, sound, False)
    (log,) = glob.glob(f"{folder}/*")
    data = Path(log).read_bytes()
    order = "<" if int.from_bytes(data[:4], "little") * 4 + 4 == len(data) else ">"
    cepstra = np.frombuffer(data[4:], order + "f4").reshape(-1, FEATURES).astype(float)
    cepstra = cepstra - cepstra.mean(0)
    padded = np.pad(cepstra, ((3, 3), (0, 0)), "edge")
    at = lambda shift: padded[3 + shift : 3 + shift + len(cepstra)]
    return np.stack([cepstra, at(2) - at(-2), (at(3) - at(-1)) - (at(1) - at(-3))], axis=1)


def frames():
    """What the telephone leaves of every frame, and the phone that is said in it."""
    aligner = Decoder(samprate=16000, loglevel="FATAL")
    heard, said = [], []
    with tempfile.TemporaryDirectory() as folder:
        listener = Decoder(samprate=16000, loglevel="FATAL", mfclogdir=folder)
        for voice in VOICES:
            words = random.permutation(WORDS).tolist()
            for first in range(0, len(words) - WORDS_AT_ONCE + 1, WORDS_AT_ONCE):
                some = words[first : first + WORDS_AT_ONCE]
                sound = spoken(some, *voice)
                found = features(listener, folder, through_a_telephone(sound))
                for phone, start, length in aligned(aligner, in_a_room(sound), some):
                    part = found[start : start + length]
                    heard.append(part)
                    said += [PHONES.index(phone)] * len(part)
    return np.concatenate(heard), np.array(said)


def parameters(name):
    """Means or variances of the model: phone, stream, density, feature."""
    data = (Path(pocketsphinx.get_model_path("en-us/en-us")) / name).read_bytes()
    body = data[data.index(b"endhdr\n") + len(b"endhdr\n") :]
    header = np.frombuffer(body, "<i4", 5 + STREAMS)
    assert header[:4].tolist() == [0x11223344, len(PHONES), STREAMS, DENSITIES], header
    values = np.frombuffer(body, "<f4", header[-1], 4 * (5 + STREAMS))
    return values.reshape(len(PHONES), STREAMS, DENSITIES, FEATURES).astype(float)


def fitted(heard, said, means, variances):
    """The map of one stream: matrix, shift, and how much the variances grow."""
    matrix, shift, growth = np.eye(FEATURES), np.zeros(FEATURES), np.ones(FEATURES)
    for _ in range(PASSES):
        left = np.zeros((FEATURES, FEATURES + 1, FEATURES + 1))
        right = np.zeros((FEATURES, FEATURES + 1))
        spread = np.zeros(FEATURES)
        for phone in np.unique(said):
            of_phone = heard[said == phone]
            moved, wide = means[phone] @ matrix.T + shift, variances[phone] * growth
            distance = of_phone**2 @ (1 / wide).T - 2 * of_phone @ (moved / wide).T + (moved**2 / wide).sum(1) + np.log(wide).sum(1)
            likely = np.exp(-0.5 * (distance - distance.min(1, keepdims=True)))
            likely /= likely.sum(1, keepdims=True)
            weights, sums = likely.sum(0), likely.T @ of_phone
            extended = np.hstack([means[phone], np.ones((DENSITIES, 1))])
            for feature in range(FEATURES):
                by = 1 / wide[:, feature]
                left[feature] += (extended * (weights * by)[:, None]).T @ extended
                right[feature] += (extended * (sums[:, feature] * by)[:, None]).sum(0)
            spread += ((likely.T @ of_phone**2 - 2 * sums * moved + weights[:, None] * moved**2) / variances[phone]).sum(0)
        solved = np.array([np.linalg.solve(a + 1e-3 * np.eye(FEATURES + 1), b) for a, b in zip(left, right)])
        matrix, shift, growth = solved[:, :-1], solved[:, -1], spread / len(said)
    return matrix, shift, growth


def main():
    heard, said = frames()
    means, variances = parameters("means"), np.maximum(parameters("variances"), 1e-4)
    line = lambda values: " ".join(f"{value:.5f}" for value in values)
    lines = ["1", str(STREAMS)]
    for stream in range(STREAMS):
        matrix, shift, growth = fitted(heard[:, stream], said, means[:, stream], variances[:, stream])
        lines += [str(FEATURES), *map(line, matrix), line(shift), line(growth)]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n")
    print(f"{len(said)} frames")


main()
