/**
 * Several simulated engines in one process, each with ports, a clock and a cache of its own. Where they listen is written to a file when
 * all do.
 *
 *     bun bench/routing/engines.ts COUNT FILE [flags of `collie engine`]
 */
import { renameSync } from "node:fs";
import { resolveOptions } from "../../src/config/resolve.ts";
import { simulatorOptions } from "../../src/simulator/options.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import type { EnginePorts } from "./engine-fleet.ts";

const [count, file, ...args] = process.argv.slice(2);
const options = resolveOptions(simulatorOptions, { args, env: {} }).values;
const ports: EnginePorts[] = [];
for (let i = 0; i < Number(count); i++) {
  const { port, statsPort } = await startSimulator({ ...options, port: 0, statsPort: 0 });
  ports.push({ port, statsPort });
}
await Bun.write(`${file}.part`, JSON.stringify(ports));
renameSync(`${file}.part`, file!);
