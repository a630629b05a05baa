/** How a worker is chosen among those that can take a request. */
import type { POLICY_NAMES } from "../config/policy-names.ts";
import type { ChainKeys, PrefixMatch, PrefixReader, RootKey, StickyTable } from "../threads/prefix-types.ts";
import type { MediaSpan, RouteAsk } from "./ask.ts";
import type { RoutingSettings } from "./settings.ts";

export type PolicyName = (typeof POLICY_NAMES)[number];

/** What a policy knows of a worker, or of one rank of it. */
export interface Candidate {
  readonly id: string;
  readonly url: string;
  /** Row on the fleet board. */
  readonly slot: number;
  /** Number in the prefix index; below 0: it has none, and nothing is known of its cache. */
  readonly member: number;
  /** Larger ones are used first. */
  readonly priority: number;
  /** What a token costs there beside the others. */
  readonly cost: number;
  /** Tokens of a block of its KV cache, as the index cuts them. */
  readonly blockSize: number;
  /** Requests that it runs at once; 0 = unknown. */
  readonly maxRunning: number;
  /** Its KV events are received. */
  readonly sendsEvents: boolean;
  /** The name under which the index has what it caches of the model, unless that is the model's. */
  readonly cacheModel?: string | undefined;
  /** The adapter that the model is there. */
  readonly cacheLora?: string | undefined;
}

/** What one candidate has to do, as `CandidateLoad` tells it. */
export interface LoadFigures {
  running: number;
  queuedTokens: number;
  /** Below 0: it does not tell. */
  kvUsage: number;
}

/** What candidates have to do; asked only as far as it decides. */
export interface CandidateLoad {
  /** Most of it at one go, for those who weigh all candidates: cheaper than one by one. Absent: it is asked for one by one. */
  read?(candidate: Candidate, into: LoadFigures): void;
  /** Requests that it has, of all threads. */
  running(candidate: Candidate): number;
  /** Tokens of prompts that wait there and are not in its cache: of all threads, or as it told of late if that is more. */
  queuedTokens(candidate: Candidate): number;
  /** Share of its KV cache in use, 0 to 1; undefined where it does not tell. */
  kvUsage(candidate: Candidate): number | undefined;
  /** Tokens a second that it generates; undefined where it does not tell. */
  throughput(candidate: Candidate): number | undefined;
  /** When it was last chosen, in milliseconds since 1970; 0 = never. */
  lastUsed(candidate: Candidate): number;
}

/** The index, and the chain of a prompt in it. */
export interface PrefixIndex extends PrefixReader {
  root(model: string, blockSize: number, lora?: string, cacheSalt?: string): RootKey;
  /** The keys of all full blocks. The arrays are reused by the next call for the same size of blocks. */
  chain(root: RootKey, ids: Uint32Array, blockSize: number, media?: readonly MediaSpan[]): ChainKeys;
}

/** The parts of a request that is disaggregated have policies of their own. */
export type Leg = "regular" | "prefill" | "decode";

export interface PolicyContext {
  readonly model: string;
  readonly leg: Leg;
  /** There are more workers than the candidates: they may be back for the next request. */
  readonly hasOthers?: boolean | undefined;
  readonly load: CandidateLoad;
  readonly index: PrefixIndex;
  readonly sticky: StickyTable;
  readonly settings: RoutingSettings;
  /** Milliseconds since 1970. */
  readonly now: number;
  random(): number;
  /** Counts what `manual`, `consistent_hashing` and `prefix_hash` decided by, under SMG's names of branches. Not called when explaining. */
  count(branch: string): void;
}

export const BRANCHES = ["hit", "tie", "miss", "balance", "key", "target", "only", "turn"] as const;
/** Why a worker was chosen. */
export type Branch = (typeof BRANCHES)[number];

export interface Choice<C extends Candidate> {
  readonly worker: C;
  /** Tokens of the prompt that it holds, by what is known. */
  readonly matchedTokens: number;
  /** It told so by its events. */
  readonly isExact: boolean;
  readonly branch: Branch;
  /** The chain in which the blocks were looked up; absent where none was needed. Reused by the next choice. */
  readonly chain?: ChainKeys | undefined;
  /** With `explains` only: every candidate. */
  readonly scores?: readonly CandidateScore[] | undefined;
  readonly match?: PrefixMatch | undefined;
}

export interface CandidateScore {
  readonly id: string;
  readonly matchedTokens: number;
  readonly isExact: boolean;
  readonly queuedTokens: number;
  readonly running: number;
  readonly kvUsage: number | undefined;
  /** What the policy weighs, least is best; undefined where it does not score. */
  readonly score: number | undefined;
}

export interface Policy {
  readonly name: PolicyName;
  /** It goes by the tokens of the prompt. */
  readonly needsTokens: boolean;
  /**
   * Chooses among at least one candidate; nothing is booked. With `explains` nothing is changed either: no turn passes and no key is
   * assigned, so that the next request is told of as it will go.
   */
  choose<C extends Candidate>(
    candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
    explains?: boolean,
  ): Choice<C>;
}
