import type { RuleUse } from "./script/book.ts";
import { ScriptError } from "./script/load.ts";
import type { Simulator } from "./simulator.ts";
import type { RequestRecord } from "./stats.ts";

export interface StatsServer {
  readonly port: number;
  stop(): Promise<void>;
}

const USAGE = `GET    /stats
GET    /requests?last=N&ids=1
GET    /blocks
POST   /match     {"token_ids": [1, 2, 3], "rank": 0}
POST   /alive?value=false
GET    /faults
POST   /faults    {"fault": {"kind": "reset", "after_tokens": 3}, "times": 1}
DELETE /faults
POST   /freeze?ms=5000
POST   /restart   {"block_size": 32, "down_ms": 500}
`;

/**
 * Serves JSON on the loopback address, from a process of its own as it were: it answers while the engine is frozen or down.
 * `/stats`, `/requests` (`?ids=1` adds the prompts' token ids, `?last=N` limits), what is cached (`/blocks`, `/match`), and what lets things go wrong: `/alive`,
 * `/faults`, `/freeze` (without `ms`: until `ms=0`) and `/restart`.
 */
export function serveStats(port: number, engine: Simulator, faults: () => readonly RuleUse[]): StatsServer {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      switch (`${request.method} ${pathname}`) {
        case "GET /stats":
          return Response.json(engine.stats());
        case "GET /requests":
          return Response.json(requestList(engine.requests(), searchParams));
        case "GET /blocks":
          return Response.json({ ranks: engine.blocks() });
        case "POST /match":
          return changed(request, (body) => ({ tokens: matched(engine, body) }));
        case "POST /alive":
          engine.setAlive(searchParams.get("value") !== "false");
          return Response.json({ alive: engine.stats().alive });
        case "GET /faults":
          return Response.json(faultList(faults()));
        case "POST /faults":
          return changed(request, (body) => {
            engine.setFault(body);
            return faultList(faults());
          });
        case "DELETE /faults":
          engine.clearFaults();
          return Response.json([]);
        case "POST /freeze": {
          const ms = Number(searchParams.get("ms") ?? Number.POSITIVE_INFINITY);
          if (!(ms >= 0)) return problem("ms: must be a number of milliseconds");
          engine.freeze(ms);
          return Response.json({ frozen: ms > 0 });
        }
        case "POST /restart":
          return changed(request, async (body) => {
            await engine.restart(restartChange(body));
            return { port: engine.port };
          });
        default:
          return new Response(USAGE, { status: 404 });
      }
    },
  });
  return { port: server.port ?? port, stop: () => server.stop(true) };
}

function problem(error: string): Response {
  return Response.json({ error }, { status: 400 });
}

/** Answers with what `change` makes of the JSON body, an empty one being an empty object. */
async function changed(request: Request, change: (body: unknown) => unknown): Promise<Response> {
  try {
    const text = await request.text();
    const body: unknown = text === "" ? {} : JSON.parse(text);
    return Response.json(await change(body));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ScriptError) return problem(error.message);
    throw error;
  }
}

function matched(engine: Simulator, body: unknown): number {
  const { token_ids: ids, rank = 0 } = body as Record<string, unknown>;
  if (!Array.isArray(ids) || !ids.every(Number.isInteger)) throw new ScriptError("token_ids: must be a list of ids");
  try {
    return engine.match(Uint32Array.from(ids as number[]), rank as number);
  } catch (error) {
    if (error instanceof RangeError) throw new ScriptError(error.message);
    throw error;
  }
}

function restartChange(body: unknown): { blockSize?: number; downMs?: number } {
  const { block_size: blockSize, down_ms: downMs } = body as Record<string, unknown>;
  const isNumber = (value: unknown, least: number) => Number.isInteger(value) && (value as number) >= least;
  if (blockSize !== undefined && !isNumber(blockSize, 1))
    throw new ScriptError("block_size: must be a whole number above 0");
  if (downMs !== undefined && !isNumber(downMs, 0)) throw new ScriptError("down_ms: must be a number of milliseconds");
  return {
    ...(blockSize === undefined ? {} : { blockSize: blockSize as number }),
    ...(downMs === undefined ? {} : { downMs: downMs as number }),
  };
}

function faultList(faults: readonly RuleUse[]): unknown[] {
  return faults.map(({ rule, uses }) => ({
    ...(rule.fault ? { fault: rule.fault } : {}),
    ...(rule.delayMs > 0 ? { delay_ms: rule.delayMs } : {}),
    ...(rule.pattern === undefined ? {} : { pattern: String(rule.pattern) }),
    ...(Number.isFinite(rule.times) ? { times: rule.times } : {}),
    probability: rule.probability,
    uses,
  }));
}

function requestList(all: readonly RequestRecord[], query: URLSearchParams): unknown[] {
  const last = Number(query.get("last") ?? "0");
  const records = last > 0 ? all.slice(-last) : all;
  return records.map(({ promptIds, ...rest }) =>
    query.get("ids") === "1" ? { ...rest, promptIds: [...promptIds] } : rest,
  );
}
