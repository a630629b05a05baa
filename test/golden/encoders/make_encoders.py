"""Golden prompts of the native encoders, and golden tool texts, made by the models' published encoders.

Run:  pip install openai-harmony==0.0.8
      python make_encoders.py --deepseek_v32 FILE --deepseek_v4 FILE --deepseek_v4_0731 FILE --deepseek_v41 FILE
                              --kimi_k3 FILE --kimi_tools FILE [--out encoders.jsonl.gz]
openai-harmony needs o200k_base.tiktoken: it loads it from the network, or from the folder TIKTOKEN_ENCODINGS_BASE.

The files, public copies of what the models' repositories hold (SHA-256 of what was used: first row of the output):
  deepseek_v32      encoding_dsv32.py, as in the package sglang 0.5.23
  deepseek_v4       encoding_dsv4.py of the first release, as in sglang 0.5.13.post1
  deepseek_v4_0731  encoding_dsv4.py with both releases' efforts (here: "official"), as in sglang 0.5.20
  deepseek_v41      encoding.py, as in sglang 0.5.22 (which adds developer messages and the effort xhigh)
  kimi_k3           encoding_k3.py of moonshotai/Kimi-K3 (transcribed: no package has it)
  kimi_tools        tool_declaration_ts.py of Kimi K2.5, as in the package tinker-cookbook 0.6.1

A row: encoder, case, messages, tools, kwargs (variables of the request), and text, or segments (kimi_k3: a text with a special token is
marked by a leading 1, others by 0), or error. What stands around the published encoder is done here and named in `prepare`.
encoder "kimi_tools", "harmony_tools": tools and the text that declares them; null where the published code fails.
"""
import argparse
import copy
import gzip
import hashlib
import importlib.util
import json
import os
import random
import sys

from encoder_cases import CASES, NUMBERS, PROMPTS, TOOLS, random_case, random_tools, tool, u

CLOCK = "2026-03-05T04:07:09"
HERE = os.path.dirname(os.path.abspath(__file__))


def load(path):
    spec = importlib.util.spec_from_file_location("encoder_" + hashlib.sha256(path.encode()).hexdigest()[:8], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def thinking_of(kwargs, default):
    for key in ("thinking", "enable_thinking"):
        if key in kwargs:
            return bool(kwargs[key])
    return default


def prepare(messages, tools, join=None):
    """Null content is empty text; tools belong to a leading system or developer message; `join` joins the parts of content."""
    messages = copy.deepcopy(messages)
    for message in messages:
        if message.get("content") is None:
            message["content"] = ""
        if join is not None and isinstance(message["content"], list):
            message["content"] = join.join(part["text"] for part in message["content"])
    if tools:
        if messages[0]["role"] not in ("system", "developer"):
            messages.insert(0, {"role": "system", "content": ""})
        messages[0]["tools"] = tools
    return messages


def deepseek_v32(module, messages, tools, kwargs):
    messages = prepare(messages, tools, "\n\n")
    declared = any(m["role"] in ("system", "developer") and m.get("tools") for m in messages)
    return module.encode_messages(messages, "thinking" if thinking_of(kwargs, False) else "chat",
                                  drop_thinking=kwargs.get("drop_thinking", True) and not declared)


def deepseek_v4(module, messages, tools, kwargs, default=False, join="\n\n", **more):
    return module.encode_messages(prepare(messages, tools, join), "thinking" if thinking_of(kwargs, default) else "chat",
                                  drop_thinking=kwargs.get("drop_thinking", True), reasoning_effort=kwargs.get("reasoning_effort"), **more)


def deepseek_v4_0731(module, messages, tools, kwargs):
    return deepseek_v4(module, messages, tools, kwargs, reasoning_effort_profile="official")


def deepseek_v41(module, messages, tools, kwargs):
    return deepseek_v4(module, messages, tools, kwargs, default=True, join=None)


def kimi_k3(module, messages, tools, kwargs):
    """The model's tokenizer adds the default effort; a developer message is one of the system."""
    kwargs = dict(kwargs)
    thinking = thinking_of(kwargs, True)
    effort = kwargs.pop("reasoning_effort", None)
    for key in ("thinking", "enable_thinking"):
        kwargs.pop(key, None)
    kwargs.setdefault("thinking_effort", effort or "max")
    messages = [{**m, "role": "system"} if m["role"] == "developer" else m for m in copy.deepcopy(messages)]
    return [str(int(g.allow_special)) + g.text for g in module.build_chat_segments(messages, tools, thinking=thinking, **kwargs)]


def harmony(module, messages, tools, kwargs):
    """Which messages of harmony a chat message becomes is decided here; the package renders them."""
    h = module
    system = h.SystemContent.new().with_conversation_start_date(CLOCK[:10])
    effort = kwargs.get("reasoning_effort", "medium")
    if effort == "max":
        effort = "high"
    system.with_reasoning_effort({"low": h.ReasoningEffort.LOW, "medium": h.ReasoningEffort.MEDIUM, "high": h.ReasoningEffort.HIGH}[effort])
    if "model_identity" in kwargs:
        system.with_model_identity(kwargs["model_identity"])
    out = [h.Message.from_role_and_content(h.Role.SYSTEM, system)]

    def developer(instructions, tools):
        content = h.DeveloperContent.new()
        if instructions:
            content.with_instructions(instructions)
        if tools:
            content.with_function_tools([h.ToolDescription.new(f["name"], f.get("description", ""), f.get("parameters")) for f in (x["function"] for x in tools)])
        if instructions or tools:
            out.append(h.Message.from_role_and_content(h.Role.DEVELOPER, content))

    messages = prepare(messages, None, "")
    first = messages[0]["role"] in ("system", "developer")
    developer(messages[0]["content"] if first else "", tools)
    names, last_calls = {}, []
    for m in messages[1:] if first else messages:
        role, content = m["role"], m["content"]
        if role in ("system", "developer"):
            developer(content, None)
        elif role == "user":
            out.append(h.Message.from_role_and_content(h.Role.USER, content))
        elif role == "tool":
            name = names.get(m.get("tool_call_id")) or m.get("name") or (last_calls[0] if len(last_calls) == 1 else None)
            out.append(h.Message.from_author_and_content(h.Author(role=h.Role.TOOL, name=name and "functions." + name), content).with_channel("commentary").with_recipient("assistant"))
        elif role == "assistant":
            calls = m.get("tool_calls") or []
            last_calls = [c["function"]["name"] for c in calls]
            if m.get("reasoning_content"):
                out.append(h.Message.from_role_and_content(h.Role.ASSISTANT, m["reasoning_content"]).with_channel("analysis"))
            if content:
                out.append(h.Message.from_role_and_content(h.Role.ASSISTANT, content).with_channel("commentary" if calls else "final"))
            for c in calls:
                names[c["id"]] = c["function"]["name"]
                given = c["function"]["arguments"]
                text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
                out.append(h.Message.from_role_and_content(h.Role.ASSISTANT, text).with_channel("commentary").with_recipient("functions." + c["function"]["name"]).with_content_type("<|constrain|>json"))
        else:
            raise ValueError(role)
    final = max((i for i, m in enumerate(out) if m.channel == "final"), default=-1)
    out = [m for i, m in enumerate(out) if m.channel != "analysis" or i > final]
    tokens = ENCODING.render_conversation_for_completion(h.Conversation.from_messages(out), h.Role.ASSISTANT, h.RenderConversationConfig(auto_drop_analysis=False))
    return ENCODING.decode_utf8(tokens)


def deep_sort(obj):
    if isinstance(obj, dict):
        return {k: deep_sort(v) for k, v in sorted(obj.items())}
    return [deep_sort(v) for v in obj] if isinstance(obj, list) else obj


def tools_rows(files, modules):
    rng = random.Random(7)
    sets = [("weather", TOOLS), ("numbers", [NUMBERS]), ("self", [tool("tree", {"child": {"$ref": "#"}, "name": {"type": "string"}}, ["name"], "A tree.")]),
            ("none", []), ("plugin", [{"type": "_plugin"}]), ("empty", [{"type": "function", "function": {}}])]
    sets += [(f"random {i}", random_tools(rng)) for i in range(300)]
    for name, tools in sets:
        try:
            text = modules["kimi_tools"].encode_tools_to_typescript_style(deep_sort(tools)) or None
        except Exception:
            text = None
        yield {"encoder": "kimi_tools", "case": name, "tools": tools, "text": text}
        functions = [x for x in tools if x.get("function")]
        if functions:
            prompt = harmony(modules["harmony"], [u("")], functions, {})
            yield {"encoder": "harmony_tools", "case": name, "tools": functions, "text": prompt.split("<|start|>developer<|message|>", 1)[1].split("<|end|><|start|>user", 1)[0]}


def prompt_rows(modules):
    for encoder in PROMPTS:
        rng = random.Random(encoder)
        cases = [c for c in CASES if c[4] is None or encoder in c[4]]
        cases += [(f"random {i}", *random_case(rng), None) for i in range(120)]
        for name, messages, tools, kwargs, _ in cases:
            row = {"encoder": encoder, "case": name, "messages": messages, **({"tools": tools} if tools else {}), "kwargs": kwargs}
            try:
                found = globals()[encoder](modules[encoder], copy.deepcopy(messages), copy.deepcopy(tools), kwargs)
                row["segments" if encoder == "kimi_k3" else "text"] = found
            except Exception as error:
                row["error"] = type(error).__name__
            yield row


def main():
    global ENCODING
    parser = argparse.ArgumentParser()
    names = [e for e in PROMPTS if e != "harmony"] + ["kimi_tools"]
    for name in names:
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--out", default=os.path.join(HERE, "encoders.jsonl.gz"))
    args = vars(parser.parse_args())
    import importlib.metadata
    import openai_harmony
    ENCODING = openai_harmony.load_harmony_encoding("HarmonyGptOss")
    modules = {name: load(args[name]) for name in names} | {"harmony": openai_harmony}
    sources = {name: hashlib.sha256(open(args[name], "rb").read()).hexdigest() for name in names}
    head = {"clock": CLOCK, "openai_harmony": importlib.metadata.version("openai-harmony"), "sha256": sources}
    rows = [head, *prompt_rows(modules), *tools_rows(args, modules)]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    with open(args["out"], "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(data)
    counts = {}
    for row in rows[1:]:
        key = (row["encoder"], "error" if "error" in row or row.get("text", 0) is None else "ok")
        counts[key] = counts.get(key, 0) + 1
    print(counts)


if __name__ == "__main__":
    main()
