/** The cells of the benchmarks: what load is sent, and which figures are read from it. */
import type { LoadResult } from "../loadgen/result.ts";

/** A figure of a cell; lower is better. */
export interface Figure {
  readonly id: string;
  readonly label: string;
  readonly unit: string;
  readonly digits: number;
  /** Greatest ratio to the peer that we accept. */
  readonly target?: number;
}

/** A figure that is read from a load. */
export interface LoadFigure extends Figure {
  value(result: LoadResult): number | undefined;
}

export interface Cell {
  readonly id: string;
  /** Flags of the load generator. */
  readonly flags: readonly string[];
  /** Somebody's core is full all the time, so its latency says how long the queue is, not what a gateway adds. */
  readonly saturates?: boolean;
  /** Tokens come one by one, and must leave so. */
  readonly paced?: boolean;
  readonly figures: readonly LoadFigure[];
}

/** Most events of a paced stream that may come together with the one before. On a quiet machine there are none. */
const MAX_COALESCED = 0.05;

/** Why results of a cell do not count; undefined when they do. */
export function whyNotCounted(cell: Cell, results: readonly LoadResult[]): string | undefined {
  const failed = results.find((r) => r.errors > 0);
  // A gateway that drops work has less to do.
  if (failed !== undefined) return `${failed.errors} errors (${failed.first_error})`;
  // One that is kept from running handles several tokens at a time, which costs less of everything but time.
  const late = Math.max(0, ...results.map((r) => r.coalesced_share ?? 0));
  return cell.paced && late > MAX_COALESCED
    ? `${(late * 100).toFixed(0)} % of the tokens came late, together with the next`
    : undefined;
}

/** Cells of one process of a gateway. */
export interface Group {
  readonly id: string;
  /** Time between two tokens of a stream at the engine; 0 = the whole answer at once, still a message a token. */
  readonly gapMs: number;
  /** Rest between readiness and the idle reading, where it is not the usual one. */
  readonly restMs?: number;
  /** How long it is idle for the reading, where that is not the usual time. */
  readonly idleSeconds?: number;
  /** Loads that are sent before and thrown away: caches fill, and a gateway with a just-in-time compiler gets to compile. */
  readonly warmup: readonly (readonly string[])[];
  readonly cells: readonly Cell[];
}

export const READY: Figure = {
  id: "ready",
  label: "start to ready, tokenizer cached",
  unit: "ms",
  digits: 0,
  target: 0.1,
};
export const IDLE_RSS: Figure = { id: "idle_rss", label: "memory (RSS), idle", unit: "MB", digits: 0 };
export const IDLE_CPU: Figure = { id: "idle_cpu", label: "CPU, idle", unit: "ms/s", digits: 2 };

export const RESTED_CPU: Figure = {
  id: "rested_cpu",
  label: "CPU, idle, a minute after the start",
  unit: "ms/s",
  digits: 2,
};

export const FIRST: Figure = { id: "first", label: "TTFT of the first request after a start", unit: "ms", digits: 1 };

const words = (text: string): string[] => text.split(" ");

const figure = (
  id: string,
  label: string,
  unit: string,
  digits: number,
  value: (result: LoadResult) => number | undefined,
  target?: number,
): LoadFigure => ({ id, label, unit, digits, value, ...(target !== undefined && { target }) });

const perToken = (id: string, label: string, target: number): LoadFigure =>
  figure(id, `CPU per token, ${label}`, "us", 2, (r) => r.cpu_us_per_token, target);
const perRequest = (id: string, label: string, target?: number): LoadFigure =>
  figure(id, `CPU per request, ${label}`, "ms", 3, (r) => r.cpu_ms_per_request, target);
const firstToken = (id: string, label: string): LoadFigure =>
  figure(id, `TTFT p50, ${label}`, "ms", 2, (r) => r.time_to_first_token_ms?.p50, 0.5);

/** A just-in-time compiler is at work until about so many tokens, or requests, have passed: then what months will be like has begun. */
const COMPILED_TOKENS = 153_600;
const COMPILED_REQUESTS = 12_000;

/** A token per stream each 15 ms: each one costs a read, a wake-up and a write. */
export function pacedGroup(quick: boolean): Group {
  const tokens = quick ? 120 : 400;
  const load = `--max-tokens ${tokens} --prompt-tokens 100`;
  return {
    id: "paced",
    gapMs: 15,
    warmup: [
      words(`--streams 256 --max-tokens ${quick ? 120 : COMPILED_TOKENS / 256} --prompt-tokens 100`),
      words(`--streams 256 --requests ${quick ? 256 : COMPILED_REQUESTS} --max-tokens 1 --prompt-tokens 100`),
    ],
    cells: [
      {
        id: "paced64",
        paced: true,
        flags: words(`--streams 64 ${load}`),
        figures: [perToken("paced64", "paced, 64 streams", 0.75)],
      },
      {
        id: "paced256",
        paced: true,
        flags: words(`--streams 256 ${load}`),
        figures: [
          perToken("paced256", "paced, 256 streams", 0.65),
          figure("rss256", "memory (RSS), 256 streams", "MB", 0, (r) => r.rss_peak_mb, 0.6),
        ],
      },
    ],
  };
}

/** An engine that answers at once: compute alone, and small or long requests back to back. */
export function bulkGroup(quick: boolean): Group {
  const repeat = quick ? 1 : 3;
  const some = quick ? 1000 : 2000;
  const few = quick ? 40 : 100;
  const bulk = `--max-tokens 512 --prompt-tokens 100 --repeat ${repeat}`;
  return {
    id: "bulk",
    gapMs: 0,
    warmup: [
      words("--streams 64 --requests 512 --max-tokens 512 --prompt-tokens 100"),
      words(`--streams 32 --requests ${quick ? 2 * some : COMPILED_REQUESTS} --max-tokens 8 --prompt-tokens 100`),
      words(`--unary --streams 16 --requests ${some} --max-tokens 16 --prompt-tokens 100`),
      words("--streams 1 --requests 150 --max-tokens 1 --prompt-tokens 8000"),
    ],
    cells: [
      {
        id: "bulk64",
        saturates: true,
        flags: words(`--streams 64 --requests 256 ${bulk}`),
        figures: [perToken("bulk64", "in bulk, 64 streams", 0.5)],
      },
      {
        id: "bulk256",
        saturates: true,
        flags: words(`--streams 256 --requests 512 ${bulk}`),
        figures: [perToken("bulk256", "in bulk, 256 streams", 0.5)],
      },
      {
        id: "small",
        saturates: true,
        flags: words(
          `--streams 32 --requests ${some} --repeat ${repeat} --warmup 100 --prompt-tokens 100 --max-tokens 8`,
        ),
        figures: [perRequest("small", "100 in, 8 out, streamed, 32 at once", 0.6)],
      },
      {
        id: "unary",
        saturates: true,
        flags: words(
          `--unary --streams 16 --requests ${some} --repeat ${repeat} --warmup 100 --prompt-tokens 100 --max-tokens 16`,
        ),
        figures: [perRequest("unary", "100 in, 16 out, unary, 16 at once")],
      },
      {
        id: "first1k",
        flags: words(`--requests ${few} --repeat ${repeat} --warmup 10 --prompt-tokens 1000 --max-tokens 1`),
        figures: [firstToken("ttft1k", "1k first-seen prompts, one at a time")],
      },
      {
        id: "first8k",
        flags: words(`--requests ${few} --repeat ${repeat} --warmup 10 --prompt-tokens 8000 --max-tokens 1`),
        figures: [firstToken("ttft8k", "8k first-seen prompts, one at a time")],
      },
      {
        id: "long",
        saturates: true,
        flags: words(`--streams 8 --requests ${few} --repeat ${repeat} --warmup 8 --prompt-tokens 8000 --max-tokens 1`),
        figures: [perRequest("long", "8k in, 1 out, 8 at once", 0.4)],
      },
    ],
  };
}

/**
 * Nothing is sent: what a gateway costs that nobody asks, when it has done what there was to do after its start. What comes every ten
 * seconds, or thirty, is to come as often as it does.
 */
export const REST_GROUP: Group = { id: "rest", gapMs: 15, restMs: 60_000, idleSeconds: 60, warmup: [], cells: [] };
