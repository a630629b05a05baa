/** Names of the policies by which workers are chosen, as SMG spells them. */
export const POLICY_NAMES = [
  "cache_aware",
  "least_load",
  "power_of_two",
  "prefix_hash",
  "consistent_hashing",
  "bucket",
  "manual",
  "round_robin",
  "random",
  "passthrough",
] as const;
