/** All policies by their names. */
import type { Policy, PolicyName } from "../policy.ts";
import { BucketPolicy } from "./bucket.ts";
import { CacheAwarePolicy } from "./cache-aware.ts";
import { ConsistentHashingPolicy } from "./consistent-hashing.ts";
import { LeastLoadPolicy } from "./least-load.ts";
import { ManualPolicy } from "./manual.ts";
import { PowerOfTwoPolicy } from "./power-of-two.ts";
import { PrefixHashPolicy } from "./prefix-hash.ts";
import { PassthroughPolicy, RandomPolicy, RoundRobinPolicy } from "./turns.ts";

const POLICIES: Readonly<Record<PolicyName, new () => Policy>> = {
  cache_aware: CacheAwarePolicy,
  least_load: LeastLoadPolicy,
  power_of_two: PowerOfTwoPolicy,
  prefix_hash: PrefixHashPolicy,
  consistent_hashing: ConsistentHashingPolicy,
  bucket: BucketPolicy,
  manual: ManualPolicy,
  round_robin: RoundRobinPolicy,
  random: RandomPolicy,
  passthrough: PassthroughPolicy,
};

/** A new one, for one thread. */
export const policyOf = (name: PolicyName): Policy => new POLICIES[name]();
