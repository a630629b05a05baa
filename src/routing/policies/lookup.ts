/** How much of a prompt each candidate's cache holds. */
import type { ChainKeys, RootKey } from "../../threads/prefix-types.ts";
import type { RouteAsk } from "../ask.ts";
import type { Candidate, PolicyContext } from "../policy.ts";

/** A prompt is hashed once for each way in which caches have it; of further ones nothing is known to match. */
const MOST_WAYS = 3;

/** The prompt as some caches have it: by the size of their blocks, and by the name of the model there. */
interface Way {
  readonly root: RootKey;
  readonly model: string;
  readonly lora: string | undefined;
  readonly chain: ChainKeys;
}

/** The answers for one prompt after another; reused. */
export class PrefixLookup {
  private tokens = new Int32Array(64);
  private exact = new Uint8Array(64);
  private readonly ways: Way[] = [];
  /** Of the candidates that hold most, the first. */
  private most = 0;
  private ask: RouteAsk = { tokens: 0 };
  private context: Pick<PolicyContext, "index" | "model"> | undefined;

  /** Tokens that the candidate of this index holds and the engine need not compute. */
  matched(index: number): number {
    return this.tokens[index]!;
  }

  /** Index of the candidate that holds most; where several do or none does, of the first. */
  get holder(): number {
    return this.most;
  }

  /** It told so by its events. */
  isExact(index: number): boolean {
    return this.exact[index] === 1;
  }

  /** The chain as a candidate has it. */
  chainOf(candidate: Candidate): ChainKeys | undefined {
    const way = this.wayOf(candidate);
    if (way === undefined) return undefined;
    const { blockSize } = way.chain;
    // chains of one size of blocks share their memory: the last one is in it
    if (way === this.ways.findLast(({ chain }) => chain.blockSize === blockSize)) return way.chain;
    return this.context!.index.chain(way.root, this.ask.tokenIds!, blockSize, this.ask.media);
  }

  private wayOf({ blockSize, cacheModel = this.context?.model, cacheLora }: Candidate): Way | undefined {
    for (const way of this.ways)
      if (way.chain.blockSize === blockSize && way.model === cacheModel && way.lora === cacheLora) return way;
    return undefined;
  }

  /**
   * What is only guessed of a cache counts from the settings' share of the prompt on. An engine computes the last token of a prompt
   * always, so the block of that one is never counted.
   */
  find(candidates: readonly Candidate[], ask: RouteAsk, context: PolicyContext): void {
    const count = candidates.length;
    if (count > this.tokens.length) {
      this.tokens = new Int32Array(2 * count);
      this.exact = new Uint8Array(2 * count);
    }
    this.tokens.fill(0, 0, count);
    this.exact.fill(0, 0, count);
    this.ways.length = 0;
    this.most = 0;
    this.ask = ask;
    this.context = context;
    const ids = ask.tokenIds;
    if (ids === undefined) return;
    const least = context.settings.cacheThreshold * ids.length;
    for (let i = 0; i < count; i++) {
      if (candidates[i]!.blockSize > ids.length || this.wayOf(candidates[i]!) !== undefined) continue;
      const found = this.findOf(candidates, i, ids, least, ask, context);
      if (found === count || this.ways.length === MOST_WAYS) return;
    }
  }

  /** For all candidates that have it as the one at index `from` does, from that on; gives how many these are. */
  private findOf(
    candidates: readonly Candidate[],
    from: number,
    ids: Uint32Array,
    least: number,
    { lora, cacheSalt, media }: RouteAsk,
    { index, model: id, now }: PolicyContext,
  ): number {
    const { blockSize, cacheModel: model = id, cacheLora } = candidates[from]!;
    const root = index.root(model, blockSize, lora ?? cacheLora, cacheSalt);
    const chain = index.chain(root, ids, blockSize, media);
    this.ways.push({ root, model, lora: cacheLora, chain });
    const match = index.match(chain, now);
    const most = Math.floor((ids.length - 1) / blockSize);
    let found = 0;
    for (let i = from; i < candidates.length; i++) {
      const candidate = candidates[i]!;
      if (candidate.blockSize !== blockSize) continue;
      if ((candidate.cacheModel ?? id) !== model || candidate.cacheLora !== cacheLora) continue;
      found++;
      if (candidate.member < 0) continue;
      const depth = match.depth(candidate.member);
      if (depth === 0) continue;
      const tokens = Math.min(depth, most) * blockSize;
      const isExact = match.isExact(candidate.member);
      if (!isExact && tokens < least) continue;
      this.tokens[i] = tokens;
      this.exact[i] = isExact ? 1 : 0;
      const more = tokens - this.tokens[this.most]!;
      if (more > 0 || (more === 0 && i < this.most)) this.most = i;
    }
    return found;
  }
}
