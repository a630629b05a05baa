/** What a real MLX server was seen to answer (test/golden/engines), sent again: what the gateway asks for it, and makes of it. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connectEngine } from "../../../src/engines/connect.ts";
import type { ChoiceFinish, EngineError, SamplingParams, TokenLogprobs } from "../../../src/engines/engine.ts";
import observed from "../../golden/engines/mlx-0.31.json";
import { startDialectServer } from "../../support/dialect-server.ts";

setDefaultTimeout(20_000);

interface ObservedMessage {
  readonly chunk?: { readonly token_ids: number[] };
  readonly complete?: {
    readonly output_ids?: number[];
    readonly finish_reason: string;
    readonly matched_stop_token_id?: number;
  };
}
interface Exchange {
  readonly probe: string;
  readonly request: { readonly sampling_params: Readonly<Record<string, unknown>>; readonly stream?: boolean };
  readonly response: readonly ObservedMessage[];
}
const all = observed.exchanges as unknown as readonly Exchange[];
const generations = all.filter(({ request }) => request !== undefined);
const said = (probe: string) =>
  all.find((exchange) => exchange.probe === probe)!.response as unknown as Record<string, unknown>;

const open: { close(): void }[] = [];
afterEach(() => {
  for (const thing of open.splice(0).reverse()) thing.close();
});

async function replay(exchange: Exchange) {
  const server = await startDialectServer("mlx", {
    Generate(call) {
      for (const message of exchange.response) call.send(message as Record<string, unknown>);
      call.end();
    },
  });
  const engine = await connectEngine(`grpc://127.0.0.1:${server.port}`, {
    transport: "framing",
    keepaliveMs: 0,
    dialect: "mlx",
  });
  open.push(server, engine);
  const ids: number[] = [];
  const logprobs: TokenLogprobs[] = [];
  const finishes: ChoiceFinish[] = [];
  const { sampling_params: wire, stream = false } = exchange.request;
  const error = await new Promise<EngineError | undefined>((resolve) =>
    engine.generate(
      { requestId: "r", tokenIds: Uint32Array.from(observed.prompt), sampling: asOurs(wire), stream },
      {
        onChunk(chunk) {
          ids.push(...chunk.tokenIds.subarray(0, chunk.count));
          if (chunk.outputLogprobs !== undefined) logprobs.push(chunk.outputLogprobs);
        },
        onFinish: (finish) => finishes.push(finish),
        onIdle() {},
        onEnd: resolve,
      },
    ),
  );
  return { sent: server.requests["Generate"]![0]!, ids, logprobs, finishes, error };
}

function asOurs(wire: Readonly<Record<string, unknown>>): SamplingParams {
  const bias = wire["logit_bias"] as Record<string, number> | undefined;
  return {
    ...(wire["temperature"] !== undefined && { temperature: wire["temperature"] as number }),
    ...(wire["top_p"] !== undefined && { topP: wire["top_p"] as number }),
    ...(wire["max_tokens"] !== undefined && { maxTokens: wire["max_tokens"] as number }),
    ...(wire["logprobs"] !== undefined && { logprobs: wire["logprobs"] as number }),
    ...(wire["stop_token_ids"] !== undefined && { stopTokenIds: wire["stop_token_ids"] as number[] }),
    ...(wire["seed"] !== undefined && { seed: wire["seed"] as number }),
    ...(wire["ignore_eos"] !== undefined && { ignoreEos: wire["ignore_eos"] as boolean }),
    ...(bias !== undefined && { logitBias: new Map(Object.entries(bias).map(([id, value]) => [Number(id), value])) }),
  };
}

describe(observed.engine, () => {
  test("there is enough of it", () => expect(generations.length).toBeGreaterThan(12));

  test.each(generations.map((exchange) => [exchange.probe, exchange] as const))("%s", async (_, exchange) => {
    const { sent, ids, logprobs, finishes, error } = await replay(exchange);
    const { logprobs: rows, ...asked } = exchange.request.sampling_params;
    expect(sent["sampling_params"]).toMatchObject({
      ...asked,
      ...(rows !== undefined && { logprobs: Math.max(1, Number(rows)) }),
    });
    expect(sent["tokenized"]).toEqual({ input_ids: observed.prompt });
    const chunks = exchange.response.flatMap(({ chunk }) => chunk?.token_ids ?? []);
    const complete = exchange.response.find((message) => message.complete !== undefined)?.complete;
    expect(ids).toEqual(exchange.request.stream ? chunks : (complete?.output_ids ?? []));
    if (complete === undefined) {
      expect(error).toMatchObject({ kind: "failed", message: "the engine aborted the request" });
      return;
    }
    expect(error).toBeUndefined();
    expect(finishes).toMatchObject([
      { index: 0, reason: complete.finish_reason, promptTokens: observed.prompt.length },
    ]);
    expect(finishes[0]!.matchedTokenId).toBe(complete.matched_stop_token_id);
    if (typeof rows === "number" && rows > 0) {
      expect(logprobs.flatMap(({ tokenIds }) => tokenIds)).toEqual(ids);
      for (const { top } of logprobs) for (const row of top) expect(row.tokenIds).toHaveLength(rows);
    }
  });

  test("what it tells of itself", async () => {
    const server = await startDialectServer("mlx", {
      HealthCheck(call) {
        call.send(said("HealthCheck"));
        call.end();
      },
      GetModelInfo(call) {
        call.send(said("GetModelInfo"));
        call.end();
      },
      GetServerInfo(call) {
        call.send(said("GetServerInfo"));
        call.end();
      },
    });
    const engine = await connectEngine(`grpc://127.0.0.1:${server.port}`, { transport: "framing", keepaliveMs: 0 });
    open.push(server, engine);
    expect(engine.dialect).toBe("mlx");
    expect(await engine.health(2000)).toEqual({ healthy: true, message: "OK" });
    expect(await engine.modelInfo(2000)).toMatchObject({
      servedModelName: "tiny",
      contextLength: 16_384,
      vocabSize: 151_936,
      eosTokenIds: [151_645],
    });
    expect(await engine.learn(2000)).toMatchObject({
      role: "regular",
      labels: { model_type: "qwen3", bos_token_id: "151643" },
    });
    expect(await engine.serving(2000)).toBe("unimplemented");
  });
});
