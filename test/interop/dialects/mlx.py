"""mlx.grpc.engine.MlxEngine."""

from smg_grpc_proto import mlx_engine_pb2 as pb
from smg_grpc_proto import mlx_engine_pb2_grpc as rpc

from asking import AskingClient, Message, with_bias
from scripted import EOS, ScriptedEngine, output_logprobs, say

SERVICE = "mlx.grpc.engine.MlxEngine"


class Server(ScriptedEngine, rpc.MlxEngineServicer):
    ONE_TOKEN = True

    def register(self, server):
        rpc.add_MlxEngineServicer_to_server(self, server)

    def chunk(self, request, choice, prompt_tokens):
        chunk = pb.GenerateStreamChunk(
            token_ids=choice.last_ids, prompt_tokens=prompt_tokens, completion_tokens=choice.said
        )
        if choice.last_rows:
            chunk.output_logprobs.CopyFrom(output_logprobs(pb, choice.last_rows))
        return pb.GenerateResponse(chunk=chunk)

    def complete(self, request, choice, prompt_tokens, step):
        # In a stream it has no ids.
        complete = pb.GenerateComplete(
            output_ids=[] if request.stream else choice.ids,
            finish_reason=step["complete"],
            prompt_tokens=prompt_tokens,
            completion_tokens=len(choice.ids),
        )
        if choice.rows and not request.stream:
            complete.output_logprobs.CopyFrom(output_logprobs(pb, choice.rows))
        if "token_id" in step:
            complete.matched_stop_token_id = step["token_id"]
        return pb.GenerateResponse(complete=complete)

    async def Abort(self, request, context):
        say("abort", ids=list(request.request_ids))
        return pb.AbortResponse()

    async def HealthCheck(self, request, context):
        return pb.HealthCheckResponse(healthy=not self.args.unhealthy, message="scripted")

    async def GetModelInfo(self, request, context):
        # The path is all that it has for a name.
        return pb.GetModelInfoResponse(
            model_path="/models/scripted",
            served_model_name="/models/scripted",
            model_type="qwen3",
            architectures=["Qwen3ForCausalLM"],
            is_generation=True,
            max_context_length=self.args.context,
            vocab_size=151936,
            eos_token_ids=[EOS],
        )

    async def GetServerInfo(self, request, context):
        return pb.GetServerInfoResponse(server_type="mlx-grpc")

    async def GetTokenizer(self, request, context):
        for piece in self.bundle_pieces():
            yield piece


class Client(AskingClient):
    SERVICE = SERVICE
    REPEATS = "none"
    SAMPLES = False
    CONSTRAINS = False
    ABORT = "ok"
    LOADS = False
    REFUSES_PROMPTS = False

    def __init__(self, target):
        super().__init__(target)
        self.stub = rpc.MlxEngineStub(self.channel)
        self.pb = pb

    def request(self, ids, rid, stream=False, **wanted):
        bias = wanted.pop("logit_bias", {})
        message = pb.GenerateRequest(
            request_id=rid,
            tokenized=pb.TokenizedInput(input_ids=ids),
            sampling_params=pb.SamplingParams(top_p=1.0, **wanted),
            stream=stream,
        )
        return with_bias(message, message.sampling_params.logit_bias, bias)

    def read(self, response):
        return Message.of(response, matched="matched_stop_token_id")

    def abort(self, rid):
        return self.stub.Abort(pb.AbortRequest(request_ids=[rid]), timeout=10)
