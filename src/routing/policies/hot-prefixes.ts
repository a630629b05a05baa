/** Beginnings of prompts that are asked for more often than the workers that hold them can bear. */
import type { ChainKeys } from "../../threads/prefix-types.ts";
import { HOT_MS, HOT_WEIGHT } from "../score.ts";

/** The least recently used is forgotten: what is hot comes again at once. */
const MOST_PREFIXES = 4096;

interface Loss {
  readonly tokens: number;
  readonly at: number;
}

/**
 * What was lost by sending requests to those that hold a beginning, in tokens, fading over time. When that is as much as it costs to
 * compute the beginning once more, it should have been computed at the start: who rents skis until the rents are their price never pays
 * more than twice what was needed. Each thread counts what it sent: what is hot is hot for all of them.
 */
export class HotPrefixes {
  private readonly losses = new Map<number, Loss>();
  private key = 0;
  private now = 0;
  private before = 0;

  /** What requests with the first so many blocks of this chain have lost until now. `now`: milliseconds since 1970. */
  lossOf({ keys }: ChainKeys, blocks: number, now: number): number {
    const at = 2 * (blocks - 1);
    this.key = (keys[at]! >>> 0) * 0x10_0000 + (keys[at + 1]! & 0xf_ffff);
    this.now = now;
    const loss = this.losses.get(this.key);
    this.before = loss === undefined ? 0 : loss.tokens * Math.exp((loss.at - now) / HOT_MS);
    return this.before;
  }

  /** The one of the last `lossOf` was sent to a worker that has so much more to do than the others. */
  add(tokens: number): void {
    this.set(this.before + HOT_WEIGHT * tokens);
  }

  /** Of the last `lossOf`: it is now held by another worker, too. */
  clear(): void {
    this.set(0);
  }

  private set(tokens: number): void {
    const { losses, key } = this;
    losses.delete(key);
    if (tokens <= 0) return;
    losses.set(key, { tokens, at: this.now });
    if (losses.size > MOST_PREFIXES) for (const oldest of losses.keys()) return void losses.delete(oldest);
  }
}
