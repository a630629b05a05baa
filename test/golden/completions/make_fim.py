"""Makes fim.json and fim.model: prompts that ask for the middle of a text, by mistral-common's `encode_fim`.

Needs mistral-common and sentencepiece; the versions that made the files are kept in fim.json. Usage: python make_fim.py
"""

import importlib.metadata
import io
import json
import pathlib

import sentencepiece
from mistral_common.protocol.fim.request import FIMRequest
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

HERE = pathlib.Path(__file__).parent
SYMBOLS = [
    "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
    "[IMG]", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
]
CORPUS = [
    "def add(a, b):", "    return a + b", "for x in range(10):", "    print(x, 'done')", "class Point:", "the quick brown fox",
    # mistral-common takes for granted that a space and this sign are two tokens
    "x☺",
    "import json", "with open(path) as file:", "        text = file.read()", "return None", "if x is not None and y:",
]
PREFIXES = ["def f(", "def add(a, b):\n    ", "", "  x = 1\n\treturn", "naïve 日本", "a [INST] b </s>", "print('hi')\n", " leading"]
SUFFIXES = ["\n    return x", ")", "    pass\n", " b", "", "日本語\n", "[PREFIX] x", "x", "\tfoo", "  two", "☺ x"]


def sentencepiece_model() -> pathlib.Path:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 20), model_writer=model, vocab_size=420, model_type="bpe", byte_fallback=True,
        control_symbols=SYMBOLS, normalization_rule_name="identity", remove_extra_whitespaces=False, hard_vocab_limit=False,
        minloglevel=2,
    )
    path = HERE / "fim.model"
    path.write_bytes(model.getvalue())
    return path


def main() -> None:
    model = sentencepiece_model()
    versioned = HERE / "fim.model.v3"
    versioned.write_bytes(model.read_bytes())
    cases = []
    try:
        tokenizer = MistralTokenizer.from_file(str(versioned))
        for prefix in PREFIXES:
            for suffix in SUFFIXES:
                ids = tokenizer.encode_fim(FIMRequest(prompt=prefix, suffix=suffix)).tokens
                cases.append({"prefix": prefix, "suffix": suffix, "ids": ids})
    finally:
        versioned.unlink()
    versions = {name: importlib.metadata.version(name) for name in ("mistral-common", "sentencepiece")}
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (HERE / "fim.json").write_text(f'{{"versions": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')


main()
