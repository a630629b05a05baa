/** The gateways whose routing is measured, each with one of its policies. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { POLICY_NAMES } from "../../src/config/policy-names.ts";
import type { PolicyName } from "../../src/routing/policy.ts";
import { collie } from "../lab/gateways.ts";
import { modelFolder, workFolder } from "../lab/paths.ts";
import { answers, type Cores, freePort, type Running, start, untilTrue } from "../lab/processes.ts";
import { smg } from "../peer/setup.ts";

export type Side = "own" | "peer";

/** A gateway with the settings of a row. */
export interface RoutingGateway {
  readonly side: Side;
  readonly name: string;
  readonly version: string;
  /** Policy, and what else was set. */
  readonly label: string;
  /** It goes by keys, so requests have `x-smg-routing-key`; to others they would tell what they are to find out. */
  readonly isKeyed: boolean;
  command(port: number, workerUrls: readonly string[]): string[];
}

export interface RunningRoutingGateway extends Running {
  readonly url: string;
}

/** Those that the others are held against, and the default. */
export const MAIN_POLICIES: readonly PolicyName[] = ["round_robin", "least_load", "cache_aware"];

export const OWN_POLICIES: readonly PolicyName[] = [
  ...MAIN_POLICIES,
  ...POLICY_NAMES.filter((name) => !MAIN_POLICIES.includes(name)),
];

/** SMG has `bucket` for prefill workers only. */
export const PEER_POLICIES: readonly PolicyName[] = OWN_POLICIES.filter((name) => name !== "bucket");

const KEYED: readonly string[] = ["consistent_hashing", "manual"];

/**
 * What SMG documents for better choices of `cache_aware`: dispatched work is counted until the engine reports it, loads are asked for
 * each second, and no share of the misses is given to workers for being new.
 */
export const PEER_TUNED: readonly string[] =
  "--selection-accounting-ttl-ms 500 --load-monitor-interval 1 --worker-warmup-secs 0".split(" ");

/** One of ours. `flags`: further ones of `collie serve`. */
export function ownGateway(policy: string, binary?: string, flags: readonly string[] = []): RoutingGateway {
  const { name, version } = collie(binary);
  return {
    side: "own",
    name,
    version,
    label: [policy, ...flags].join(" "),
    isKeyed: KEYED.includes(policy),
    command: (port, workerUrls) => {
      const state = join(workFolder(), "state", String(port));
      mkdirSync(state, { recursive: true });
      const [program] = collie(binary).command(port, 0);
      return [
        ...[program!, "serve", "--host", "127.0.0.1", "--port", String(port), "--model-path", modelFolder()],
        ...["--worker-urls", ...workerUrls, "--policy", policy, "--state-dir", state, ...flags],
      ];
    },
  };
}

/** SMG. `flags`: further ones of `smg launch`, and what they make of it. Throws PeerError when it is not there and can't be had. */
export function peerGateway(policy: string, flags: readonly string[] = [], what?: string): RoutingGateway {
  const { name, version, command } = smg();
  const program = command(0, 0).slice(0, 3); // python, the script, `launch`
  return {
    side: "peer",
    name,
    version,
    label: what === undefined ? policy : `${policy}, ${what}`,
    isKeyed: KEYED.includes(policy),
    command: (port, workerUrls) => [
      ...[...program, "--host", "127.0.0.1", "--port", String(port), "--prometheus-port", String(freePort())],
      ...["--model-path", modelFolder(), "--policy", policy, "--worker-urls", ...workerUrls],
      ...flags,
    ],
  };
}

/** Readiness can come before a gateway has settled: SMG's tokenizer, subscriptions to events. */
const REST_MS = 3000;

/** Starts a gateway; it is ready and has had its rest when this resolves. Throws StartError. */
export async function startRouting(
  gateway: RoutingGateway,
  workerUrls: readonly string[],
  core: Cores = 0,
): Promise<RunningRoutingGateway> {
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const running = start(`routing-${gateway.side}-${port}`, gateway.command(port, workerUrls), core);
  await untilTrue(running, `readiness of ${gateway.name} with ${gateway.label}`, () => answers(`${url}/readiness`));
  await Bun.sleep(REST_MS);
  return { ...running, url };
}
