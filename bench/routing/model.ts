/**
 * What each policy does to a fleet, by a model in virtual time: the real policies, knowing what a gateway knows, before simulated engines
 * without sockets; nothing of this machine is in the figures. It is what the constants of `src/routing/score.ts` were tuned by; the
 * gateway itself is measured by `bench/routing/fleet.ts`.
 *
 *     node scripts/bun.mjs bench/routing/model.ts [--shapes LIST] [--policies LIST] [--no-events] [--threads 1] [--seed 1] [--seeds 2]
 */

import { parseArgs } from "node:util";
import { POLICY_NAMES } from "../../src/config/policy-names.ts";
import { defaultCoreOptions } from "../../src/simulator/core/options.ts";
import { table } from "../lab/output.ts";
import { sum } from "./engine-fleet.ts";
import { knowing, parted } from "./knowing.ts";
import { MODEL_SHAPES } from "./model-shapes.ts";
import { seeing } from "./oracle.ts";
import { promptReader } from "./prompt-tokens.ts";
import { boundsOf, type ReplayResult, type Router, replay } from "./replay.ts";
import { SHAPES } from "./shapes.ts";

const ENGINES = 8;

const { values } = parseArgs({
  options: {
    shapes: { type: "string" },
    policies: { type: "string" },
    "no-events": { type: "boolean", default: false },
    threads: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
    seeds: { type: "string", default: "2" },
  },
});

const isAsked = (list: string | undefined, name: string): boolean =>
  list === undefined || list.split(",").includes(name);

function line(name: string, results: readonly ReplayResult[]): string[] {
  const mean = (of: (result: ReplayResult) => number, digits: number): string =>
    (sum(results.map(of)) / results.length).toFixed(digits);
  return [
    name,
    mean((r) => r.ttftMeanMs, 1),
    mean((r) => r.ttft.p99, 0),
    mean((r) => r.latencyMeanMs, 0),
    mean((r) => 100 * r.hitRate, 1),
    mean((r) => r.tokenSpread, 2),
    mean((r) => r.computedSpread, 2),
  ];
}

const HEAD = ["policy", "TTFT ms", "p99", "whole ms", "hits %", "spread of tokens", "of those computed"];

const read = await promptReader();
const seeds = Array.from({ length: Number(values.seeds) }, (_, i) => Number(values.seed) + i);
const all = [...SHAPES.map((shape) => ({ ...shape, engines: ENGINES })), ...MODEL_SHAPES];
for (const shape of all.filter(({ id }) => isAsked(values.shapes, id))) {
  const streams = seeds.map((seed) => read(shape.asks(seed, shape.seconds)));
  const options = { ...defaultCoreOptions, kvTokens: shape.kvTokens };
  const row = (name: string, router: () => Router): string[] =>
    line(
      name,
      streams.map((asks) => replay(asks, shape.engines, options, router())),
    );
  const bounds = streams.map((asks) => boundsOf(asks, options));
  const mean = (all: readonly number[]) => (sum(all) / all.length).toFixed(1);
  const rows = [
    ...POLICY_NAMES.filter((policy) => isAsked(values.policies, policy)).map((policy) =>
      row(policy, () => knowing(policy, !values["no-events"], Number(values.threads))),
    ),
    row("oracle", () => seeing("cache_aware")),
    row("each beginning at one engine", parted),
  ];
  console.log(`## ${shape.id}: ${shape.title}\n\n${table(HEAD, rows)}\n`);
  const hits = mean(bounds.map(({ hitRate }) => 100 * hitRate));
  const ttft = mean(bounds.map(({ ttftMeanMs }) => ttftMeanMs));
  console.log(`One request at a time at one engine with endless memory: TTFT ${ttft} ms, hits ${hits} %.\n`);
}
