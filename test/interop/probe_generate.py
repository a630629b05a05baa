"""The probes of Generate and Abort. Names are those of the records of the real engine."""

import json
import threading
import time

from smg_grpc_proto import vllm_engine_pb2 as pb

EOS = 151645
SECOND_EOS = 151643  # only in generation_config.json


def generate(p):
    seen = p.stream("Generate, not streaming", p.request())
    p.check("Generate, not streaming", "one Complete", seen.count == 1 and len(seen.completes) == 1)
    seen = p.stream("Generate, streaming", p.request(stream=True))
    p.check("Generate, streaming", "8 tokens in chunks", sum(len(c.token_ids) for c in seen.chunks) == 8)
    p.check(
        "Generate, streaming",
        "the Complete repeats the last chunk",
        list(seen.completes[0].output_ids) == list(seen.chunks[-1].token_ids),
    )
    two = {"logprobs": 2, "prompt_logprobs": 2, "max_tokens": 2}
    p.stream("Generate, logprobs 2, prompt_logprobs 2, not streaming", p.request(**two))
    p.stream("Generate, logprobs 2, prompt_logprobs 2, streaming", p.request(stream=True, **two))
    p.stream("Generate, logprobs 0, streaming", p.request(logprobs=0, max_tokens=2, stream=True))
    p.stream(
        "Generate, logprobs 2 with temperature 1.0, seed 1",
        p.request(logprobs=2, max_tokens=2, temperature=1.0, seed=1),
    )
    p.stream("Generate, logprobs 21 (over the default limit of 20)", p.request(logprobs=21))
    p.stream("Generate, logprobs -1", p.request(logprobs=-1, max_tokens=1))
    ids = [p.stream(None, p.request(temperature=1.0, seed=7)).output_ids() for _ in range(2)]
    p.check("Generate, same seed twice", "equal", ids[0] == ids[1] and ids[0])


def stops(p):
    force, force_second = {EOS: 100.0}, {SECOND_EOS: 100.0}
    seen = p.stream("stop, EOS forced by logit_bias", p.request(stream=True, logit_bias=force))
    p.check("stop, EOS forced by logit_bias", "EOS is in the ids", seen.chunks[-1].token_ids[-1] == EOS)
    p.stream("stop, EOS forced, not streaming", p.request(logit_bias=force))
    p.stream("stop, second EOS (only in generation_config.json) forced", p.request(logit_bias=force_second))
    p.stream("stop, EOS forced, min_tokens 3", p.request(logit_bias=force, min_tokens=3))
    p.stream("stop, EOS forced, ignore_eos", p.request(logit_bias=force, ignore_eos=True, max_tokens=3))
    p.stream("stop, second EOS forced, ignore_eos", p.request(logit_bias=force_second, ignore_eos=True, max_tokens=3))
    p.stream("stop, EOS also in stop_token_ids", p.request(logit_bias=force, stop_token_ids=[EOS]))
    greedy = p.stream(None, p.request(max_tokens=24)).output_ids()
    at = next((i for i in range(3, len(greedy)) if greedy[i] not in greedy[:i]), 3)
    for stream in (False, True):
        name = f"stop, stop_token_ids, {'streaming' if stream else 'not streaming'}"
        seen = p.stream(name, p.request(max_tokens=24, stop_token_ids=[greedy[at]], stream=stream))
        p.check(name, "matched_token_id", seen.completes[0].matched_token_id == greedy[at])
        p.check(name, "the token is kept", seen.completes[0].output_ids[-1] == greedy[at])
    p.stream("stop, string that never comes, streaming", p.request(max_tokens=4, stop=["\u2603never"], stream=True))
    p.stream("stop, empty string", p.request(stop=[""]))


def samples(p):
    for stream in (False, True):
        name = f"n = 2, {'streaming' if stream else 'not streaming'}"
        seen = p.stream(name, p.request(n=2, temperature=1.0, seed=5, max_tokens=4, stream=stream))
        p.check(name, "Completes for 0 and 1", sorted(c.index for c in seen.completes) == [0, 1])
    p.stream("n = 2, temperature 0", p.request(n=2, temperature=0.0, max_tokens=2))


def constraints(p):
    schema = json.dumps(
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Paris", "Rome"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 9},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        }
    )
    tag = json.dumps(
        {
            "type": "structural_tag",
            "format": {
                "type": "tag",
                "begin": "<tool_call>",
                "content": {
                    "type": "json_schema",
                    "json_schema": {
                        "type": "object",
                        "properties": {"a": {"type": "boolean"}},
                        "required": ["a"],
                        "additionalProperties": False,
                    },
                },
                "end": "</tool_call>",
            },
        }
    )
    legacy = json.dumps(
        {
            "type": "structural_tag",
            "structures": [{"begin": "<f>", "schema": {"type": "object"}, "end": "</f>"}],
            "triggers": ["<f>"],
        }
    )
    cases = [
        ("json_schema", {"json_schema": schema}),
        ("json_schema, streaming", {"json_schema": schema, "stream": True}),
        ("regex", {"regex": r"(red|green) [0-9]{3}"}),
        ("grammar (EBNF)", {"grammar": 'root ::= "yes" | "no"'}),
        ("grammar (Lark)", {"grammar": 'start: "yes" | "no"'}),
        ("structural_tag", {"structural_tag": tag}),
        ("structural_tag, older form", {"structural_tag": legacy, "max_tokens": 4}),
        ("json_object true", {"json_object": True, "max_tokens": 40}),
        ("json_object false", {"json_object": False, "max_tokens": 4}),
        ("choice", {"choice": pb.ChoiceConstraint(choices=["left", "right"])}),
        ("choice, empty", {"choice": pb.ChoiceConstraint()}),
        ("json_schema invalid", {"json_schema": "{not json"}),
        ("json_schema unsatisfiable type", {"json_schema": '{"type":"nonsense"}'}),
        ("json_schema empty string", {"json_schema": ""}),
        ("regex invalid", {"regex": "(unclosed"}),
        ("regex empty", {"regex": ""}),
        ("grammar invalid", {"grammar": "root ::= ["}),
        ("structural_tag invalid", {"structural_tag": "{}"}),
    ]
    for name, sampling in cases:
        p.stream(f"constraint {name}", p.request(**{"max_tokens": 60, "temperature": 1.0, "seed": 3, **sampling}))


def edges(p, limit):
    cases = [
        ("empty input_ids", p.request(ids=[])),
        (
            "no input at all",
            pb.GenerateRequest(request_id="probe-none", sampling_params=pb.SamplingParams(max_tokens=2)),
        ),
        (
            "text input",
            pb.GenerateRequest(
                request_id="probe-text",
                text="Hello there",
                sampling_params=pb.SamplingParams(temperature=0, max_tokens=2),
            ),
        ),
        ("token id past the vocabulary", p.request(ids=[5, 4000000])),
        ("token id between tokenizer and vocabulary size", p.request(ids=[151900, 151901], max_tokens=2)),
        ("prompt longer than the context", p.request(ids=[100] * (limit + 1))),
        ("prompt as long as the context", p.request(ids=[100] * limit)),
        ("prompt one short of the context, max_tokens 5", p.request(ids=[100] * (limit - 1), max_tokens=5)),
        ("max_tokens absent, 4 tokens left", p.request(ids=[100] * (limit - 4), max_tokens=None)),
        ("max_tokens 0", p.request(max_tokens=0)),
        ("temperature -1", p.request(temperature=-1.0)),
        ("temperature 3", p.request(temperature=3.0, max_tokens=2)),
        ("top_p 1.5", p.request(top_p=1.5)),
        ("top_p 0 (read as 1)", p.request(top_p=0.0, max_tokens=2)),
        ("min_p 2", p.request(min_p=2.0)),
        ("frequency_penalty 5", p.request(frequency_penalty=5.0)),
        ("repetition_penalty -1", p.request(repetition_penalty=-1.0)),
        ("n 0 (read as 1)", p.request(n=0, max_tokens=2)),
        ("min_tokens over max_tokens", p.request(min_tokens=9, max_tokens=3)),
        ("seed -1", p.request(seed=-1, temperature=1.0, max_tokens=2)),
        ("logit_bias for an id past the vocabulary", p.request(logit_bias={4000000: 1.0}, max_tokens=2)),
        ("stop_token_ids past the vocabulary", p.request(stop_token_ids=[4000000], max_tokens=2)),
        ("truncate_prompt_tokens 4", p.request(ids=[100] * 20, truncate_prompt_tokens=4, max_tokens=2)),
        ("data_parallel_rank 3 on one rank", with_fields(p.request(max_tokens=2), data_parallel_rank=3)),
        ("data_parallel_rank 0", with_fields(p.request(max_tokens=2), data_parallel_rank=0)),
        ("kv_transfer_params_json not an object", with_fields(p.request(max_tokens=2), kv_transfer_params_json="[1]")),
        (
            "kv_transfer_params_json object, no connector",
            with_fields(p.request(max_tokens=2), kv_transfer_params_json='{"do_remote_decode":true}'),
        ),
        ("request_id empty", with_fields(p.request(max_tokens=2), request_id="")),
    ]
    for name, request in cases:
        p.stream(f"edge, {name}", request, timeout=60)


def aborts(p):
    long = {"max_tokens": 4000, "ignore_eos": True}
    for stream in (True, False):
        name, rid = f"abort by RPC, {'streaming' if stream else 'not streaming'}", f"probe-abort-{stream}"
        timer = threading.Timer(0.3, lambda: p.stub.Abort(pb.AbortRequest(request_ids=[rid]), timeout=10))
        timer.start()
        seen = p.stream(name, p.request(rid=rid, stream=stream, **long))
        timer.join()
        p.check(name, "finish_reason abort", [c.finish_reason for c in seen.completes] == ["abort"])
    p.call("abort of an unknown id", p.stub.Abort, pb.AbortRequest(request_ids=["nobody"]))
    p.call("abort of an empty list", p.stub.Abort, pb.AbortRequest())

    seen = p.stream(
        "cancel by the client",
        p.request(stream=True, **long),
        on_message=lambda call, count: call.cancel() if count == 3 else None,
    )
    p.check("cancel by the client", "cancelled", seen.status == "CANCELLED")
    p.check("cancel by the client", "the slot is free within a second", nothing_runs(p, 1))
    seen = p.stream(None, p.request(stream=True, **long), timeout=0.5)
    p.check("deadline of the client", "DEADLINE_EXCEEDED", seen.status == "DEADLINE_EXCEEDED")
    p.check("deadline of the client", "the slot is free within a second", nothing_runs(p, 1))


def running(p):
    return sum(l.num_running_reqs for l in p.stub.GetLoads(pb.GetLoadsRequest(), timeout=5).loads)


def nothing_runs(p, seconds):
    end = time.time() + seconds
    while running(p) > 0:
        if time.time() > end:
            return False
        time.sleep(0.05)
    return True


def load(p):
    seen = []
    request = p.request(max_tokens=300, ignore_eos=True, stream=True)

    def one(index):
        copy = pb.GenerateRequest()
        copy.CopyFrom(request)
        copy.request_id = f"probe-load-{index}"
        seen.append(p.stream(None, copy))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    most = 0
    while any(t.is_alive() for t in threads):
        most = max(most, running(p))
        time.sleep(0.02)
    tokens = [sum(len(c.token_ids) for c in s.chunks) for s in seen]
    p.check("8 streams at once", "300 tokens each", tokens == [300] * 8)
    p.check("8 streams at once", f"GetLoads shows them running (most: {most})", most >= 2)


def with_fields(message, **fields):
    for name, value in fields.items():
        setattr(message, name, value)
    return message
