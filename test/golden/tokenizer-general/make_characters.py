"""What the Rust `tokenizers` library knows about every code point, asked from the library itself.

Run:  pip install tokenizers==0.23.3
      python make_characters.py FOLDER      writes characters.rle and scripts.rle to FOLDER (src/tokenizer/general)
      python make_characters.py --check FOLDER      compares them with a fresh run
      python make_characters.py --changes           JSON for make_newer.ts

Its parts have Unicode tables of different ages: Oniguruma's (patterns), the regex crate's (\\w, \\s of Whitespace and of added
tokens), the standard library's (white space, numbers, lower case), unicode_categories' (BertNormalizer, punctuation),
unicode-normalization-alignments' (NFC and its kin, combining marks), unicode-segmentation's (graphemes of Precompiled).

characters.rle: runs of (length, signature), both unsigned LEB128, over all code points. A signature is the sum of
  category            number of the general category in CATEGORIES, by Oniguruma
  << 5  word          \\w of Oniguruma          << 6  regex_word   \\w of the regex crate      << 7  regex_space  its \\s
  << 8  white         std white space          << 9  numeric      std numeric                << 10 punctuation  Bert's, Punctuation's
  << 11 control       removed by clean_text    << 12 mark         Mn of strip_accents        << 13 combining    of StripAccents
  << 14 grapheme      number in GRAPHEMES
  << 18 class         1 + number of the combining class in the list at the end of the file; 0: none
then the list of combining classes: count and classes, LEB128.
scripts.rle: runs of (length, script) as UnicodeScripts has them; 0: any.
"""
import base64
import json
import os
import struct
import sys
import unicodedata

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TEXT = "".join(map(chr, ALL))
CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
GRAPHEMES = "any incb joins linker control prepend pictographic consonant L V T LV LVT".split()


def onig(pattern):
    """Code points that a pattern of one character matches."""
    left = normalizers.Replace(Regex(pattern), "").normalize_str(TEXT)
    return set(ALL) - set(map(ord, left))


def each(normalizer, sep):
    """Every code point normalized by itself."""
    out = {}
    for at in range(0, len(ALL), 4096):
        chunk = [c for c in ALL[at : at + 4096] if chr(c) != sep]
        parts = normalizer.normalize_str(sep + sep.join(map(chr, chunk)) + sep)[1:-1].split(sep)
        assert len(parts) == len(chunk), at
        out.update(zip(chunk, parts))
    out[ord(sep)] = sep
    return out


def isolated(pre):
    """Code points that a pre-tokenizer puts in a piece of their own, between letters."""
    found = set()
    for at in range(0, len(ALL), 4096):
        text = "x" + "x".join(chr(c) for c in ALL[at : at + 4096]) + "x"
        found.update(ord(p) for p, _ in pre.pre_tokenize_str(text) if len(p) == 1)
    return found - {ord("x")}


def removed(pre):
    left = set()
    for at in range(0, len(ALL), 4096):
        for p, _ in pre.pre_tokenize_str("x" + "x".join(chr(c) for c in ALL[at : at + 4096]) + "x"):
            left.update(map(ord, p))
    return set(ALL) - left - {ord("x")}


def leb(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def runs(values):
    out = bytearray()
    start = 0
    for c in range(1, len(values) + 1):
        if c == len(values) or values[c] != values[start]:
            out += leb(c - start) + leb(values[start])
            start = c
    return bytes(out)


def combining_classes(canonical):
    """By the order in which NFD puts marks: Python's class, where the library agrees that it moves."""
    nfd = normalizers.NFD().normalize_str
    classes = {}
    for c in ALL:
        known = unicodedata.combining(chr(c))
        moved = canonical[c] == chr(c) and nfd("\u0345" + chr(c)) != "\u0345" + chr(c)
        if moved or c == 0x345:
            assert known, hex(c)
            classes[c] = known
    for c, k in classes.items():  # 0x345 is the highest class: others by comparison with one mark of each class
        for r, kr in {k2: c2 for c2, k2 in classes.items()}.items():
            pair = nfd(chr(kr) + chr(c)), nfd(chr(c) + chr(kr))
            want = chr(kr) + chr(c) if r <= k else chr(c) + chr(kr)
            assert pair[0] == want and (r == k or pair[1] == want), (hex(c), hex(kr))
    return classes


def charsmap(keys):
    """A Precompiled normalizer that puts X for each of the keys (single characters)."""
    # unit 0 is the root; each inner node has a block of 256 units for its children, values lie behind all blocks
    prefixes = sorted({b"".join([raw[:i]]) for raw in (chr(k).encode() for k in keys) for i in range(len(raw))})
    base = {prefix: 256 * (i + 1) for i, prefix in enumerate(prefixes)}
    units = [0] * (256 * (len(prefixes) + 1))
    units[0] = base[b""] << 10
    for raw in [p for p in prefixes if p] + [chr(k).encode() for k in keys]:
        at = base[raw[:-1]] ^ raw[-1]
        if raw in base:
            units[at] = (at ^ base[raw]) << 10 | raw[-1]
        else:
            units[at] = (at ^ len(units)) << 10 | 1 << 8 | raw[-1]
            units.append(1 << 31)
    units.extend([1 << 31] * (-len(units) % 256))
    trie = struct.pack("<%dI" % len(units), *units)
    made = struct.pack("<I", len(trie)) + trie + b"X\0"
    pre = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(made).decode()}
    model = {"type": "WordLevel", "vocab": {"u": 0}, "unk_token": "u"}
    return Tokenizer.from_str(json.dumps({"added_tokens": [], "normalizer": pre, "model": model})).normalizer


def graphemes():
    """
    Classes as far as they show in Precompiled: it replaces a cluster of at most 5 bytes as a whole if a key is its prefix, and
    each character of longer ones.
    """
    a = charsmap([ord("a")]).normalize_str
    joins = {c for c in ALL if a("a" + chr(c)) == "X"}
    keys = [c for c in ALL if c < 0x3400 or 0xA000 <= c < 0xAC00 or 0xD7B0 <= c < 0xE000 or 0xF900 <= c < 0x20000 or 0xE0000 <= c < 0xE1000]
    n = charsmap(keys).normalize_str
    known = set(keys) - joins
    prepend = {c for c in known if c > 0x7F and n(chr(c) + "a") == "X"}
    control = {c for c in known if c < 0x10000 and len(n(chr(c) + "\u0301")) == 2}
    pictographic = {c for c in known if n("\u00a9\u200d" + chr(c)) == "XXX"}
    consonant = {c for c in known if 0x7FF < c < 0x10000 and len(n("\u0915\u094d" + chr(c) + "\u0301")) == 4}
    linker = {c for c in joins if len(n("\u0915" + chr(c) + "\u0915\u0301")) == 4}
    incb = {c for c in joins if len(n("\u0915\u094d" + chr(c) + "\u0915\u0301")) == 5}
    values = {}
    for name, found in (
        ("joins", joins), ("incb", incb), ("linker", linker), ("prepend", prepend),
        ("pictographic", pictographic), ("consonant", consonant - control - prepend), ("control", control),
    ):
        values.update(dict.fromkeys(found, GRAPHEMES.index(name)))
    # Hangul by its definition: a jamo and a prepended sign of 2 bytes show it, if no other jamo follows
    jamo = {"L": ((0x1100, 0x115F), (0xA960, 0xA97C)), "V": ((0x1160, 0x11A7), (0xD7B0, 0xD7C6)), "T": ((0x11A8, 0x11FF), (0xD7CB, 0xD7FB))}
    for name, ranges in jamo.items():
        for first, last in ranges:
            values.update(dict.fromkeys(range(first, last + 1), GRAPHEMES.index(name)))
    for c in range(0xAC00, 0xD7A4):
        values[c] = GRAPHEMES.index("LVT" if (c - 0xAC00) % 28 else "LV")
    return values


def scripts():
    pre = pre_tokenizers.UnicodeScripts()
    whole = lambda text: len(pre.pre_tokenize_str(text)) == 1
    values = [0] * 0x110000
    known = []
    last = None
    for c in ALL:
        ch = chr(c)
        if whole("a" + ch + "a") and whole("\u0431" + ch + "\u0431"):
            continue  # `any` goes with everything
        if last is not None and whole(chr(last) + ch):
            values[c] = values[last]
        else:
            values[c] = next((i + 1 for i, other in enumerate(known) if whole(other + ch)), 0)
            if values[c] == 0:
                known.append(ch)
                values[c] = len(known)
        last = c
    return values


def signatures():
    sig = [0] * 0x110000
    for i, cat in enumerate(CATEGORIES):
        if i:
            for c in onig(r"\p{%s}" % cat):
                assert sig[c] == 0, hex(c)
                sig[c] = i

    def flag(bit, found):
        for c in found:
            sig[c] |= 1 << bit

    flag(5, onig(r"\w"))
    white = pre_tokenizers.Whitespace()
    words, spaces = set(), set()
    for c in ALL:
        p = [x for x, _ in white.pre_tokenize_str("a" + chr(c))]
        if p == ["a" + chr(c)]:
            words.add(c)
        elif p == ["a"]:
            spaces.add(c)
    flag(6, words)
    flag(7, spaces)
    flag(8, removed(pre_tokenizers.WhitespaceSplit()))
    flag(9, isolated(pre_tokenizers.Digits(individual_digits=True)))
    flag(10, isolated(pre_tokenizers.Punctuation("isolated")))
    clean = each(normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False), "x")
    assert {c for c in ALL if clean[c] == " "} - {c for c in ALL if sig[c] >> 8 & 1} == set()
    flag(11, {c for c in ALL if clean[c] == ""})
    assert all(clean[c] in ("", " ", chr(c)) for c in ALL)
    assert all((clean[c] in ("", " ")) for c in ALL if sig[c] >> 8 & 1)
    bert = each(normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False), "\n")
    flag(12, {c for c in ALL if bert[c] == ""})
    strip = each(normalizers.StripAccents(), "\n")
    flag(13, {c for c in ALL if strip[c] == ""})
    for c, value in graphemes().items():
        sig[c] |= value << 14
    classes = combining_classes(each(normalizers.NFD(), "\n"))
    order = sorted(set(classes.values()))
    for c, k in classes.items():
        sig[c] |= (order.index(k) + 1) << 18
    return runs(sig) + leb(len(order)) + b"".join(map(leb, order))


def changes():
    """Per normalizer the code points that it changes, and into what (for make_newer.ts)."""
    names = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase")
    marks = {c for c in ALL if normalizers.NFD().normalize_str("\u0345" + chr(c)) != "\u0345" + chr(c)}
    forms = {f: {format(c, "x"): v for c, v in each(getattr(normalizers, f)(), "\n").items() if v != chr(c)} for f in names}
    return {**forms, "marks": sorted(marks)}


if __name__ == "__main__":
    if sys.argv[1] == "--changes":
        json.dump(changes(), sys.stdout)
        sys.exit(0)
    made = {"characters.rle": signatures(), "scripts.rle": runs(scripts())}
    wrong = 0
    for name, data in made.items():
        path = os.path.join(sys.argv[-1], name)
        if sys.argv[1] == "--check":
            same = open(path, "rb").read() == data
            wrong += not same
            print(name, "equal" if same else "differs")
        else:
            open(path, "wb").write(data)
            print(name, len(data))
    sys.exit(wrong)
