"""sglang.grpc.scheduler.SglangScheduler."""

from smg_grpc_proto import sglang_scheduler_pb2 as pb
from smg_grpc_proto import sglang_scheduler_pb2_grpc as rpc
from smg_grpc_proto.generated import common_pb2

from asking import AskingClient, Message, with_bias
from scripted import DEFAULTS, EOS, ScriptedEngine, output_logprobs, say

SERVICE = "sglang.grpc.scheduler.SglangScheduler"


class Server(ScriptedEngine, rpc.SglangSchedulerServicer):
    def register(self, server):
        rpc.add_SglangSchedulerServicer_to_server(self, server)

    def chunk(self, request, choice, prompt_tokens):
        chunk = pb.GenerateStreamChunk(
            token_ids=choice.last_ids,
            prompt_tokens=prompt_tokens,
            completion_tokens=choice.said,
            index=choice.index,
        )
        if choice.last_rows:
            chunk.output_logprobs.CopyFrom(output_logprobs(pb, choice.last_rows))
        return pb.GenerateResponse(request_id=request.request_id, chunk=chunk)

    def complete(self, request, choice, prompt_tokens, step):
        # In a stream it repeats the last message; otherwise each says that it is the first choice.
        rows = choice.last_rows if request.stream else choice.rows
        complete = pb.GenerateComplete(
            output_ids=choice.last_ids if request.stream else choice.ids,
            finish_reason=step["complete"],
            prompt_tokens=prompt_tokens,
            completion_tokens=len(choice.ids),
            index=choice.index if request.stream else 0,
        )
        if rows:
            complete.output_logprobs.CopyFrom(output_logprobs(pb, rows))
        if "token_id" in step:
            complete.matched_token_id = step["token_id"]
        return pb.GenerateResponse(request_id=request.request_id, complete=complete)

    async def Embed(self, request, context):
        say("embed", request_ids=list(request.tokenized.input_ids))
        return pb.EmbedResponse(
            embedding=[0.6, 0.8], prompt_tokens=len(request.tokenized.input_ids), embedding_dim=2
        )

    async def Abort(self, request, context):
        say("abort", ids=[request.request_id])
        return pb.AbortResponse(success=True)

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
            max_context_length=1000,  # of the KV cache
            vocab_size=151936,
            eos_token_ids=[EOS],
            default_sampling_params_json=DEFAULTS,
        )

    async def GetServerInfo(self, request, context):
        info = pb.GetServerInfoResponse(sglang_version="0.5.23", server_type="grpc")
        info.server_args.update(
            {"context_length": self.args.context, "dp_size": 1, "max_running_requests": 8, "page_size": 32}
        )
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
    NUMBERS_WHOLE = False
    ABORT = "silent"
    GOT_PRESENCE = ("data_parallel_rank",)
    EMBEDS = True

    def __init__(self, target):
        super().__init__(target)
        self.stub = rpc.SglangSchedulerStub(self.channel)
        self.pb = pb

    def request(self, ids, rid, stream=False, **wanted):
        bias = wanted.pop("logit_bias", {})
        logprobs = wanted.pop("logprobs", None)
        neutral = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0}
        if "max_tokens" in wanted:
            wanted["max_new_tokens"] = wanted.pop("max_tokens")
        message = pb.GenerateRequest(
            request_id=rid,
            tokenized=pb.TokenizedInput(input_ids=ids),
            sampling_params=pb.SamplingParams(**{**neutral, **wanted}),
            return_logprob=logprobs is not None,
            top_logprobs_num=logprobs or 0,
            logprob_start_len=-1,
            stream=stream,
        )
        return with_bias(message, message.sampling_params.logit_bias, {str(k): v for k, v in bias.items()})

    def read(self, response):
        return Message.of(response)

    def abort(self, rid):
        return self.stub.Abort(pb.AbortRequest(request_id=rid), timeout=10)
