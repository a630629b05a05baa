"""Writes sglang-samples.jsonl: what SGLang's detectors find in answers of families that are new there and here.

    pip install pydantic orjson partial_json_parser; pip download --no-deps sglang==0.5.23; unzip the wheel to DIR
    python make_sglang.py DIR > sglang-samples.jsonl

Only sglang/srt/function_call of the wheel runs; the two modules around it that need the whole engine are stood in for.
"""

import json
import sys
import types
from pathlib import Path

sys.path.insert(0, sys.argv[1])


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    if name.count(".") < 3:
        made.__path__ = [str(Path(sys.argv[1], *name.split(".")))]
    sys.modules[name] = made


class Flag:
    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value


class Flags:
    # Calls of tools that were not declared are passed on, as they are here.
    SGLANG_FORWARD_UNKNOWN_TOOLS = Flag(True)

    def __getattr__(self, name):
        return Flag(False)


class Any_:
    def __init__(self, *args, **members):
        self.__dict__.update(members)


for name in ("sglang", "sglang.srt", "sglang.srt.function_call", "sglang.srt.entrypoints", "sglang.srt.entrypoints.openai"):
    module(name)
names = ("Tool", "ToolChoice", "ToolCallConstraint", "StructuralTagResponseFormat", "LegacyStructuralTagResponseFormat")
module("sglang.srt.entrypoints.openai.protocol", **{name: Any_ for name in names})
module("sglang.srt.environ", envs=Flags(), ToolStrictLevel=Any_)

from sglang.srt.function_call.apertus2509_detector import Apertus2509Detector
from sglang.srt.function_call.gigachat3_detector import GigaChat3Detector
from sglang.srt.function_call.gigachat35_detector import GigaChat35Detector
from sglang.srt.function_call.hunyuan_detector import HunyuanDetector
from sglang.srt.function_call.minimax_m3 import MinimaxM3Detector

here = Path(__file__).parent
tools = [
    Any_(type="function", function=Any_(strict=False, description="", **tool["function"]))
    for tool in json.loads((here / "tools.json").read_text())
]

NS = "]<]minimax[>["


def m3(*invokes):
    return f"{NS}<tool_call>\n" + "".join(f"{NS}{invoke}{NS}</invoke>\n" for invoke in invokes) + f"{NS}</tool_call>"


def m3_tag(name, body):
    return f"{NS}<{name}>{body}{NS}</{name}>"


def hy(*calls):
    return "<tool_calls>\n" + "".join(f"<tool_call>{call}</tool_call>\n" for call in calls) + "</tool_calls>"


def hy_arg(key, value):
    return f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"


def gcml(*invokes):
    return "<｜GCML｜tool_calls>\n" + "".join(invokes) + "</｜GCML｜tool_calls>"


def invoke(name, *parameters):
    return f'<｜GCML｜invoke name="{name}">\n' + "".join(parameters) + "</｜GCML｜invoke>\n"


def parameter(name, value, string="true"):
    return f'<｜GCML｜parameter name="{name}" string="{string}">{value}</｜GCML｜parameter>\n'


def apertus(*calls):
    return "<|tools_prefix|>[" + ", ".join(calls) + "]<|tools_suffix|>"


CODE = 'if [ "$a" ]; then\n  echo "{}" # 東京 😀\nfi'
INPUTS = {
    "minimax_m3": (
        MinimaxM3Detector,
        [
            m3('<invoke name="ping">'),
            m3('<invoke name="get_weather">' + m3_tag("city", "Oslo") + m3_tag("days", "2")),
            "Let me see. " + m3('<invoke name="run">' + m3_tag("cmd", CODE)),
            m3('<invoke name="ping">', '<invoke name="run">' + m3_tag("cmd", "ls -l")),
            m3('<invoke name="run">' + m3_tag("cmd", "a")) + m3('<invoke name="run">' + m3_tag("cmd", "b")),
            m3('<invoke name="search">' + m3_tag("q", "42") + m3_tag("limit", "0")),
            m3('<invoke name="search">' + m3_tag("q", "null")),
            m3('<invoke name="search">' + m3_tag("q", "a <b>c</b> &lt; d")),
            m3('<invoke name="calc">' + m3_tag("flag", "true") + m3_tag("x", "1.5")),
            m3('<invoke name="calc">' + m3_tag("items", m3_tag("item", "a") + m3_tag("item", "b c"))),
            m3('<invoke name="calc">' + m3_tag("cfg", m3_tag("k", "v") + m3_tag("e", "}"))),
            m3('<invoke name="calc">' + m3_tag("cfg", m3_tag("k", m3_tag("d", "x")))),
            m3('<invoke name="calc">' + m3_tag("items", "") + m3_tag("cfg", "")),
            f"Markers are written {NS} there.",
            "No call at all: [1] {a}",
        ],
    ),
    "hy_v3": (
        HunyuanDetector,
        [
            hy("ping<tool_sep>\n"),
            "<tool_calls><tool_call>ping<tool_sep></tool_call></tool_calls>",
            hy("get_weather<tool_sep>\n" + hy_arg("city", "Oslo") + hy_arg("days", "2")),
            hy("get_weather<tool_sep>\n" + hy_arg("city", "Oslo") + hy_arg("days", "2")).replace("\n", ""),
            "Checking." + hy("run<tool_sep>\n" + hy_arg("cmd", "ls -l")),
            hy("run<tool_sep>\n" + hy_arg("cmd", CODE)),
            hy("ping<tool_sep>\n", "run<tool_sep>\n" + hy_arg("cmd", "b")),
            hy("run<tool_sep>\n" + hy_arg("cmd", "a"), "run<tool_sep>\n" + hy_arg("cmd", "b")),
            hy("search<tool_sep>\n" + hy_arg("q", "42") + hy_arg("limit", "0")),
            hy("search<tool_sep>\n" + hy_arg("q", '{"key":"v"}')),
            hy("calc<tool_sep>\n" + hy_arg("x", "-1.5") + hy_arg("flag", "true")),
            hy("calc<tool_sep>\n" + hy_arg("items", '[1, "a ] b", null]') + hy_arg("cfg", '{"k": {"d": [{}]}}')),
            "A plain answer about <tool_call> tags.",
        ],
    ),
    "gigachat3": (
        GigaChat3Detector,
        [
            'function call<|role_sep|>\n{"name": "ping", "arguments": {}}',
            '<|function_call|>{"name": "ping", "arguments": {}}',
            'Сейчас.<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "run", "arguments": {"cmd": "ls"}}',
            'Сейчас.<|function_call|>{"name": "run", "arguments": {"cmd": "ls"}}',
            'function call<|role_sep|>\n{"name": "get_weather", "arguments": {"city": "Москва", "days": 2}}',
            'function call<|role_sep|>\n' + json.dumps({"name": "run", "arguments": {"cmd": CODE}}),
            '<|function_call|>' + json.dumps({"name": "run", "arguments": {"cmd": CODE}}, ensure_ascii=False),
            '<|function_call|>{"name": "search", "arguments": {"q": "42", "limit": 0}}',
            '<|function_call|>{"name": "calc", "arguments": {"items": [1, "a ] b", null], "cfg": {"k": {"d": [{}]}}}}',
            '<|function_call|>\n{ "name" : "calc" , "arguments" : { "x" : -1.5 } }\n',
            '<|function_call|>{"name": "mcp-run", "arguments": {"cmd": "a } b"}}',
            "A function call is a thing.",
            'The JSON {"name": "ping", "arguments": {}} is text.',
        ],
    ),
    "gigachat35": (
        GigaChat35Detector,
        [
            gcml(invoke("ping")),
            gcml(invoke("get_weather", parameter("city", "Oslo"), parameter("days", "2", "false"))),
            "Сейчас." + gcml(invoke("run", parameter("cmd", "ls -l"))),
            gcml(invoke("run", parameter("cmd", CODE))),
            gcml(invoke("ping"), invoke("run", parameter("cmd", "b"))),
            gcml(invoke("run", parameter("cmd", "a")), invoke("run", parameter("cmd", "b"))),
            gcml(invoke("search", parameter("q", "42"), parameter("limit", "0", "false"))),
            gcml(invoke("search", parameter("q", '{"key":"v"}'))),
            gcml(invoke("calc", parameter("flag", "true", "false"), parameter("x", "-1.5", "false"))),
            gcml(invoke("calc", parameter("items", '[1, "a ] b", null]', "false"))),
            gcml(invoke("calc", parameter("cfg", '{"k": {"d": [{}]}}', "false"))),
            gcml(invoke("mcp-run", parameter("cmd", "a <b>c</b>"))),
            "No call at all.",
        ],
    ),
    "apertus": (
        Apertus2509Detector,
        [
            apertus('{"ping": {}}'),
            apertus('{"get_weather": {"city": "Zürich", "days": 2}}'),
            "I will check." + apertus('{"run": {"cmd": "ls"}}'),
            "I will check." + apertus('{"run": {"cmd": "ls"}}') + "Done.",
            apertus(json.dumps({"run": {"cmd": CODE}})),
            apertus(json.dumps({"run": {"cmd": CODE}}, ensure_ascii=False)),
            apertus('{"ping": {}}', '{"run": {"cmd": "b"}}'),
            apertus('{"run": {"cmd": "a"}}', '{"run": {"cmd": "b"}}'),
            apertus('{"search": {"q": "42", "limit": 0}}'),
            apertus('{"calc": {"items": [1, "a ] b", null], "cfg": {"k": {"d": [{}]}}}}'),
            apertus('{"mcp-run": {"cmd": "}]"}}'),
            apertus('{"calc": {"x": -1.5, "flag": true}}'),
            "A list [1] and {a: 1}.",
        ],
    ),
}

for parser, (detector, inputs) in INPUTS.items():
    for number, text in enumerate(inputs, 1):
        found = detector().detect_and_parse(text, tools)
        calls = [[call.name, json.loads(call.parameters)] for call in found.calls]
        # Without a message before it, GigaChat's call is also given out as content, markup and all: a flaw.
        content = "" if parser == "gigachat3" and calls and found.normal_text.strip() == text.strip() else found.normal_text
        row = {"id": f"sglang-{number}", "p": parser, "in": text, "content": content, "calls": calls}
        print(json.dumps(row, ensure_ascii=False))
