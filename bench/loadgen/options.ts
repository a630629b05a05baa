import { parseArgs } from "node:util";
import { type PromptMode, parsePromptMode } from "./prompts.ts";

export const HELP = `Load generator for OpenAI-compatible gateways.

  bun bench/loadgen/main.ts --url URL [flags]

Load
  --url URL            gateway, e.g. http://127.0.0.1:30000
  --path PATH          /v1/chat/completions (default) or /v1/completions
  --model NAME         model to ask for (default mock-model)
  --streams N          closed loop: N requests in flight, each on its own connection (1)
  --rate R             open loop instead: R arrivals a second, Poisson; latency counts from the planned arrival
  --requests N         requests of a repeat (default: as many as --streams)
  --warmup N           requests before measuring, not counted (0)
  --repeat N           repeats (1); rows give min / median / max
  --pause-ms N         between repeats (200)
  --timeout-secs N     limit of one repeat; what is then open counts as errors (120)

Requests
  --prompt-tokens N    tokens of each prompt, the template's not counted (100)
  --max-tokens N       tokens of each answer (512)
  --prompts MODE       unique, same, or shared:TOKENS:GROUPS (unique)
  --first N            number of the first prompt of the seed, to go on where another load ended (0)
  --seed N             prompts and arrivals (default: from the clock, so that prompts are new)
  --unary              stream: false
  --extra JSON         object whose members are added to each request
  --header 'N: V'      repeatable
  --expect N           completion tokens that each usage must say (default: --max-tokens; 0 = any)

What is watched
  --pid PID[,PID]      processes whose CPU and memory to read
  --children           and their descendants
  --idle-ms-s F        their idle CPU in ms a second, taken off in the net figures
  --idle-secs N        no load: read CPU and memory for N seconds

Output
  --label TEXT         first column of the row
  --row                one Markdown row; --header-row prints the head of the table
  --json               one JSON line a repeat

Exit status: 0 good, 1 could not run, 3 some request failed.
`;

/** The command line does not make sense. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export interface LoadOptions {
  readonly url: URL;
  readonly path: string;
  readonly model: string;
  readonly streams: number;
  /** Arrivals a second; undefined is the closed loop. */
  readonly rate: number | undefined;
  readonly requests: number;
  readonly warmup: number;
  readonly timeoutMs: number;
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly prompts: PromptMode;
  /** Number of the first prompt. */
  readonly first: number;
  readonly seed: number;
  readonly unary: boolean;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly headers: readonly string[];
  readonly expect: number | undefined;
  readonly pids: readonly number[];
  readonly idleMsPerSecond: number;
}

export interface CommandLine {
  readonly load: LoadOptions;
  readonly children: boolean;
  readonly repeat: number;
  readonly pauseMs: number;
  /** Only watch, for so many seconds. */
  readonly idleSecs: number | undefined;
  readonly label: string;
  readonly output: "text" | "row" | "json";
  readonly help: boolean;
  readonly headerRow: boolean;
}

const string = { type: "string" } as const;
const boolean = { type: "boolean" } as const;
const FLAGS = {
  url: string,
  path: string,
  model: string,
  streams: string,
  rate: string,
  requests: string,
  warmup: string,
  repeat: string,
  "pause-ms": string,
  "timeout-secs": string,
  "prompt-tokens": string,
  "max-tokens": string,
  prompts: string,
  first: string,
  seed: string,
  unary: boolean,
  extra: string,
  header: { type: "string", multiple: true },
  expect: string,
  pid: string,
  children: boolean,
  "idle-ms-s": string,
  "idle-secs": string,
  label: string,
  row: boolean,
  "header-row": boolean,
  json: boolean,
  help: { type: "boolean", short: "h" },
} as const;

/** Reads the flags; throws UsageError. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const values = parsed(args);
  const number = (name: string, text: string | undefined, otherwise: number): number => {
    if (text === undefined) return otherwise;
    const value = Number(text);
    if (text === "" || !(value >= 0)) throw new UsageError(`--${name} must be a number of at least 0`);
    return value;
  };
  const streams = Math.max(1, number("streams", values.streams, 1));
  const maxTokens = number("max-tokens", values["max-tokens"], 512);
  const prompts = parsePromptMode(values.prompts ?? "unique");
  if (prompts === undefined) throw new UsageError("--prompts must be unique, same or shared:TOKENS:GROUPS");
  const rate = values.rate === undefined ? undefined : number("rate", values.rate, 0);
  if (rate === 0) throw new UsageError("--rate must be above 0");
  const idleSecs = values["idle-secs"] === undefined ? undefined : number("idle-secs", values["idle-secs"], 1);
  const only = values.help === true || values["header-row"] === true || idleSecs !== undefined;
  if (values.url === undefined && !only) throw new UsageError("--url is needed");
  const expect = number("expect", values.expect, maxTokens);
  return {
    load: {
      url: readUrl(values.url ?? "http://127.0.0.1"),
      path: values.path ?? "/v1/chat/completions",
      model: values.model ?? "mock-model",
      streams,
      rate,
      requests: number("requests", values.requests, streams),
      warmup: number("warmup", values.warmup, 0),
      timeoutMs: number("timeout-secs", values["timeout-secs"], 120) * 1000,
      promptTokens: number("prompt-tokens", values["prompt-tokens"], 100),
      maxTokens,
      prompts,
      first: number("first", values.first, 0),
      seed: number("seed", values.seed, Date.now() >>> 0),
      unary: values.unary === true,
      extra: readExtra(values.extra),
      headers: values.header ?? [],
      expect: expect === 0 ? undefined : expect,
      pids: (values.pid ?? "").split(",").flatMap((pid) => (pid === "" ? [] : [number("pid", pid, 0)])),
      idleMsPerSecond: number("idle-ms-s", values["idle-ms-s"], 0),
    },
    children: values.children === true,
    repeat: Math.max(1, number("repeat", values.repeat, 1)),
    pauseMs: number("pause-ms", values["pause-ms"], 200),
    idleSecs,
    label: values.label ?? "load",
    output: values.json ? "json" : values.row ? "row" : "text",
    help: values.help === true,
    headerRow: values["header-row"] === true,
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function readUrl(text: string): URL {
  if (!URL.canParse(text)) throw new UsageError("--url is not a URL");
  const url = new URL(text);
  if (url.protocol !== "http:") throw new UsageError("only http:// is supported");
  return url;
}

function readExtra(text: string | undefined): Record<string, unknown> {
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {}
  throw new UsageError("--extra must be a JSON object");
}
