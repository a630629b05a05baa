"""A client on the official stubs, that asks a simulated engine of any dialect.   ask.py DIALECT ENGINE_RELEASE HOST:PORT

The stubs may be of another release than the engine. Prints a list of checks, as JSON: {"name", "fault"}; a fault of null is none.
What is checked is the contract of the dialect as its servicers keep to it: see the `Client` classes in dialects/.
"""

import hashlib
import io
import json
import sys
import threading
import time
import zipfile
from importlib.metadata import version

import grpc
from google.protobuf import descriptor_pool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from smg_grpc_proto.generated import common_pb2

from dialects import dialect
from scripted import EOS, unknown_fields

# Qwen 3: <|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n
PROMPT = [151644, 872, 198, 9707, 151645, 198, 151644, 77091, 198]
STUBS = version("smg-grpc-proto")


def number(release):
    return [int(part) for part in release.split(".")]


class Asker:
    def __init__(self, name, engine_release, target):
        self.client = dialect(name).Client(target)
        self.engine_release = engine_release
        self.checks = []
        # Of one age: nothing may come that the stubs don't know.
        self.same_age = engine_release == STUBS

    def check(self, name, work):
        try:
            work()
            fault = None
        except Exception as error:  # whatever it is, it is what this check found
            fault = f"{type(error).__name__}: {error}"
        self.checks.append({"name": name, "fault": fault})

    def serves(self, rpc):
        since = self.client.SINCE.get(rpc)
        return since is None or number(since) <= number(self.engine_release)

    def known(self, message):
        if self.same_age:
            same(unknown_fields(message), [], "unknown fields")
        return message

    def generate(self, stream=False, ids=None, rid=None, timeout=30, on_message=None, **wanted):
        """The messages of a generation, and the status that it ended with."""
        rid = rid or f"ask-{time.monotonic_ns()}"
        wanted = {"temperature": 0.0, "max_tokens": 8, **wanted}
        request = self.client.request(PROMPT if ids is None else ids, rid, stream, **wanted)
        call = self.client.stub.Generate(request, timeout=timeout)
        messages = []
        try:
            for response in call:
                messages.append(self.client.read(self.known(response)))
                if on_message:
                    on_message(call, len(messages))
        except grpc.RpcError as error:
            return messages, error.code().name
        return messages, "OK"


def same(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: {found!r}, expected {expected!r}")


def holds(condition, what):
    if not condition:
        raise AssertionError(what)


def parts(messages, index=None):
    mine = [m for m in messages if index is None or m.index == index]
    return [m for m in mine if m.end is None], [m for m in mine if m.end is not None]


def descriptors(a):
    """What reflection tells of the messages of a generation equals the stubs, where both are of one age."""
    database = ProtoReflectionDescriptorDatabase(a.client.channel)
    holds(a.client.SERVICE in database.get_services(), "the service is listed")
    if not a.same_age:
        return
    pool = descriptor_pool.DescriptorPool(database)
    service = pool.FindServiceByName(a.client.SERVICE)
    own = a.client.pb.DESCRIPTOR.services_by_name[a.client.SERVICE.rsplit(".", 1)[1]]
    same(sorted(m.name for m in service.methods), sorted(m.name for m in own.methods), "calls")
    seen = set()

    def compare(theirs, ours):
        if theirs.full_name in seen or theirs.full_name.startswith("google."):
            return
        seen.add(theirs.full_name)

        def shape(message):
            return sorted(
                (f.number, f.name, f.type, f.is_repeated, f.has_presence or f.name in a.client.GOT_PRESENCE)
                for f in message.fields
            )

        same(shape(theirs), shape(ours), theirs.full_name)
        for f in theirs.fields:
            if f.message_type is not None:
                compare(f.message_type, ours.fields_by_name[f.name].message_type)

    for method in service.methods:
        compare(method.input_type, own.methods_by_name[method.name].input_type)
        compare(method.output_type, own.methods_by_name[method.name].output_type)
    holds(len(seen) > 10, f"{len(seen)} messages were compared")


def health(a):
    stub = health_pb2_grpc.HealthStub(a.client.channel)
    for name in ("", a.client.SERVICE):
        try:
            status = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=5).status
            same((a.client.HEALTH_V1, status), (True, health_pb2.HealthCheckResponse.SERVING), f"Check '{name}'")
        except grpc.RpcError as error:
            same((a.client.HEALTH_V1, error.code().name), (False, "UNIMPLEMENTED"), f"Check '{name}'")


def facts(a):
    stub, pb = a.client.stub, a.client.pb
    holds(a.client.healthy(a.known(stub.HealthCheck(pb.HealthCheckRequest(), timeout=30))), "it is healthy")
    model = a.known(stub.GetModelInfo(pb.GetModelInfoRequest(), timeout=5))
    holds(model.vocab_size >= 151_643, f"vocabulary {model.vocab_size}")
    a.known(stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=5))


def status_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def bundle(a):
    pieces = []
    request = common_pb2.GetTokenizerRequest()
    call = a.client.channel.unary_stream(
        f"/{a.client.SERVICE}/GetTokenizer",
        request_serializer=type(request).SerializeToString,
        response_deserializer=common_pb2.GetTokenizerChunk.FromString,
    )
    status = status_of(lambda: pieces.extend(call(request, timeout=60)))
    if not a.client.BUNDLE or not a.serves("GetTokenizer"):
        same(status, "UNIMPLEMENTED", "status")
        return
    same(status, "OK", "status")
    data = b"".join(piece.data for piece in pieces)
    same([piece.sha256 for piece in pieces], [""] * (len(pieces) - 1) + [hashlib.sha256(data).hexdigest()], "digests")
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        holds("tokenizer.json" in z.namelist(), "there is a tokenizer.json")


def admin(a):
    """Calls that come and go with dialect and age."""
    stub, pb = a.client.stub, a.client.pb
    if a.client.LOADS:
        loads = a.known(stub.GetLoads(pb.GetLoadsRequest(), timeout=5)).loads
        same([load.num_running_reqs for load in loads], [0], "running")
        for rpc, request in (
            ("FlushCache", common_pb2.FlushCacheRequest(timeout_s=1)),
            ("StartProfile", common_pb2.StartProfileRequest()),
        ):
            if hasattr(stub, rpc):
                status = status_of(lambda: getattr(stub, rpc)(request, timeout=30))
                holds((status != "UNIMPLEMENTED") == a.serves(rpc), f"{rpc}: {status}")


def whole(a):
    messages, status = a.generate()
    same(status, "OK", "status")
    chunks, completes = parts(messages)
    same((len(chunks), len(completes)), (0, 1), "messages")
    end = completes[0]
    same((len(end.ids), end.end, end.completion_tokens), (8, "length", 8), "ids, reason, count")
    same(end.prompt_tokens, len(PROMPT), "prompt tokens")


def streamed(a):
    whole_ids = parts(a.generate()[0])[1][0].ids
    messages, status = a.generate(stream=True)
    same(status, "OK", "status")
    chunks, completes = parts(messages)
    same([i for c in chunks for i in c.ids], whole_ids, "ids, as when not streaming")
    holds(messages[-1].end is not None and len(completes) == 1, "it ends with its Complete")
    said, expected = 0, []
    for chunk in chunks:
        said += len(chunk.ids)
        expected.append(len(chunk.ids) if a.client.COUNTS_MESSAGES else said)
    same([c.completion_tokens for c in chunks], expected, "counts of chunks")
    repeated = {"last": chunks[-1].ids, "all": whole_ids, "none": []}[a.client.REPEATS]
    same(completes[0].ids, repeated, "ids of the Complete")
    count = len(chunks[-1].ids) if a.client.COUNTS_MESSAGES else 8
    same(completes[0].completion_tokens, count, "count of the Complete")


def samples(a):
    if not a.client.SAMPLES:
        return
    for stream in (True, False):
        messages, status = a.generate(stream=stream, n=2, temperature=1.0, max_tokens=4)
        same(status, "OK", "status")
        _, completes = parts(messages)
        numbers = [0, 1] if stream or a.client.NUMBERS_WHOLE else [0, 0]
        same(sorted(c.index for c in completes), numbers, f"index of Completes, stream {stream}")
        if stream:
            for index in (0, 1):
                same(sum(len(c.ids) for c in parts(messages, index)[0]), 4, f"tokens of choice {index}")
        else:
            same([len(c.ids) for c in completes], [4, 4], "tokens")


def stops(a):
    ids = parts(a.generate(max_tokens=12)[0])[1][0].ids
    at = next(i for i in range(2, len(ids)) if ids[i] not in ids[:i])
    messages, status = a.generate(stream=True, max_tokens=12, stop_token_ids=[ids[at]])
    same(status, "OK", "status")
    chunks, completes = parts(messages)
    kept = ids[:at] if a.client.TRIMS else ids[: at + 1]
    same([i for c in chunks for i in c.ids], kept, "ids")
    same(completes[0].end, "stop", "reason")
    # The protocol leaves open whether one engine names it.
    if a.client.NAMES_STOP:
        same(completes[0].matched, ids[at], "matched token")


def logprobs(a):
    messages, status = a.generate(stream=True, max_tokens=3, logprobs=2)
    same(status, "OK", "status")
    chunks, _ = parts(messages)
    rows = [row for c in chunks for row in c.logprobs]
    same([token for token, _ in rows], [i for c in chunks for i in c.ids], "a logprob for each token")
    same({count for _, count in rows}, {2}, "alternatives")


def constraints(a):
    schema = '{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false}'
    if not a.client.CONSTRAINS:
        return
    for name, value in (("json_schema", schema), ("regex", "(red|green) [0-9]{3}")):
        messages, status = a.generate(stream=True, max_tokens=100, **{name: value})
        same(status, "OK", f"{name}: status")
        same(parts(messages)[1][0].end, "stop", f"{name}: reason")
    same(a.generate(json_schema="{not json")[1], "INVALID_ARGUMENT", "a broken schema")


def refusals(a):
    if a.client.REFUSES_PROMPTS:
        same(a.generate(ids=[])[1], "INVALID_ARGUMENT", "an empty prompt")
        same(a.generate(ids=[5, 4_000_000])[1], "INVALID_ARGUMENT", "an id past the vocabulary")
    else:
        same(a.generate(ids=[], timeout=0.5)[1], "DEADLINE_EXCEEDED", "an empty prompt is never answered")


LONG = {"max_tokens": 4000, "ignore_eos": True}


def abort(a):
    rid = f"ask-abort-{a.client.ABORT}-{time.monotonic_ns()}"
    sent = threading.Event()

    def seen(_call, count):
        if count == 3:
            a.client.abort(rid)
            sent.set()

    messages, status = a.generate(stream=True, rid=rid, timeout=3, on_message=seen, **LONG)
    holds(sent.is_set(), "three messages came")
    ends = [m.end for m in parts(messages)[1]]
    expected = {
        "complete": ("OK", ["abort"]),
        "ok": ("OK", []),
        "silent": ("DEADLINE_EXCEEDED", []),
    }.get(a.client.ABORT)
    if expected is None:
        holds(status not in ("OK", "DEADLINE_EXCEEDED") and ends == [], f"{status}, {ends}")
    else:
        same((status, ends), expected, "status and Completes")


def cancel(a):
    _, status = a.generate(stream=True, on_message=lambda call, n: call.cancel() if n == 3 else None, **LONG)
    same(status, "CANCELLED", "status")
    if a.client.LOADS:
        until = time.time() + 2
        while sum(x.num_running_reqs for x in a.client.stub.GetLoads(a.client.pb.GetLoadsRequest()).loads) > 0:
            holds(time.time() < until, "the slot is free within two seconds")
            time.sleep(0.05)


def several(a):
    counts = []

    def one():
        messages, _ = a.generate(stream=True, max_tokens=100, ignore_eos=True)
        counts.append(sum(len(c.ids) for c in parts(messages)[0]))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(counts, [100] * 8, "tokens of eight streams at once")


def wrong_service(a):
    call = a.client.channel.unary_unary(
        "/no.such.Service/HealthCheck", request_serializer=bytes, response_deserializer=bytes
    )
    same(status_of(lambda: call(b"", timeout=5)), "UNIMPLEMENTED", "status")


CHECKS = (
    ("reflection", descriptors),
    ("grpc.health.v1", health),
    ("health, model, server", facts),
    ("another service", wrong_service),
    ("tokenizer bundle", bundle),
    ("loads, flush, profile", admin),
    ("not streaming", whole),
    ("streaming", streamed),
    ("several choices", samples),
    ("stop tokens", stops),
    ("logprobs", logprobs),
    ("constraints", constraints),
    ("what is refused", refusals),
    ("abort by RPC", abort),
    ("cancelled by the client", cancel),
    ("several at once", several),
)


def main():
    asker = Asker(*sys.argv[1:])
    for name, work in CHECKS:
        asker.check(name, lambda work=work: work(asker))
    json.dump(asker.checks, sys.stdout)


main()
