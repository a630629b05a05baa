/** One life of a gateway: start, rest, idle reading, a warm-up that is thrown away, then the cells of a group. */
import type { IdleReading } from "../loadgen/idle.ts";
import type { LoadResult } from "../loadgen/result.ts";
import { type Group, whyNotCounted } from "./cells.ts";
import { idleOf, loadGateway } from "./client.ts";
import { type EngineKind, startEngine } from "./engine.ts";
import { type GatewayKind, startGateway } from "./gateways.ts";

export interface Session {
  readonly readyMs: number;
  readonly idle: IdleReading;
  /** Time to first token of the first request. */
  readonly firstMs: number | undefined;
  /** Results by cell; several where a cell repeats. */
  readonly cells: ReadonlyMap<string, readonly LoadResult[]>;
}

/** Readiness can come before a gateway has settled. */
const REST_MS = 3000;
/** A paced cell that other work on the machine kept from its pace is sent again. */
const ATTEMPTS = 3;
const FIRST_REQUEST = ["--prompt-tokens", "100", "--max-tokens", "8"];

/** Runs a group against a gateway. `seed` gives the prompts: equal seeds send equal requests. */
export async function runSession(
  kind: GatewayKind,
  engineKind: EngineKind,
  group: Group,
  seed: number,
  idleSeconds: number,
): Promise<Session> {
  const engine = await startEngine(engineKind, group.gapMs);
  try {
    const gateway = await startGateway(kind, engine.port);
    try {
      await Bun.sleep(group.restMs ?? REST_MS);
      const idle = await idleOf(gateway, group.idleSeconds ?? idleSeconds);
      const seeded = (flags: readonly string[], cell: number) => [...flags, "--seed", String(seed * 1000 + cell)];
      const [first] = await loadGateway(gateway, idle, seeded(FIRST_REQUEST, 999));
      for (const [i, flags] of group.warmup.entries()) await loadGateway(gateway, idle, seeded(flags, 900 + i));
      const cells = new Map<string, LoadResult[]>();
      for (const [i, cell] of group.cells.entries()) {
        let results: LoadResult[] = [];
        for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
          results = await loadGateway(gateway, idle, seeded(cell.flags, 10 * attempt + i + 1));
          if (!cell.paced || whyNotCounted(cell, results) === undefined) break;
        }
        cells.set(cell.id, results);
      }
      return { readyMs: gateway.readyMs, idle, firstMs: first?.time_to_first_token_ms?.p50, cells };
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
}
