"""Which sentence of a grammar was said: listen.py GRAMMAR FILE…, each file 16 kHz, 16 bit, mono, without a header. One line a file."""

import sys

from pocketsphinx import Decoder

# Wider beams than usual: a grammar of whole sentences gives the search few places to recover.
decoder = Decoder(jsgf=sys.argv[1], samprate=16000, beam=1e-80, pbeam=1e-80, wbeam=1e-60, loglevel="FATAL")
for name in sys.argv[2:]:
    with open(name, "rb") as file:
        sound = file.read()
    decoder.start_utt()
    decoder.process_raw(sound, no_search=False, full_utt=True)
    decoder.end_utt()
    understood = decoder.hyp()
    print(understood.hypstr if understood else "")
