"""Exercises the RPCs of an engine of the vLLM dialect, real or simulated.   probe.py HOST:PORT > records.json

Writes one record a probe: its name, the gRPC status, the messages that came, decoded; and under "failures" what contradicts
what a vLLM 0.32 server does. Needs grpcio, protobuf, smg-grpc-proto, grpcio-health-checking and grpcio-reflection.
"""

import hashlib
import io
import json
import sys
import zipfile

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from smg_grpc_proto import vllm_engine_pb2 as pb
from smg_grpc_proto.generated import common_pb2

from probe_calls import QWEN3_PROMPT, Calls, plain
from probe_generate import aborts, constraints, edges, generate, load, samples, stops


def services(p):
    names = sorted(ProtoReflectionDescriptorDatabase(p.channel).get_services())
    p.record("reflection", response=names)
    health = health_pb2_grpc.HealthStub(p.channel)
    for service in ("", "vllm.grpc.engine.VllmEngine", "no.such.Service"):
        p.call(f"grpc.health.v1 Check '{service}'", health.Check, health_pb2.HealthCheckRequest(service=service))
    seen = []
    try:
        for message in health.Watch(health_pb2.HealthCheckRequest(service=""), timeout=1):
            seen.append(plain(message))
    except grpc.RpcError:
        pass  # the probe's own deadline
    p.record("grpc.health.v1 Watch ''", response=seen)


def facts(p):
    response = p.call("HealthCheck", p.stub.HealthCheck, pb.HealthCheckRequest())
    p.check("HealthCheck", "healthy", response is not None and response.healthy)
    model = p.call("GetModelInfo", p.stub.GetModelInfo, pb.GetModelInfoRequest())
    p.call("GetServerInfo", p.stub.GetServerInfo, pb.GetServerInfoRequest())
    p.call("GetLoads idle", p.stub.GetLoads, pb.GetLoadsRequest())
    p.call(
        "GetLoads unknown section, rank 7",
        p.stub.GetLoads,
        pb.GetLoadsRequest(dp_rank=7, include=["core", "nonsense"]),
    )
    return model


def other_dialect(p):
    name = "HealthCheck of another dialect (SGLang)"
    method = p.channel.unary_unary(
        "/sglang.grpc.scheduler.SglangScheduler/HealthCheck",
        request_serializer=lambda m: m,
        response_deserializer=lambda m: m,
    )
    try:
        method(b"", timeout=10)
        p.record(name)
    except grpc.RpcError as e:
        p.record(name, e.code().name, e.details())


def bundle(p):
    pieces, digests = [], []
    for piece in p.stub.GetTokenizer(common_pb2.GetTokenizerRequest(), timeout=120):
        pieces.append(piece.data)
        digests.append(piece.sha256)
    data = b"".join(pieces)
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        names = z.namelist()
    p.record(
        "GetTokenizer",
        response={
            "sha256_on_last_piece_only": bool(digests[-1]) and not any(digests[:-1]),
            "sha256_matches": digests[-1] == hashlib.sha256(data).hexdigest(),
            "largest_piece": max(len(piece) for piece in pieces),
        },
    )
    p.check("GetTokenizer", "tokenizer.json is there", "tokenizer.json" in names)
    p.check("GetTokenizer", "flat names", not any("/" in name for name in names))


def admin(p):
    p.call("FlushCache", p.stub.FlushCache, common_pb2.FlushCacheRequest(timeout_s=1))


def embed(p):
    request = pb.EmbedRequest(request_id="probe-embed", tokenized=pb.TokenizedInput(input_ids=QWEN3_PROMPT))
    p.call("Embed", p.stub.Embed, request, timeout=30)
    p.call("Embed, no input", p.stub.Embed, pb.EmbedRequest(request_id="probe-embed-4"), timeout=30)


def main():
    p = Calls(sys.argv[1])
    grpc.channel_ready_future(p.channel).result(timeout=30)
    services(p)
    model = facts(p)
    other_dialect(p)
    bundle(p)
    generate(p)
    stops(p)
    samples(p)
    constraints(p)
    edges(p, model.max_context_length)
    aborts(p)
    load(p)
    admin(p)
    embed(p)
    p.call("HealthCheck at the end", p.stub.HealthCheck, pb.HealthCheckRequest())
    json.dump({"records": p.records, "failures": p.failures}, sys.stdout)


main()
