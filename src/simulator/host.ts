import type { Ranks } from "./core/ranks.ts";
import type { ProtocolAge } from "./grpc/protocol-age.ts";
import type { Pairing } from "./handover/handover.ts";
import type { KvRelay } from "./kv/grpc-relay.ts";
import type { KvPorts } from "./kv/zmq-publisher.ts";
import type { SimulatedModel } from "./model/simulated-model.ts";
import type { Content } from "./output/answer.ts";
import type { RuleBook } from "./script/book.ts";
import type { ScriptRule } from "./script/rule.ts";
import type { RequestLog, SimulatorCounts } from "./stats.ts";

/** A request that runs, as the engine's Abort call knows it. */
export interface OpenRequest {
  abort(): void;
}

/** Everything that a dialect and its generations need of the simulated engine. */
export interface SimulatorHost {
  readonly model: SimulatedModel;
  readonly ranks: Ranks;
  readonly counts: SimulatorCounts;
  readonly log: RequestLog;
  /** Requests that run, by their id: an id may be open more than once. */
  readonly open: Map<string, Set<OpenRequest>>;
  /** What the script and the faults set at run time make of a prompt. */
  readonly rules: RuleBook;
  /** Release of the protocol that it speaks. */
  readonly protocol: ProtocolAge;
  /** The engine behind the server has no tokenizer: it can't look for stop strings. */
  readonly noTokenizer: boolean;
  /** It has a reasoning parser, and starts constraints behind the thought. */
  readonly waitsForReasoning: boolean;
  /** What compiles constraints, where the dialect tells. */
  readonly grammarBackend: "xgrammar" | "outlines" | "none";
  readonly echo: boolean;
  /** Tokens of an echo where the request sets no limit. */
  readonly echoTokens: number;
  readonly tokensPerMessage: number;
  /** Send what a lagging reader missed as one message. */
  readonly mergeLagging: boolean;
  /** Absent when the engine publishes no KV events. */
  readonly kvRelay: KvRelay | undefined;
  /** Absent in an engine that does all by itself. */
  readonly pairing: Pairing | undefined;
  /** Where KV events are published over ZeroMQ. */
  kvPorts(): KvPorts | undefined;
  /** False: the engine core has died behind a server that goes on listening. */
  alive: boolean;
  readonly startedAt: number;
  /** Default answer; throws without a tokenizer. */
  answer(promptTokens: number, cachedTokens: number, variant: number): Content;
  /** The whole process stands still for that long; Infinity: until it is thawed. */
  freeze(ms: number): void;
  /** A script ends the process. */
  exit(code: number): void;
}

/** Books a request as running; gives what takes it out again. */
export function opened({ open }: SimulatorHost, id: string, request: OpenRequest): () => void {
  const twins = open.get(id) ?? new Set();
  open.set(id, twins.add(request));
  return () => {
    twins.delete(request);
    if (twins.size === 0 && open.get(id) === twins) open.delete(id);
  };
}

/** What applies to a prompt, counted as used; undefined when nothing does. */
export function takeRule(host: SimulatorHost, prompt: Uint32Array): ScriptRule | undefined {
  return host.rules.take(() => decode(host, prompt));
}

function decode(host: SimulatorHost, prompt: Uint32Array): string {
  const decoder = host.model.tokenizer?.decoder({ skipSpecialTokens: false });
  if (!decoder) return "";
  let text = "";
  for (const id of prompt) text += decoder.push(id);
  return text + decoder.end();
}
