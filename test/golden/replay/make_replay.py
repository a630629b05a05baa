"""Conversations with reasoning, calls and results, and the prompts that transformers makes of them.

Run:  pip install transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6
      python make_replay.py CONFIGS [replay.json]
CONFIGS: as for ../tools/make_requests.py, which also says what each family's template wants to be given.
"""
import copy
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import make_requests as requests

import transformers
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

TEMPLATES = {
    **{name: requests.TEMPLATES[name] for name in ["qwen3", "deepseek_v3", "mistral_like", "tools_in_user", "xml_tools", "declarations", "channels", "interleaved", "kimi_like"]},
    "compact": {"arguments": "object", "ids": "kimi", "parts": True},
    "think_prefix": {"arguments": "text", "null": True},
}

TOOLS = [
    {"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Its path."}, "limit": {"type": "number", "description": "Lines."}}, "required": ["path"]}}},
    {"type": "function", "function": {"name": "list", "description": "Lists a folder.", "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Its path."}}}}},
]


def user(content):
    return {"role": "user", "content": content}


def said(content, reasoning=None):
    return {"role": "assistant", "content": content, **({} if reasoning is None else {"reasoning_content": reasoning})}


def calls(*ids, reasoning=None, content=None):
    made = {
        "1": ("read", '{"path": "a.txt", "limit": 10}'),
        "2": ("list", '{"path": "src"}'),
        "3": ("read", '{"path": "ü\\"b.txt"}'),
    }
    message = said(content, reasoning)
    message["tool_calls"] = [{"id": "callid00" + i, "type": "function", "function": {"name": made[i][0], "arguments": made[i][1]}} for i in ids]
    return message


def result(i, content):
    return {"role": "tool", "tool_call_id": "callid00" + i, "content": content}


GO = user("What is in a.txt?")
CASES = {
    "answer": [GO, said("Text.", "The name says it.\nSo it is text."), user("Sure?")],
    "call": [GO, calls("1", reasoning="I should read it."), result("1", "hello")],
    "call with text": [GO, calls("1", reasoning="I should read it.", content="I read it."), result("1", "hello")],
    "two rounds": [GO, calls("1", reasoning="I should read it."), result("1", "none"), calls("2", reasoning="Where is it?"), result("2", "b.txt")],
    "three rounds, the second without thoughts": [GO, calls("1", reasoning="First."), result("1", "none"), calls("2"), result("2", "b.txt"), calls("3", reasoning="Third."), result("3", "hello")],
    "parallel": [GO, calls("1", "2", reasoning="Both at once."), result("1", "hello"), result("2", "b.txt")],
    "loop and answer": [GO, calls("1", reasoning="I should read it."), result("1", "hello"), said("It says hello.", "Now I know."), user("Thanks. And src?")],
    "second loop": [GO, calls("1", reasoning="I should read it."), result("1", "hello"), said("It says hello.", "Now I know."), user("And src?"), calls("2", reasoning="I list it."), result("2", "b.txt")],
    "no thoughts": [GO, calls("1"), result("1", "hello"), said("It says hello."), user("Thanks.")],
}


def main():
    configs, *out = sys.argv[1:]
    rows = []
    for name, family in TEMPLATES.items():
        requests.TEMPLATES[name] = family
        path = os.path.join(HERE, "..", "tools", name + ".jinja")
        if not os.path.exists(path):
            path = os.path.join(HERE, "..", "template", "chat_templates", name + ".jinja")
        if os.path.exists(path):
            template, specials = open(path, encoding="utf-8").read(), requests.SPECIALS
        else:
            config = json.load(open(os.path.join(configs, name + ".json"), encoding="utf-8"))
            template = config["chat_template"]
            word = lambda v: v["content"] if isinstance(v, dict) else v
            specials = {k: word(config[k]) for k in ("bos_token", "eos_token") if config.get(k)}
        tok = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **specials)
        tok.chat_template = template
        for case, messages in CASES.items():
            made = requests.expected_each(tok, name, {"messages": copy.deepcopy(messages), "tools": TOOLS})
            # for APIs in which a client says that the model is to think
            on = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
            thinking = requests.expected(tok, name, {"messages": copy.deepcopy(messages), "tools": TOOLS, **on})
            same = thinking == made or "error" in made
            rows.append({"template": name, "case": case, **made, **({} if same else {"thinking": thinking["text"]})})
    data = {"made_with": {"transformers": transformers.__version__, "specials": requests.SPECIALS}, "tools": TOOLS, "cases": CASES, "rows": rows}
    if out:
        open(out[0], "w", encoding="utf-8").write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    print(len(rows), "rows,", sum("error" in row for row in rows), "errors:")
    for row in rows:
        if "error" in row:
            print(row["template"], row["case"], row["error"][:100])
        elif not out:
            print(row["template"], "|", row["case"], "\n", row["text"], "\n")


main()
