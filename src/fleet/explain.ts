/** Where a request would go, and why: told by the code that chooses, which books and changes nothing meanwhile. */
import type { RouteAsk } from "../routing/ask.ts";
import type { CandidateLoad, CandidateScore, Choice, PrefixIndex } from "../routing/policy.ts";
import type { ChainKeys, PrefixMatch } from "../threads/prefix-types.ts";
import { type Crew, NO_MEMBER, type Seat } from "./crew.ts";
import type { ChoiceNote } from "./lease.ts";

export interface ReportedCandidate extends CandidateScore {
  readonly url: string;
  readonly role: string;
  /** As the fleet knows the worker. */
  readonly state: string;
  /** Why it is not chosen from; absent where it is. */
  readonly excluded?: string | undefined;
}

/** Blocks that the same workers hold, by their ids. */
export interface ReportedSpan {
  readonly fromBlock: number;
  /** Behind the last. */
  readonly toBlock: number;
  readonly exact: readonly string[];
  readonly guessed: readonly string[];
}

export interface RouteReport {
  readonly model: string;
  readonly policy: string;
  /** Of the prompt. */
  readonly tokens: number;
  /** Tokens of a block; 0 where the prompt was not looked up. */
  readonly blockSize: number;
  /** Full blocks of the prompt. */
  readonly blocks: number;
  /** Id of the worker; empty where none can take the request. */
  readonly chosen: string;
  readonly branch: ChoiceNote["branch"] | "nobody";
  readonly candidates: readonly ReportedCandidate[];
  readonly spans: readonly ReportedSpan[];
  /** Of a model whose work is split: the same for the worker that decodes. The rest is of the one that prefills. */
  readonly decode?: RouteReport | undefined;
}

/** What was found out of a crew for a request. */
export interface Looked {
  readonly crew: Crew;
  readonly route: RouteAsk;
  /** Absent where a worker is tried whose breaker was open, or none can take the request. */
  readonly choice: Choice<Seat> | undefined;
  readonly probe: Seat | undefined;
  readonly load: CandidateLoad;
  readonly index: PrefixIndex;
  /** Milliseconds since 1970. */
  readonly now: number;
  stateOf(seat: Seat): string;
  excluded(seat: Seat): string | undefined;
}

export function reportOf({ crew, route, choice, probe, load, index, now, stateOf, excluded }: Looked): RouteReport {
  const { model, policy, seats } = crew;
  const known = choice?.chain === undefined ? lookedUp(crew, route, index, now) : undefined;
  const chain = choice?.chain ?? known?.chain;
  const match = choice?.match ?? known?.match;
  // a match is reused by the next one: it is read at once
  const spans = chain === undefined || match === undefined ? [] : spansOf(match, seats);
  const scores = new Map(choice?.scores?.map((score) => [score.id, score]));
  const candidates = seats.map((seat): ReportedCandidate => {
    const { id, url, worker } = seat;
    const score = scores.get(id) ?? unscored(seat, load, chain, match);
    return { ...score, url, role: worker.role ?? "regular", state: stateOf(seat), excluded: excluded(seat) };
  });
  return {
    model,
    policy: policy.name,
    tokens: route.tokenIds?.length ?? route.tokens,
    blockSize: chain?.blockSize ?? 0,
    blocks: chain?.count ?? 0,
    chosen: (probe ?? choice?.worker)?.id ?? "",
    branch: probe === undefined ? (choice?.branch ?? "nobody") : "probe",
    candidates,
    spans,
  };
}

/** The prompt in the index, where the policy has not looked for it. */
function lookedUp(
  { model, seats }: Crew,
  { tokenIds, lora, cacheSalt, media }: RouteAsk,
  index: PrefixIndex,
  now: number,
): { readonly chain: ChainKeys; readonly match: PrefixMatch } | undefined {
  const { blockSize, cacheModel = model, cacheLora } = seats[0] ?? {};
  if (tokenIds === undefined || blockSize === undefined || tokenIds.length < blockSize) return undefined;
  const chain = index.chain(
    index.root(cacheModel, blockSize, lora ?? cacheLora, cacheSalt),
    tokenIds,
    blockSize,
    media,
  );
  return { chain, match: index.match(chain, now) };
}

function unscored(
  seat: Seat,
  load: CandidateLoad,
  chain: ChainKeys | undefined,
  match: PrefixMatch | undefined,
): CandidateScore {
  // of one that has the model under another name nothing is found by this chain
  const isComparable = chain?.blockSize === seat.blockSize && match !== undefined && seat.member !== NO_MEMBER;
  return {
    id: seat.id,
    matchedTokens: isComparable ? match.depth(seat.member) * seat.blockSize : 0,
    isExact: isComparable && match.isExact(seat.member),
    queuedTokens: load.queuedTokens(seat),
    running: load.running(seat),
    kvUsage: load.kvUsage(seat),
    score: undefined,
  };
}

function spansOf(match: PrefixMatch, seats: readonly Seat[]): readonly ReportedSpan[] {
  const idOf = new Map(seats.map(({ member, id }) => [member, id]));
  /** Members of other models, or that have just left, have no name here. */
  const ids = (members: readonly number[]) => members.flatMap((member) => idOf.get(member) ?? []);
  let fromBlock = 0;
  const spans: ReportedSpan[] = [];
  for (const { end, exact, guessed } of match.spans()) {
    const span = { fromBlock, toBlock: end, exact: ids(exact), guessed: ids(guessed) };
    const last = spans.at(-1);
    // they may differ by members without a name
    if (last !== undefined && isSame(last.exact, span.exact) && isSame(last.guessed, span.guessed))
      spans[spans.length - 1] = { ...last, toBlock: end };
    else spans.push(span);
    fromBlock = end;
  }
  return spans;
}

const isSame = (ones: readonly string[], others: readonly string[]): boolean =>
  ones.length === others.length && ones.every((one, i) => one === others[i]);
