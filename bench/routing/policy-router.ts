/** The policies of the gateway before simulated engines, with an index and loads of ours. */
import { defaultRules } from "../../src/fleet/routing.ts";
import { policyOf } from "../../src/routing/policies/index.ts";
import type {
  Candidate,
  CandidateLoad,
  Choice,
  PolicyContext,
  PolicyName,
  PrefixIndex,
} from "../../src/routing/policy.ts";
import { StickyBoard } from "../../src/threads/sticky-board.ts";
import { mixSeed, Random } from "../loadgen/random.ts";
import type { TokenAsk } from "./prompt-tokens.ts";
import type { EngineState } from "./replay.ts";

const MODEL = "model";
const START = Date.UTC(2026, 0, 1);

/** The gateway's defaults. */
const SETTINGS = defaultRules().settings;

/** Policies that go by keys are told them; to others they would tell what they are to find out. */
const isKeyed = (name: PolicyName): boolean => name === "manual" || name === "consistent_hashing";

export interface PolicyRouter {
  choose(ask: TokenAsk, engines: readonly EngineState[]): Choice<Candidate>;
  /** Milliseconds since 1970 at a moment of the stream. */
  timeOf(atMs: number): number;
}

/**
 * `sendsEvents`: the engines tell of their caches. `threads`: so many serve, and each request comes to one of them. Members of the index
 * are numbers of engines.
 */
export function policyRouter(
  name: PolicyName,
  index: PrefixIndex,
  load: CandidateLoad,
  sendsEvents: boolean,
  threads = 1,
): PolicyRouter {
  const policies = Array.from({ length: threads }, () => policyOf(name));
  const sticky = StickyBoard.create();
  const random = new Random(mixSeed(0x6f7261));
  let candidates: readonly Candidate[] = [];
  const timeOf = (atMs: number): number => START + atMs;
  return {
    timeOf,
    choose: ({ ids, atMs, key }, engines) => {
      if (candidates.length !== engines.length)
        candidates = engines.map((engine, slot) => candidateOf(engine, slot, sendsEvents));
      const context: PolicyContext = {
        model: MODEL,
        leg: "regular",
        load,
        index,
        sticky,
        settings: SETTINGS,
        now: timeOf(atMs),
        random: () => random.unit() - 2 ** -32,
        count: () => {},
      };
      const ask = { tokenIds: ids, tokens: ids.length, ...(isKeyed(name) && { routingKey: key }) };
      const policy = threads === 1 ? policies[0] : policies[random.below(threads)];
      return policy!.choose(candidates, ask, context);
    },
  };
}

const candidateOf = ({ core: { options } }: EngineState, slot: number, sendsEvents: boolean): Candidate => ({
  id: `engine-${slot}`,
  url: `grpc://engine-${slot}:50051`,
  slot,
  member: slot,
  priority: 50,
  cost: 1,
  blockSize: options.blockSize,
  maxRunning: options.maxRunning,
  sendsEvents,
});
