/**
 * Several simulated engines in one process, each with ports, a clock and a cache of its own.
 *
 *     bun bench/routing/engines.ts --ports 1,2 --stats-ports 3,4 -- [flags of `collie engine`]
 */
import { parseArgs } from "node:util";
import { resolveOptions } from "../../src/config/resolve.ts";
import { simulatorOptions } from "../../src/simulator/options.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";

const args = process.argv.slice(2);
const split = args.indexOf("--");
const { values } = parseArgs({
  args: args.slice(0, split),
  options: { ports: { type: "string", default: "" }, "stats-ports": { type: "string", default: "" } },
});
const shared = resolveOptions(simulatorOptions, { args: args.slice(split + 1), env: {} }).values;
const statsPorts = values["stats-ports"].split(",").map(Number);
for (const [i, port] of values.ports.split(",").map(Number).entries())
  await startSimulator({ ...shared, port, statsPort: statsPorts[i]! });
