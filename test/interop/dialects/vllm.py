"""vllm.grpc.engine.VllmEngine."""

from smg_grpc_proto import vllm_engine_pb2 as pb
from smg_grpc_proto import vllm_engine_pb2_grpc as rpc
from smg_grpc_proto.generated import common_pb2

from asking import AskingClient, Message, with_bias
from scripted import DEFAULTS, EOS, ScriptedEngine, output_logprobs, say

SERVICE = "vllm.grpc.engine.VllmEngine"


class Server(ScriptedEngine, rpc.VllmEngineServicer):
    def register(self, server):
        rpc.add_VllmEngineServicer_to_server(self, server)

    def chunk(self, request, choice, prompt_tokens):
        chunk = pb.GenerateStreamChunk(
            token_ids=choice.last_ids,
            prompt_tokens=prompt_tokens,
            completion_tokens=len(choice.last_ids),
            index=choice.index,
        )
        if choice.last_rows:
            chunk.output_logprobs.CopyFrom(output_logprobs(pb, choice.last_rows))
        return pb.GenerateResponse(chunk=chunk)

    def complete(self, request, choice, prompt_tokens, step):
        # In a stream it repeats the last message, and counts only that.
        ids = choice.last_ids if request.stream else choice.ids
        rows = choice.last_rows if request.stream else choice.rows
        complete = pb.GenerateComplete(
            output_ids=ids,
            finish_reason=step["complete"],
            prompt_tokens=prompt_tokens,
            completion_tokens=len(ids),
            index=choice.index,
        )
        if rows:
            complete.output_logprobs.CopyFrom(output_logprobs(pb, rows))
        if "token_id" in step:
            complete.matched_token_id = step["token_id"]
        return pb.GenerateResponse(complete=complete)

    async def Embed(self, request, context):
        say("embed", request_ids=list(request.tokenized.input_ids))
        return pb.EmbedResponse(
            embedding=[0.6, 0.8], prompt_tokens=len(request.tokenized.input_ids), embedding_dim=2
        )

    async def Abort(self, request, context):
        say("abort", ids=list(request.request_ids))
        return pb.AbortResponse()

    async def HealthCheck(self, request, context):
        return pb.HealthCheckResponse(healthy=not self.args.unhealthy, message="scripted")

    async def GetModelInfo(self, request, context):
        return pb.GetModelInfoResponse(
            model_path="/models/scripted",
            tokenizer_path="/models/scripted",
            served_model_name="scripted",
            model_type="qwen3",
            architectures=["Qwen3ForCausalLM"],
            is_generation=not self.args.pooling,
            max_context_length=self.args.context,
            vocab_size=151936,
            eos_token_ids=[EOS],
            default_sampling_params_json=DEFAULTS,
        )

    async def GetServerInfo(self, request, context):
        info = pb.GetServerInfoResponse(block_size=32, data_parallel_size=1)
        if "max_num_seqs" in info.DESCRIPTOR.fields_by_name:
            info.max_num_seqs = 8
        return info

    async def GetLoads(self, request, context):
        load = pb.SchedulerLoad(num_running_reqs=3, num_waiting_reqs=2, max_total_num_tokens=1000, token_usage=0.25)
        return pb.GetLoadsResponse(dp_rank_count=1, loads=[load])

    async def FlushCache(self, request, context):
        return common_pb2.FlushCacheResponse(success=True, message="flushed")

    async def GetTokenizer(self, request, context):
        for piece in self.bundle_pieces():
            yield piece


class Client(AskingClient):
    SERVICE = SERVICE
    COUNTS_MESSAGES = True
    EMBEDS = True
    SINCE = {"FlushCache": "0.4.19", "StartProfile": "0.4.28"}

    def __init__(self, target):
        super().__init__(target)
        self.stub = rpc.VllmEngineStub(self.channel)
        self.pb = pb

    def request(self, ids, rid, stream=False, **wanted):
        bias = wanted.pop("logit_bias", {})
        choice = wanted.pop("choice", None)
        message = pb.GenerateRequest(
            request_id=rid,
            tokenized=pb.TokenizedInput(input_ids=ids),
            sampling_params=pb.SamplingParams(**{"top_p": 1.0, "repetition_penalty": 1.0, **wanted}),
            stream=stream,
        )
        if choice:
            message.sampling_params.choice.CopyFrom(pb.ChoiceConstraint(choices=choice))
        return with_bias(message, message.sampling_params.logit_bias, bias)

    def read(self, response):
        return Message.of(response)

    def abort(self, rid):
        return self.stub.Abort(pb.AbortRequest(request_ids=[rid]), timeout=10)
