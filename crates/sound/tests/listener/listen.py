"""What was said: listen.py [--adapted FILE] GRAMMAR FILE…, each file 16 kHz, 16 bit, mono, without a header. One line a file."""

import argparse

from pocketsphinx import Decoder

# Wider than usual: a grammar of whole sentences gives the search few places to recover.
WIDE_BEAMS = {"beam": 1e-80, "pbeam": 1e-80, "wbeam": 1e-60}
# Where any word may follow, it is told that a further one is not likely: otherwise it takes a slow word for two.
FEW_WORDS = {"wip": 1e-3}

parser = argparse.ArgumentParser()
parser.add_argument("--adapted", help="what adapt.py has written: the listener is used to our voice and to the telephone")
parser.add_argument("grammar")
parser.add_argument("files", nargs="+")
arguments = parser.parse_args()

manner = {"mllr": arguments.adapted, **FEW_WORDS} if arguments.adapted else WIDE_BEAMS
decoder = Decoder(jsgf=arguments.grammar, samprate=16000, loglevel="FATAL", **manner)
for name in arguments.files:
    with open(name, "rb") as file:
        sound = file.read()
    decoder.start_utt()
    decoder.process_raw(sound, no_search=False, full_utt=True)
    decoder.end_utt()
    understood = decoder.hyp()
    print(understood.hypstr if understood else "")
