/** Engine of the vLLM dialect (`vllm.grpc.engine.VllmEngine`). */
import { type PlainMessage, protoCodec } from "../../protobuf/codec.ts";
import { BundleCollector } from "../bundle.ts";
import type { Channel } from "../channel.ts";
import type { Engine, TokenizerBundle } from "../engine.ts";
import { toEngineError } from "../engine-error.ts";
import type { GrpcError } from "../grpc-error.ts";
import { PROTOS } from "../protos.ts";
import { GenerateResponseDecoder } from "./decode.ts";
import { startEmbed } from "./embed.ts";
import { startGeneration } from "./generation.ts";
import { toModelInfo, toServerInfo } from "./info.ts";

export const VLLM_SERVICE = "vllm.grpc.engine.VllmEngine";

/** How long an Abort may take; nobody waits for it. */
const ABORT_DEADLINE_MS = 5000;

const proto = protoCodec(PROTOS.vllm);

export interface VllmEngineOptions {
  /** Carries generations and embeddings. */
  readonly stream: Channel;
  /** Carries everything else; may be the same channel. */
  readonly control: Channel;
}

/** An engine over two channels, which it owns: `close` closes both. All failures are EngineErrors. */
export function createVllmEngine({ stream, control }: VllmEngineOptions): Engine {
  const decoder = new GenerateResponseDecoder();

  async function call(rpc: string, value: Record<string, unknown>, deadlineMs: number): Promise<PlainMessage> {
    try {
      const request = proto.encode(`${rpc}Request`, value);
      const reply = await control.unary(`/${VLLM_SERVICE}/${rpc}`, request, { deadlineMs });
      return proto.decode(`${rpc}Response`, reply);
    } catch (error) {
      throw toEngineError(error);
    }
  }

  async function abort(requestIds: readonly string[]): Promise<void> {
    await call("Abort", { request_ids: [...requestIds] }, ABORT_DEADLINE_MS);
  }

  function tokenizerBundle(deadlineMs: number): Promise<TokenizerBundle> {
    const collector = new BundleCollector();
    return new Promise<void>((resolve, reject) => {
      let problem: unknown;
      const running = control.serverStream(
        `/${VLLM_SERVICE}/GetTokenizer`,
        new Uint8Array(0),
        {
          onMessage(bytes, start, end) {
            if (problem !== undefined) return;
            try {
              const piece = proto.decode("smg.grpc.common.GetTokenizerChunk", bytes.subarray(start, end));
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

  return {
    dialect: "vllm",
    generate: (request, handler) =>
      startGeneration(stream, decoder, request, handler, () => {
        abort([request.requestId]).catch(() => {});
      }),
    embed: (request, signal) =>
      startEmbed(stream, request, signal, () => {
        abort([request.requestId]).catch(() => {});
      }),
    abort,
    async health(deadlineMs) {
      const reply = await call("HealthCheck", {}, deadlineMs);
      return { healthy: reply["healthy"] === true, message: String(reply["message"]) };
    },
    modelInfo: async (deadlineMs) => toModelInfo(await call("GetModelInfo", {}, deadlineMs)),
    serverInfo: async (deadlineMs) => toServerInfo(await call("GetServerInfo", {}, deadlineMs)),
    tokenizerBundle,
    close() {
      stream.close();
      control.close();
    },
  };
}
