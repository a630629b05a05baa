/**
 * The direct row: the load generator's flags, but token ids over gRPC straight to an engine of the vLLM dialect. What a gateway
 * adds is its figure less this one. Reads with the gateway's own channel and decoder, without text.
 */
import { GenerateResponseDecoder } from "../src/engines/decode.ts";
import { createFramingChannel } from "../src/engines/framing-channel.ts";
import { encodeGenerateRequest } from "../src/engines/vllm/encode.ts";
import { vllmGenerate } from "../src/engines/vllm/rules.ts";
import { measure, type Send } from "./loadgen/measure.ts";
import { type LoadOptions, readCommandLine } from "./loadgen/options.ts";
import { mixSeed, Random } from "./loadgen/random.ts";

/** Ids of ordinary words in every large vocabulary. */
const FIRST_ID = 1000;
const IDS = 30_000;

type Channel = ReturnType<typeof createFramingChannel>;

function promptIds(options: LoadOptions, index: number): Uint32Array {
  const random = new Random(mixSeed(options.seed, options.prompts.kind === "same" ? 0 : index + 1));
  return Uint32Array.from({ length: options.promptTokens }, () => FIRST_ID + random.below(IDS));
}

function prepareGeneration(channel: Channel, options: LoadOptions, index: number): Send {
  const request = encodeGenerateRequest({
    requestId: `direct-${process.pid}-${index}`,
    tokenIds: promptIds(options, index),
    sampling: { maxTokens: options.maxTokens, ignoreEos: true, temperature: 0 },
    stream: true,
  });
  return (tally, planned) =>
    new Promise((resolve) => {
      const decoder = new GenerateResponseDecoder(vllmGenerate.layout);
      const stamps: number[] = [];
      let tokens = 0;
      let complete = false;
      const sent = performance.now();
      if (planned !== undefined) tally.sendDelay.push(sent - planned);
      let now = 0;
      channel.serverStream(vllmGenerate.path, request, {
        onMessage(bytes, start, end) {
          // One moment for all messages of a read, as for the events of a gateway.
          if (now === 0) now = performance.now();
          const kind = decoder.decode(bytes, start, end);
          if (kind === "complete") complete = true;
          else if (kind === "chunk" && decoder.chunk.count > 0) {
            tokens += decoder.chunk.count;
            stamps.push(now);
          }
        },
        onIdle() {
          now = 0;
        },
        onEnd(error) {
          const end = performance.now();
          if (error !== undefined) tally.error("status", error.message);
          else if (!complete) tally.error("no_finish", "no final message");
          else if (options.expect !== undefined && tokens !== options.expect)
            tally.error("count", `${tokens} tokens instead of ${options.expect}`);
          else {
            tally.done++;
            tally.outputTokens += tokens;
            tally.promptTokens += options.promptTokens;
            tally.events += stamps.length;
            tally.times(planned ?? sent, end, stamps);
          }
          resolve();
        },
      });
    });
}

const command = readCommandLine(process.argv.slice(2));
const { load: options } = command;
const channel = createFramingChannel(options.url.host, {
  maxReceiveBytes: 64 << 20,
  keepaliveMs: 0,
  keepaliveTimeoutMs: 10_000,
  connectTimeoutMs: 5000,
});
const prepare = (of: LoadOptions) => (index: number) => prepareGeneration(channel, of, index);
// A cold reader would hide a part of what a gateway adds: it is warmed up on the engine itself.
const small: LoadOptions = {
  ...options,
  streams: 64,
  requests: 1500,
  promptTokens: 100,
  maxTokens: 1,
  expect: 1,
  pids: [],
};
await measure({ ...small, rate: undefined, warmup: 0, seed: options.seed + 1 }, prepare(small), 0);
for (let i = 0; i < command.repeat; i++) {
  const base = i * (options.requests + options.warmup);
  const result = await measure(options, prepare(options), base);
  console.log(JSON.stringify(result));
  if (result.first_error !== undefined) console.error(result.first_error);
}
channel.close();
