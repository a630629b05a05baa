"""Conversations and tools for make_encoders.py: by hand, and at random from a seed."""
import json

PROMPTS = ["deepseek_v32", "deepseek_v4", "deepseek_v4_0731", "deepseek_v41", "kimi_k3", "harmony"]


def tool(name, properties=None, required=None, description=None, **more):
    parameters = {"type": "object", "properties": properties or {}, **more}
    if required is not None:
        parameters["required"] = required
    function = {"name": name, "parameters": parameters}
    if description is not None:
        function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


WEATHER = tool("get_weather", {
    "city": {"type": "string", "description": "Name of the city, e.g. \"Zürich\" or '東京'"},
    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}}, ["city"], "Get the current weather.")
TIME = tool("get_time", {"place": {"type": "string"}}, ["place"], "Local time of a place.\nSecond line.")
NUMBERS = tool("numbers", {"a": {"type": "number", "default": 1.0, "minimum": 0.5}, "b": {"type": "integer", "default": 12345678901234567890},
               "z": {"type": ["string", "null"]}, "10": {"type": "boolean", "default": True}, "2": {"type": "array", "items": {"type": "integer"}}},
               strict=True, additionalProperties=False)
TOOLS = [WEATHER, TIME]


def u(content, **more):
    return {"role": "user", "content": content, **more}


def s(content, **more):
    return {"role": "system", "content": content, **more}


def d(content, **more):
    return {"role": "developer", "content": content, **more}


def a(content="", reasoning=None, calls=None, **more):
    message = {"role": "assistant", "content": content, **more}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if calls is not None:
        message["tool_calls"] = [
            {"id": c[2] if len(c) > 2 else f"call_{i}", "type": "function", "function": {"name": c[0], "arguments": c[1]}}
            for i, c in enumerate(calls)]
    return message


def t(content, id="call_0", **more):
    return {"role": "tool", "content": content, "tool_call_id": id, **more}


W = ("get_weather", '{"city": "Paris", "unit": "celsius"}')
ONE = [u("Weather?"), a("", "look", [W]), t("sunny")]
TWO = [u("Both?"), a("I'll look.", "two calls", [("get_weather", '{"city": "Paris"}', "x1"), ("get_time", '{"place": "Rome"}', "x2")])]
HARD = '{"s": "a\\"b\\n<tag> 東京 🙂", "n": 1.0, "big": 12345678901234567890, "e": 1e-7, "t": true, "z": null, "l": [1, "x", {"k": 2.50}], "o": {"b": 1, "a": 2}, "10": 1, "2": ""}'

ON, OFF = {"thinking": True}, {"thinking": False}
# name, messages, tools, kwargs, and the encoders that it is for (None: all)
CASES = [
    ("user", [u("Hi")], None, {}, None),
    ("user thinking", [u("Hi")], None, ON, None),
    ("user not thinking", [u("Hi")], None, OFF, None),
    ("enable_thinking", [u("Hi")], None, {"enable_thinking": True}, None),
    ("system and user", [s("Be brief."), u("Hi")], None, ON, None),
    ("empty contents", [s(""), u("")], None, ON, None),
    ("whitespace", [s("  a \n"), u("\n b\t")], None, {}, None),
    ("unicode", [u("東京 🙂 é\u0301 \u2028 \u00a0 \ufeff")], None, {}, None),
    ("markers", [u("<|end|> <｜User｜> <think> <|open|>x<|sep|> </｜DSML｜invoke>"), a("<|close|>"), u("x")], None, ON, None),
    ("two turns", [u("a"), a("b"), u("c")], None, {}, None),
    ("two turns, reasoning", [u("a"), a("b", "why"), u("c")], None, ON, None),
    ("two turns, reasoning kept", [u("a"), a("b", "why"), u("c")], None, {"thinking": True, "drop_thinking": False}, None),
    ("reasoning not thinking", [u("a"), a("b", "why"), u("c")], None, OFF, None),
    ("three turns", [s("S"), u("a"), a("b", "r1"), u("c"), a("d", "r2"), u("e")], None, ON, None),
    ("assistant last", [u("a"), a("b", "why")], None, ON, None),
    ("assistant last, plain", [u("a"), a("b")], None, {}, None),
    ("assistant last, no reasoning", [u("a"), a("b")], None, ON, None),
    ("assistant first", [a("Welcome"), u("a")], None, {}, None),
    ("assistant without content", [u("a"), a(None, "r", [W]), t("x")], TOOLS, ON, None),
    ("two users", [u("a"), u("b")], None, ON, None),
    ("two systems", [s("A"), s("B"), u("c")], None, ON, None),
    ("system later", [u("a"), a("b"), s("Now French."), u("c")], None, ON, None),
    ("system last", [u("a"), a("b"), s("Now French.")], None, ON, None),
    ("system alone", [s("A")], None, ON, None),
    ("developer", [d("Do it."), u("go")], None, {}, None),
    ("developer thinking", [d("Do it."), u("go")], None, ON, None),
    ("developer last", [s("A"), d("Do it.")], None, ON, None),
    ("developer with tools", [d("Do it."), u("go")], TOOLS, ON, None),
    ("system and developer", [s("A"), d("B"), u("c"), a("d"), u("e")], None, ON, None),
    ("tools", [u("Weather?")], TOOLS, {}, None),
    ("tools thinking", [u("Weather?")], TOOLS, ON, None),
    ("tools and system", [s("Be brief."), u("Weather?")], TOOLS, ON, None),
    ("tools, hard numbers", [u("x")], [NUMBERS], {}, None),
    ("tool round", ONE, TOOLS, {}, None),
    ("tool round thinking", ONE, TOOLS, ON, None),
    ("tool round, no tools now", ONE, None, ON, None),
    ("tool round and answer", ONE + [a("It is sunny.", "easy")], TOOLS, ON, None),
    ("tool round and next user", ONE + [a("It is sunny.", "easy"), u("And now?")], TOOLS, ON, None),
    ("tool round and next user, no tools now", ONE + [a("It is sunny.", "easy"), u("And now?")], None, ON, None),
    ("tool round interrupted", ONE + [u("And now?")], TOOLS, ON, None),
    ("two rounds", ONE + [a("", "more", [("get_time", '{"place": "Paris"}', "c9")]), t("noon", "c9")], TOOLS, ON, None),
    ("two calls", TWO + [t("sunny", "x1"), t("noon", "x2")], TOOLS, ON, None),
    ("two calls, results swapped", TWO + [t("noon", "x2"), t("sunny", "x1")], TOOLS, ON, None),
    ("two calls, one unknown id", TWO + [t("noon", "x2"), t("sunny", "nope", name="get_weather")], TOOLS, ON, None),
    ("two calls, one result", TWO + [t("sunny", "x1")], TOOLS, ON, None),
    ("results and user text", TWO + [t("noon", "x2"), u("wait"), t("sunny", "x1")], TOOLS, ON, ["deepseek_v4", "deepseek_v4_0731", "deepseek_v41", "kimi_k3", "harmony"]),
    ("call with hard arguments", [u("x"), a("", "r", [("numbers", HARD)]), t('{"ok": 1.0}')], [NUMBERS], ON, None),
    ("call without arguments", [u("x"), a("", "r", [("get_time", "{}")]), t("")], TOOLS, ON, None),
    ("call with arguments as object", [u("x"), a("", "r", [("get_time", {"place": "Rome", "n": 1.5})]), t("y")], TOOLS, ON,
     ["deepseek_v32", "deepseek_v4_0731", "deepseek_v41", "kimi_k3", "harmony"]),
    ("call with damaged arguments", [u("x"), a("", "r", [("get_time", '{"place": ')]), t("y")], TOOLS, ON, ["deepseek_v32", "deepseek_v4", "kimi_k3", "harmony"]),
    ("call with empty arguments", [u("x"), a("", "r", [("get_time", "")]), t("y")], TOOLS, ON, ["deepseek_v4", "kimi_k3", "harmony"]),
    ("call with a list as arguments", [u("x"), a("", "r", [("get_time", "[1]")]), t("y")], TOOLS, ON, ["deepseek_v32", "deepseek_v4", "kimi_k3", "harmony"]),
    ("call with content, no reasoning", [u("x"), a("Look:", None, [W]), t("y")], TOOLS, ON, None),
    ("result without call", [u("x"), t("y")], None, {}, ["deepseek_v32", "kimi_k3", "harmony"]),
    ("result without call, answered", [u("x"), a("b"), t("y")], None, {}, ["deepseek_v32", "kimi_k3", "harmony"]),
    ("more results than calls", ONE + [t("z", "call_7")], TOOLS, {}, ["deepseek_v32", "kimi_k3"]),
    ("result by name", [u("x"), a("", None, [W]), {"role": "tool", "name": "get_weather", "content": "y"}], TOOLS, {}, None),
    ("unknown role", [u("x"), {"role": "critic", "content": "y"}], None, {}, [e for e in PROMPTS if e != "kimi_k3"]),
    ("developer without content", [d(""), u("x")], None, {}, [e for e in PROMPTS if e.startswith("deepseek")]),
    ("content parts", [u([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])], None, {}, None),
    ("result parts", ONE[:2] + [t([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])], TOOLS, {}, None),
    ("image", [u([{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "data:x"}}, {"type": "text", "text": "!"}])], None, {}, ["deepseek_v41", "kimi_k3"]),
    ("image token in text", [u("<｜deepseek_image｜>")], None, {}, ["deepseek_v41"]),
    ("response_format of a message", [s("A", response_format={"type": "object", "properties": {"a": {"type": "number"}}}), u("x")], TOOLS, ON, [e for e in PROMPTS if e.startswith("deepseek")]),
    ("tools of a message", [s("A", tools=TOOLS), u("x"), a("y", "r"), u("z")], None, ON, [e for e in PROMPTS if e != "harmony"]),
    ("tools of a later message", [u("x"), s("", tools=[TIME]), u("z")], [WEATHER], ON, ["deepseek_v4", "deepseek_v4_0731", "deepseek_v41", "kimi_k3"]),
    ("tools of a developer", [s("A"), d("B", tools=TOOLS), u("x")], None, ON, [e for e in PROMPTS if e.startswith("deepseek")]),
    ("name of a user", [u("x", name="a \"b\" & c"), a("y", name="bot")], None, {}, ["kimi_k3"]),
]
CASES += [(f"effort {effort}", [s("A"), u("x"), a("y"), u("z")], None, {"thinking": True, "reasoning_effort": effort},
           ["deepseek_v4", "deepseek_v4_0731", "deepseek_v41", "kimi_k3", "harmony"]) for effort in ["high", "max", "extreme"]]
CASES += [(f"effort {effort}, tools", [u("x")], TOOLS, {"thinking": True, "reasoning_effort": effort},
           ["deepseek_v4", "deepseek_v4_0731", "deepseek_v41", "kimi_k3"]) for effort in ["high", "max"]]
CASES += [("effort low", [u("x")], None, {"thinking": True, "reasoning_effort": "low"}, ["deepseek_v4_0731", "deepseek_v41", "kimi_k3", "harmony"]),
          ("effort medium", [u("x")], None, {"reasoning_effort": "medium"}, ["harmony"]),
          ("effort xhigh", [u("x")], None, {"reasoning_effort": "xhigh"}, ["deepseek_v41"]),
          ("effort max, not thinking", [u("x")], None, {"thinking": False, "reasoning_effort": "max"}, ["deepseek_v4", "deepseek_v41", "kimi_k3"]),
          ("thinking_effort", [u("x")], None, {"thinking_effort": "low"}, ["kimi_k3"]),
          ("thinking_effort medium", [u("x")], None, {"thinking_effort": "medium"}, ["kimi_k3"])]
CASES += [(f"effort {n}", [u("x")], None, {"thinking": True, "reasoning_effort": n}, ["deepseek_v41"]) for n in [1, 42, 100, 0, 101]]
CASES += [(f"task {task}", [s("A"), u("x", task=task), a("y"), u("z", task=task)], None, {**kw}, ["deepseek_v4", "deepseek_v4_0731", "deepseek_v41"])
          for task in ["action", "query", "authority", "domain", "title", "read_url", "other"] for kw in [ON, OFF]]
CASES += [("latest reminder", [u("x"), {"role": "latest_reminder", "content": "2026-03-05"}, a("y", "r"), u("z"), {"role": "latest_reminder", "content": "t"}], None, ON, ["deepseek_v4", "deepseek_v4_0731", "deepseek_v41"]),
          ("wo_eos", [u("x"), a("y", "r", wo_eos=True), u("z")], None, OFF, ["deepseek_v4", "deepseek_v4_0731", "deepseek_v41"])]
CASES += [(f"tool_choice {choice}", [u("x")], TOOLS, {"tool_choice": choice}, ["kimi_k3"]) for choice in ["auto", "required", "none"]]
SCHEMA = {"type": "object", "required": ["b"], "properties": {"b": {"type": "number", "minimum": 1.0}, "a": {"type": "string"}}}
CASES += [(f"response_format {i}", [u("x")], None, {"response_format": f}, ["kimi_k3"]) for i, f in enumerate([
    {"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}},
    {"type": "json_schema", "json_schema": SCHEMA}, {"type": "json_schema"}, "json_object"])]
CASES += [("identity", [u("x")], None, {"model_identity": "You are Collie."}, ["harmony"])]

TEXTS = ["a", "Hello, world", "", " padded ", "two\nlines\n", "東京", "🙂", "<think>", "</think>", "<|end|>", "x" * 40]
VALUES = ["s", "", 1, 1.0, -0.0, 1e22, 12345678901234567890, True, None, [1, "a", []], {"b": 1, "a": {"c": 2.5}}, "multi\nline"]


def random_case(rng):
    """A conversation, mostly of the usual order."""
    messages, ids = [], 0
    if rng.random() < 0.5:
        messages.append(s(rng.choice(TEXTS)))
    for _ in range(rng.randint(1, 4)):
        for _ in range(rng.choice([1, 1, 1, 2])):
            messages.append(u(rng.choice(TEXTS)))
        while rng.random() < 0.35:
            calls = []
            for _ in range(rng.choice([1, 1, 2, 3])):
                ids += 1
                arguments = {rng.choice("abcdefg12"): rng.choice(VALUES) for _ in range(rng.randint(0, 3))}
                calls.append((rng.choice(["f", "get_weather", "g-1"]), json.dumps(arguments, ensure_ascii=rng.random() < 0.5), f"id{ids}"))
            messages.append(a(rng.choice(["", "", "Look."]), rng.choice([None, "because", "r\n"]), calls))
            results = [t(rng.choice(TEXTS), c[2]) for c in calls]
            if rng.random() < 0.4:
                rng.shuffle(results)
            messages += results
        if rng.random() < 0.8:
            messages.append(a(rng.choice(TEXTS[:2] + TEXTS[3:]), rng.choice([None, "because", " "])))
        if rng.random() < 0.1:
            messages.append(s(rng.choice(TEXTS)))
    if rng.random() < 0.5:
        messages.append(u("last"))
    kwargs = rng.choice([{}, ON, ON, OFF, {"enable_thinking": True}, {"thinking": True, "drop_thinking": False}])
    return messages, rng.choice([None, TOOLS, [NUMBERS]]), kwargs


def random_schema(rng, depth, defs):
    kind = rng.random()
    more = {}
    if rng.random() < 0.4:
        more["description"] = rng.choice(["one line", "two\nlines", "", "ünï\n\nend", "null"])
    if rng.random() < 0.25:
        more["default"] = rng.choice(VALUES)
    if rng.random() < 0.1:
        more["title"] = "A title"
    if rng.random() < 0.1:
        more["examples"] = ["x", 1, "y"]
    if rng.random() < 0.1:
        more["nullable"] = rng.choice([True, False])
    if kind < 0.2 and depth > 0:
        schema = {"type": "object", "properties": {rng.choice(["a", "b", "Z", "_x", "10", "2", "é"]): random_schema(rng, depth - 1, defs) for _ in range(rng.randint(0, 3))}}
        if rng.random() < 0.5:
            schema["required"] = rng.sample(list(schema["properties"]), rng.randint(0, len(schema["properties"])))
        if rng.random() < 0.3:
            schema["additionalProperties"] = rng.choice([True, False, {"type": "number"}, {}, None, "odd"])
    elif kind < 0.35 and depth > 0:
        schema = {"type": "array"}
        if rng.random() < 0.8:
            schema["items"] = random_schema(rng, depth - 1, defs)
        if rng.random() < 0.4:
            schema.update({"minItems": 1, "maxItems": rng.choice([5, 2.5])})
    elif kind < 0.42 and depth > 0:
        schema = {rng.choice(["anyOf", "anyOf", "oneOf"]): [random_schema(rng, depth - 1, defs) for _ in range(rng.randint(1, 3))]}
    elif kind < 0.5:
        schema = {"type": rng.choice([["string", "null"], ["integer", "boolean"], ["array", "object", "null"], ["odd"], []])}
    elif kind < 0.62:
        schema = {"type": "string", "enum": rng.choice([["a", "b"], ["x \"q\""], [], ["a", None], ["a", 1]])}
    elif kind < 0.68:
        schema = {"enum": rng.choice([["a", 1, 2.0, True, None], [1, 2]]), **rng.choice([{}, {"type": "integer"}, {"type": ["string", "null"]}, {"type": "number"}])}
    elif kind < 0.76:
        schema = {"$ref": rng.choice(["#/$defs/A", "#/$defs/A", "#/$defs/B", "#", "#/$defs/None", "http://x"])} if defs else {}
    elif kind < 0.86:
        schema = {"type": rng.choice(["number", "integer"]), **rng.choice([{}, {"minimum": 0, "maximum": 1.5}, {"maximum": 10}])}
    elif kind < 0.9:
        return rng.choice([True, False, {}, {"type": "null"}, {"type": "boolean"}])
    else:
        schema = {"type": "string", **rng.choice([{}, {"minLength": 1}, {"pattern": "^a$", "maxLength": 9, "minLength": 2}, {"format": "date"}])}
    return {**schema, **more}


def random_tools(rng):
    tools = []
    for i in range(rng.randint(1, 2)):
        defs = rng.random() < 0.4
        parameters = {"type": "object", "properties": {k: random_schema(rng, 2, defs) for k in rng.sample(["city", "Unit", "n", "10", "9", "ä", "list"], rng.randint(0, 3))}}
        if defs:
            parameters["$defs"] = {"B": random_schema(rng, 1, False) if rng.random() < 0.3 else {"type": "object", "properties": {"x": {"type": "string"}}},
                                   "A": {"type": "object", "description": "The A.", "properties": {"b": {"$ref": "#/$defs/B"}}}}
        if rng.random() < 0.5:
            parameters["required"] = rng.sample(list(parameters["properties"]), rng.randint(0, len(parameters["properties"])))
        function = {"name": f"f{i}", "parameters": parameters}
        if rng.random() < 0.7:
            function["description"] = rng.choice(["Does it.", "Two\nlines", "Ends\n", "", "crlf\r\nline\r\n"])
        if rng.random() < 0.06:
            function["parameters"] = rng.choice([None, {}, {"type": "object"}])
        tools.append({"type": "function", "function": function})
    if rng.random() < 0.1:
        tools.append({"type": "_plugin", "name": "p"})
    return tools
