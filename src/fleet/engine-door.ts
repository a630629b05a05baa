/** Workers as control asks them: through the engines' adapters. */
import { connectEngine } from "../engines/connect.ts";
import { createControlEngine, type EngineOptions } from "../engines/create.ts";
import { type Engine, EngineError } from "../engines/engine.ts";
import type { HttpEngine } from "../engines/http/engine.ts";
import { publishedKvSource } from "../engines/http/kv-source.ts";
import { cacheNames } from "./cache-names.ts";
import type { Contact, Door, Found } from "./door.ts";
import { askIdentity, identityOf, identityOfHttp } from "./engine-identity.ts";
import type { HttpEngines } from "./http-engines.ts";
import type { ModelCatalog } from "./model-catalog.ts";
import { HTTP_DIALECT } from "./snapshot.ts";
import type { WorkerSpec } from "./worker-spec.ts";
import { urlOf, workerAddress } from "./worker-url.ts";

/** Engines whose own health check generates a token: seconds of a busy engine's time. */
const CHECKS_BY_GENERATING: ReadonlySet<string> = new Set(["sglang", "tokenspeed"]);
/** Engines whose `grpc.health.v1` says SERVING until the server is stopped, whatever became of the engine behind it. */
const SERVES_REGARDLESS: ReadonlySet<string> = new Set(["mlx"]);
/** Those whose publishers' form is known. */
const PUBLISHERS: ReadonlyMap<string, "vllm" | "sglang"> = new Map([
  ["vllm", "vllm"],
  ["sglang", "sglang"],
]);
/** SGLang waits for the token for up to 20 s. */
const GENERATION_CHECK_MS = 21_000;

export interface DoorOptions {
  readonly engine: EngineOptions;
  /** Health checks may generate tokens. */
  readonly checksGenerate: boolean;
  /** Names of a model besides its id. */
  aliases(id: string): readonly string[];
}

export function engineDoor(
  catalog: Pick<ModelCatalog, "add">,
  http: HttpEngines,
  { engine: engineOptions, checksGenerate, aliases }: DoorOptions,
): Door {
  async function check(engine: Engine, deadlineMs: number): Promise<void> {
    const byGenerating = CHECKS_BY_GENERATING.has(engine.dialect);
    const said = await engine.serving(deadlineMs);
    if (said === "not_serving") throw new Error("the engine says that it is not serving");
    if (said === "serving" && !(byGenerating && checksGenerate) && !SERVES_REGARDLESS.has(engine.dialect)) return;
    if (byGenerating && !checksGenerate) {
      await engine.modelInfo(deadlineMs); // a sign of life
      return;
    }
    const { healthy, message } = await engine.health(
      byGenerating ? Math.max(deadlineMs, GENERATION_CHECK_MS) : deadlineMs,
    );
    if (!healthy) throw new Error(`the engine says it is not healthy: ${message}`);
  }

  async function overGrpc(url: string, spec: WorkerSpec, deadlineMs: number): Promise<Found> {
    const { runtime } = spec;
    const engine = await connectEngine(url, {
      ...engineOptions,
      detectDeadlineMs: deadlineMs,
      ...(runtime !== undefined && { dialect: runtime }),
    });
    try {
      const [info, facts] = await Promise.all([
        engine.modelInfo(deadlineMs),
        engine.learn(deadlineMs),
        check(engine, deadlineMs),
      ]);
      const model = await catalog.add(info, engine, spec.models);
      const { dialect } = engine;
      return {
        url,
        kind: "grpc",
        dialect,
        facts,
        waitsForReasoning: facts.waitsForReasoning,
        models: [model],
        httpModels: [],
        identity: identityOf(info, facts),
      };
    } finally {
      engine.close();
    }
  }

  async function overHttp(url: string, spec: WorkerSpec, deadlineMs: number): Promise<Found> {
    const engine = await http.connect(url, spec, deadlineMs);
    try {
      const [served] = await Promise.all([engine.models(deadlineMs), checkHttp(engine, deadlineMs)]);
      const [first] = served;
      if (first === undefined) throw new EngineError("failed", "the server has no model");
      const created = Math.floor(Date.now() / 1000);
      const [id, ...names] = spec.models ?? [];
      const shown = id === undefined ? served : [{ ...first, id }];
      return {
        url,
        kind: "http",
        dialect: HTTP_DIALECT,
        facts: engine.facts,
        waitsForReasoning: engine.facts.waitsForReasoning,
        models: shown.map((model) => model.id),
        cacheNames: id === undefined ? cacheNames(served) : undefined,
        httpModels: shown.map((model) => ({
          id: model.id,
          aliases: [...new Set([...names, ...aliases(model.id)])],
          contextLength: model.contextLength,
          created,
        })),
        identity: identityOfHttp(served),
      };
    } finally {
      engine.close();
    }
  }

  async function overEither(place: string, spec: WorkerSpec, deadlineMs: number): Promise<Found> {
    const [byHttp, byGrpc] = await Promise.allSettled([
      overHttp(`http://${place}`, spec, deadlineMs),
      overGrpc(`grpc://${place}`, spec, deadlineMs),
    ]);
    if (byHttp.status === "fulfilled") return byHttp.value;
    if (byGrpc.status === "fulfilled") return byGrpc.value;
    throw new Error(`by gRPC: ${messageOf(byGrpc.reason)}; by HTTP: ${messageOf(byHttp.reason)}`, {
      cause: byGrpc.reason,
    });
  }

  return {
    register(spec, deadlineMs) {
      const address = workerAddress(spec.url);
      const url = urlOf(address);
      if (address.scheme === undefined) return overEither(address.place, spec, deadlineMs);
      return address.scheme.startsWith("http") ? overHttp(url, spec, deadlineMs) : overGrpc(url, spec, deadlineMs);
    },
    contact(spec, found, onLost): Contact {
      const { kind, url, dialect, facts } = found;
      if (kind === "http" && facts !== undefined) {
        const engine = http.create(url, spec, facts);
        return {
          ...engine,
          check: (deadlineMs) => checkHttp(engine, deadlineMs),
          identity: async (deadlineMs) => identityOfHttp(await engine.models(deadlineMs)),
        };
      }
      const engine = createControlEngine({ url, dialect, facts }, engineOptions, onLost);
      const publisher = PUBLISHERS.get(dialect);
      // one that is named is asked itself: it may repeat what it told before, which its gRPC server does not
      const kvEvents =
        publisher && publishedKvSource(url, spec.labels ?? {}, { dataParallelSize: 1, ...facts }, publisher);
      return {
        ...engine,
        ...(kvEvents !== undefined && { kvEvents }),
        check: (deadlineMs) => check(engine, deadlineMs),
        identity: (deadlineMs) => askIdentity(engine, deadlineMs),
      };
    },
  };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function checkHttp(engine: HttpEngine, deadlineMs: number): Promise<void> {
  const said = await engine.serving(deadlineMs);
  if (said === "not_serving") throw new Error("its health path says that it is not healthy");
  if (said === "unimplemented") await engine.models(deadlineMs); // a sign of life
}
