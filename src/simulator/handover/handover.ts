import type { Depot } from "./depot.ts";

/** What a request says of the KV of its prompt, in an engine that is one of a pair. */
export type Handover =
  | {
      readonly kind: "give";
      /** What the other side will ask for. */
      readonly key: string;
      /**
       * `bootstrap`: it computes when the other side has asked, and answers when that has everything. `after`: it answers as ever,
       * and its blocks stay until they are fetched.
       */
      readonly order: "bootstrap" | "after";
      /** The last message tells where the blocks are. */
      readonly tells: boolean;
    }
  | {
      readonly kind: "take";
      readonly key: string;
      readonly host: string;
      readonly port: number;
      /** Engine and blocks that are expected there. */
      readonly engineId?: string | undefined;
      readonly blockIds?: readonly number[] | undefined;
      /** The prompt may not have come to the other side yet. */
      readonly waits: boolean;
      /** The prompt counts as cached; else it tells what the other side has found in its cache. */
      readonly countsAsCached: boolean;
    };

/** What a paired engine is. */
export interface Pairing {
  readonly role: "regular" | "prefill" | "decode";
  /** vLLM's. */
  readonly connector: "nixl" | "mooncake" | undefined;
  readonly engineId: string;
  /** Where others fetch from; absent in an engine that only decodes. */
  readonly depot: Depot | undefined;
  /** Address of the depot, as handed on. */
  readonly host: string;
  /** How long one side waits for the other, in milliseconds. */
  readonly timeoutMs: number;
  /** How long blocks wait for being fetched. */
  readonly leaseMs: number;
  /** Time that the KV of so many tokens takes, in real milliseconds. */
  transferMs(tokens: number): number;
}

export interface HandoverCounts {
  /** Prompts whose KV another engine has fetched. */
  given: number;
  /** Prompts whose KV was fetched. */
  taken: number;
  /** Requests to fetch whose parameters made no sense: the prompt was computed here. */
  recomputed: number;
  /** Failures on either side. */
  failed: number;
  /** Blocks that nobody fetched in time. */
  expired: number;
  /** Blocks that the other side said it does not need. */
  dropped: number;
}

export function emptyHandoverCounts(): HandoverCounts {
  return { given: 0, taken: 0, recomputed: 0, failed: 0, expired: 0, dropped: 0 };
}

/** By which both sides see whether they mean the same prompt. */
export function promptDigest(prompt: Uint32Array): string {
  return Bun.hash(new Uint8Array(prompt.buffer, prompt.byteOffset, prompt.byteLength)).toString(16);
}
