"""Calls of a probe: each leaves a record of what was asked and what came back, in order, decoded."""

import uuid

import grpc
from google.protobuf.json_format import MessageToDict
from smg_grpc_proto import vllm_engine_pb2 as pb
from smg_grpc_proto import vllm_engine_pb2_grpc as rpc

# Qwen3: <|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n
QWEN3_PROMPT = [151644, 872, 198, 9707, 151645, 198, 151644, 77091, 198]


def plain(message):
    """As proto3 JSON with the proto's names: absent and zero fields are left out, 64-bit numbers are strings."""
    return MessageToDict(message, preserving_proto_field_name=True)


class Calls:
    def __init__(self, target):
        options = [("grpc.max_receive_message_length", 256 << 20), ("grpc.max_send_message_length", 256 << 20)]
        self.channel = grpc.insecure_channel(target, options=options)
        self.stub = rpc.VllmEngineStub(self.channel)
        self.records = []
        self.failures = []

    def record(self, name, status="OK", details=None, **fields):
        entry = {"probe": name, "status": status, **{k: v for k, v in fields.items() if v is not None}}
        if details:
            entry["details"] = details
        self.records.append(entry)
        return entry

    def check(self, name, what, ok):
        if not ok:
            self.failures.append(f"{name}: {what}")

    def call(self, name, method, request, timeout=60):
        """One unary call; None when it failed."""
        try:
            response = method(request, timeout=timeout)
        except grpc.RpcError as e:
            self.record(name, e.code().name, e.details())
            return None
        self.record(name, response=plain(response))
        return response

    def stream(self, name, request, timeout=60, on_message=None):
        """One Generate call, read to its end; recorded unless `name` is None. Gives what came."""
        messages, status, details = [], "OK", None
        call = self.stub.Generate(request, timeout=timeout)
        try:
            for message in call:
                messages.append(message)
                if on_message:
                    on_message(call, len(messages))
        except grpc.RpcError as e:
            status, details = e.code().name, e.details()
        if name is not None:
            self.record(name, status, details, response=[plain(m) for m in messages])
        return Seen(messages, status)

    def request(self, ids=None, stream=False, rid=None, logit_bias=None, **sampling):
        params = {"temperature": 0.0, "max_tokens": 8, "top_p": 1.0, "repetition_penalty": 1.0, **sampling}
        message = pb.GenerateRequest(
            request_id=rid or f"probe-{uuid.uuid4().hex[:12]}",
            tokenized=pb.TokenizedInput(input_ids=QWEN3_PROMPT if ids is None else ids),
            sampling_params=pb.SamplingParams(**{k: v for k, v in params.items() if v is not None}),
            stream=stream,
        )
        for token, value in (logit_bias or {}).items():
            message.sampling_params.logit_bias[token] = value
        return message


class Seen:
    """Messages of one Generate call."""

    def __init__(self, messages, status):
        self.status = status
        self.chunks = [m.chunk for m in messages if m.WhichOneof("response") == "chunk"]
        self.completes = [m.complete for m in messages if m.WhichOneof("response") == "complete"]
        self.count = len(messages)

    def output_ids(self):
        return list(self.completes[-1].output_ids) if self.completes else None
