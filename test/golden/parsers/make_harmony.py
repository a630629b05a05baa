"""Writes harmony-samples.jsonl: answers of gpt-oss as openai-harmony takes them apart.

    pip install openai-harmony==0.0.8
    TIKTOKEN_ENCODINGS_BASE=DIR python make_harmony.py > harmony-samples.jsonl

DIR holds o200k_base.tiktoken; without the variable the package downloads it. What a message becomes is the table of the parser:
channel analysis is reasoning, a recipient functions.NAME a call, the built-in tools reasoning, all else text.
"""

import json

from openai_harmony import HarmonyEncodingName, Role, StreamableParser, load_harmony_encoding

encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)

CODE = 'if [ "$a" ]; then\n  echo "{}" # 東京 😀\nfi'


def message(channel, body, recipient="", kind="", end="<|end|>", first=False):
    start = "" if first else "<|start|>assistant"
    return f"{start}<|channel|>{channel}{recipient}{kind}<|message|>{body}{end}"


def to_role(name, body, channel="commentary", kind=" <|constrain|>json", first=True):
    """The other place of the recipient: behind the role."""
    start = "" if first else "<|start|>assistant"
    return f"{start} to=functions.{name}<|channel|>{channel}{kind}<|message|>{body}<|call|>"


def call(name, arguments, first=False, channel="commentary", kind=" <|constrain|>json", end="<|call|>"):
    body = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return message(channel, body, f" to=functions.{name}", kind, end, first)


think = message("analysis", "The user wants the weather.", first=True)
preamble = message("commentary", "I will look that up.\n")
final = message("final", "It is sunny.", end="<|return|>")

INPUTS = [
    message("final", "Hello.", end="<|return|>", first=True),
    message("final", "Hello.", end="<|end|>", first=True),
    message("final", "", end="<|return|>", first=True),
    message("final", "a < b, [1] {x}\n\n东京 😀 <think>", end="<|return|>", first=True),
    think + final,
    think + message("analysis", "Now I know.") + final,
    think,
    think + preamble + final,
    think + message("final", "One.") + message("final", "Two.", end="<|return|>"),
    message("commentary", "Only a preamble.", end="<|return|>", first=True),
    message("analysis", 'say {"name": "ping"} [1]\n', first=True) + final,
    think + call("get_weather", {"city": "Oslo"}),
    think + call("get_weather", {"city": "Oslo", "days": 2}),
    think + call("ping", {}),
    call("ping", {}, first=True),
    call("run", {"cmd": CODE}, first=True),
    call("run", json.dumps({"cmd": CODE}), first=True),
    call("run", '{\n  "cmd": "ls",\n  "x": 1.0\n}', first=True),
    call("calc", {"items": [1, "a ] b", None], "cfg": {"k": {"d": [{}], "e": "}"}}, "flag": True}, first=True),
    call("calc", {"x": -1.5}, first=True, kind=""),
    call("calc", {"x": -1.5}, first=True, kind=" json"),
    call("calc", {"x": -1.5}, first=True, kind="<|constrain|>json"),
    call("mcp-run", {"cmd": "ls"}, first=True),
    call("nope", {"a": 1}, first=True),
    call("ping", {}, first=True, channel="analysis", kind=""),
    call("run", {"cmd": "a"}, first=True, channel="analysis"),
    think + preamble + call("run", {"cmd": "ls"}),
    preamble.removeprefix("<|start|>assistant") + call("run", {"cmd": "ls"}),
    think + call("ping", {}) + call("run", {"cmd": "b"}),
    think + call("run", {"cmd": "a"}) + call("run", {"cmd": "b"}) + call("ping", {}),
    call("run", {"cmd": "a"}, first=True) + call("run", {"cmd": "a"}),
    call("search", {"q": "42", "limit": 0}, first=True),
    call("search", {"q": "<call> to=functions.x"}, first=True),
    call("search", {"q": "a"}, first=True, end="<|end|>") + final,
    to_role("get_weather", '{"city": "Oslo"}'),
    to_role("get_weather", '{"city": "Oslo"}', kind=" json"),
    to_role("ping", "{}", kind=""),
    to_role("run", '{"cmd": "ls"}', channel="analysis"),
    think + to_role("get_weather", '{"city": "東京"}', first=False),
    think + to_role("run", '{"cmd": "a"}', first=False) + to_role("run", '{"cmd": "b"}', first=False),
    think + message("analysis", "print(1)", " to=python", " code", "<|call|>"),
    think + message("analysis", '{"query": "x"}', " to=browser.search", " code", "<|call|>"),
    think + message("commentary", '{"cmd": ["ls"]}', " to=container.exec", "", "<|call|>"),
    message("analysis", "cut in a tho", end="", first=True),
    think + message("final", "cut in an ans", end=""),
    think + message("commentary", "cut in a pre", end=""),
    think + call("run", '{"cmd": "cut', end=""),
    think + call("run", '{"cmd": "whole"}', end=""),
    think + call("ping", {}) + message("analysis", "Then.") + message("final", "Done.", end="<|return|>"),
]


def taken_apart(text):
    parser = StreamableParser(encoding, Role.ASSISTANT)
    for token in encoding.encode(text, allowed_special="all"):
        parser.process(token)
    for each in parser.messages:
        yield each.channel, each.recipient, "".join(part.text for part in each.content), True
    if parser.current_content:
        yield parser.current_channel, parser.current_recipient, parser.current_content, False


def whole_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


for number, text in enumerate(INPUTS, 1):
    content, reasoning, calls = "", "", []
    for channel, recipient, body, is_whole in taken_apart(text):
        if recipient and recipient.startswith("functions."):
            # A call whose JSON is whole is complete, whatever follows.
            complete = is_whole or whole_json(body)
            calls.append([recipient.removeprefix("functions."), *([json.loads(body)] if complete else [body, False])])
        elif channel == "analysis" or (recipient or "").split(".")[0] in ("python", "browser", "container"):
            reasoning += body
        else:
            content += body
    row = {"id": f"openai-harmony-{number}", "p": "harmony", "in": text, "content": content, "reasoning": reasoning}
    print(json.dumps({**row, "calls": calls}, ensure_ascii=False))
