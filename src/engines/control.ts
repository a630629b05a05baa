/** Everything that is asked of an engine besides generations and embeddings. */
import { type PlainMessage, type ProtoCodec, protoCodec } from "../protobuf/codec.ts";
import type { EngineAdmin, Outcome } from "./admin.ts";
import { BundleCollector } from "./bundle.ts";
import type { Channel } from "./channel.ts";
import type { Dialect } from "./dialects.ts";
import { type Engine, EngineError, type TokenizerBundle } from "./engine.ts";
import { toEngineError } from "./engine-error.ts";
import type { GrpcError } from "./grpc-error.ts";
import { askHealth } from "./health-v1.ts";
import { rankLoads } from "./loads.ts";

/** How long an Abort may take; nobody waits for it. */
const ABORT_DEADLINE_MS = 5000;

const COMMON = "smg.grpc.common";

export interface ControlCalls
  extends EngineAdmin,
    Pick<Engine, "abort" | "health" | "modelInfo" | "serverInfo" | "tokenizerBundle"> {
  /** GetModelInfoResponse as it is. */
  modelReply(deadlineMs: number): Promise<PlainMessage>;
  /** GetServerInfoResponse as it is; empty where the engine serves without telling of itself. */
  serverReply(deadlineMs: number): Promise<PlainMessage>;
}

const outcome = (reply: PlainMessage): Outcome => ({
  success: reply["success"] === true,
  message: String(reply["message"]),
});

/** The calls over a channel. All failures are EngineErrors; a call that the dialect lacks is "unimplemented" without asking. */
export function controlCalls(dialect: Dialect, channel: Channel): ControlCalls {
  const rules = dialect.control;
  const codec = codecOf(dialect);
  const rpcs = new Map(dialect.proto.service().rpcs.map((rpc) => [rpc.name, rpc]));

  async function call(name: string, value: PlainMessage, deadlineMs: number): Promise<PlainMessage> {
    const rpc = rpcs.get(name);
    if (rpc === undefined) throw new EngineError("unimplemented", `the ${dialect.name} dialect has no ${name}`);
    try {
      const request = codec.encode(rpc.request, value);
      const reply = await channel.unary(`/${dialect.service}/${name}`, request, { deadlineMs });
      return codec.decode(rpc.response, reply);
    } catch (error) {
      throw toEngineError(error);
    }
  }

  function tokenizerBundle(deadlineMs: number): Promise<TokenizerBundle> {
    const collector = new BundleCollector();
    return new Promise<void>((resolve, reject) => {
      let problem: unknown;
      const running = channel.serverStream(
        `/${dialect.service}/GetTokenizer`,
        new Uint8Array(0),
        {
          onMessage(bytes, start, end) {
            if (problem !== undefined) return;
            try {
              const piece = codec.decode(`${COMMON}.GetTokenizerChunk`, bytes.subarray(start, end));
              collector.add(piece["data"] as Uint8Array, piece["sha256"] as string);
            } catch (error) {
              problem = error;
              running.cancel();
            }
          },
          onEnd(error?: GrpcError) {
            if (problem !== undefined || error !== undefined) reject(toEngineError(problem ?? error));
            else resolve();
          },
        },
        { deadlineMs },
      );
    }).then(() => collector.finish());
  }

  const modelReply = (deadlineMs: number): Promise<PlainMessage> => call("GetModelInfo", {}, deadlineMs);

  async function serverReply(deadlineMs: number): Promise<PlainMessage> {
    try {
      return await call("GetServerInfo", {}, deadlineMs);
    } catch (error) {
      if (error instanceof EngineError && (error.kind === "unavailable" || error.kind === "timeout")) throw error;
      return {};
    }
  }

  return {
    modelReply,
    serverReply,
    async abort(requestIds) {
      await Promise.all(rules.abort(requestIds).map((ask) => call("Abort", ask, ABORT_DEADLINE_MS)));
    },
    health: async (deadlineMs) => rules.healthy(await call("HealthCheck", {}, deadlineMs)),
    serving: (deadlineMs) => askHealth(channel, dialect.service, deadlineMs),
    async modelInfo(deadlineMs) {
      const [model, server] = await Promise.all([
        modelReply(deadlineMs),
        rules.modelNeedsServer === true ? serverReply(deadlineMs) : {},
      ]);
      return rules.model(model, server);
    },
    serverInfo: async (deadlineMs) => rules.server(await call("GetServerInfo", {}, deadlineMs)),
    async loads(deadlineMs) {
      return rankLoads(await call("GetLoads", rules.loadsAsk ?? {}, deadlineMs), rules.tellsUncached === true);
    },
    async flushCache(timeoutSecs, deadlineMs) {
      return outcome(await call("FlushCache", { timeout_s: timeoutSecs }, deadlineMs));
    },
    async startProfile(ask, deadlineMs) {
      const { outputDir, startStep, numSteps, activities, withStack, recordShapes, profileByStage } = ask;
      const request = {
        output_dir: outputDir,
        start_step: startStep,
        num_steps: numSteps,
        activities,
        with_stack: withStack,
        record_shapes: recordShapes,
        profile_by_stage: profileByStage,
      };
      return outcome(await call("StartProfile", request, deadlineMs));
    },
    stopProfile: async (deadlineMs) => outcome(await call("StopProfile", {}, deadlineMs)),
    tokenizerBundle,
  };
}

const codecs = new WeakMap<Dialect, ProtoCodec>();

/** One for all engines of a dialect. */
function codecOf(dialect: Dialect): ProtoCodec {
  let codec = codecs.get(dialect);
  if (codec === undefined) {
    codec = protoCodec(dialect.proto);
    codecs.set(dialect, codec);
  }
  return codec;
}
