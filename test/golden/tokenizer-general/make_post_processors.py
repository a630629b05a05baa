"""Ids that the post-processors of the Rust `tokenizers` library add.

Run:  pip install tokenizers==0.23.3 && python make_post_processors.py      writes post-processors.json beside this file

Each case: the `post_processor` value, and the ids of a text of the ids [100, 101] (A) and of a pair with [200] (B).
"""
import json
import os
import sys

import tokenizers

VOCAB = {f"t{i}": i for i in range(300)} | {"unk": 300}
seq = lambda id, type_id=0: {"Sequence": {"id": id, "type_id": type_id}}
tok = lambda id, type_id=0: {"SpecialToken": {"id": id, "type_id": type_id}}


def template(single, pair, **ids):
    tokens = {k: {"id": k, "ids": v, "tokens": [f"t{i}" for i in v]} for k, v in ids.items()}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


A, B = seq("A"), seq("B", 1)
BERT = {"type": "BertProcessing", "sep": ["t3", 3], "cls": ["t2", 2]}
ROBERTA = {"type": "RobertaProcessing", "sep": ["t3", 3], "cls": ["t2", 2], "trim_offsets": True, "add_prefix_space": False}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
BOS = template([tok("bos"), A], [tok("bos"), A, tok("bos"), B], bos=[1])
CASES = [
    None,
    BERT,
    ROBERTA,
    BYTES,
    BOS,
    template([A, tok("eos")], [A, tok("eos"), B, tok("eos")], eos=[7]),
    template([tok("a b"), A, tok("eos")], [B, tok("eos"), A], eos=[7, 8], **{"a b": [5, 6, 5]}),
    template([A], [A, B]),
    {"type": "Sequence", "processors": [BYTES, BOS]},
    {"type": "Sequence", "processors": [BERT, BOS]},
    {"type": "Sequence", "processors": [BERT, ROBERTA]},
    {"type": "Sequence", "processors": [BOS, BERT]},
    {"type": "Sequence", "processors": [BOS, ROBERTA]},
    {"type": "Sequence", "processors": []},
]


def run(post):
    t = tokenizers.Tokenizer.from_str(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": post, "decoder": None,
        "model": {"type": "WordLevel", "vocab": VOCAB, "unk_token": "unk"},
    }))
    return {"post_processor": post, "single": t.encode("t100 t101").ids, "pair": t.encode("t100 t101", "t200").ids}


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "post-processors.json")
    rows = ",\n".join(json.dumps(run(case)) for case in CASES)
    made = json.dumps({"tokenizers": tokenizers.__version__, "python": sys.version.split()[0]})
    with open(path, "w") as f:
        f.write('{"made_with": %s, "cases": [\n%s\n]}\n' % (made, rows))
