import type { FleetAdmin } from "../../src/fleet/admin.ts";
import type { Control } from "../../src/fleet/control-link.ts";
import { fleetAdmin } from "../../src/fleet/fleet-admin.ts";
import { Gate } from "../../src/fleet/gate.ts";
import { Jobs } from "../../src/fleet/jobs.ts";
import { WorkerRegistry } from "../../src/fleet/registry.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createComputePool } from "../../src/threads/compute-pool.ts";
import { FleetBoard } from "../../src/threads/fleet-board.ts";
import { FakeClock } from "./fake-clock.ts";

const log = createLogger({ level: "error", json: true });

/** Compute threads for tests; started when they are needed. */
export const testCompute = createComputePool(1, log);

/** Operators' way to a fleet that has no workers, and takes none in. */
function emptyFleetAdmin(): FleetAdmin {
  const clock = new FakeClock();
  const refused = (): never => {
    throw new Error("no workers are added here");
  };
  const registry = new WorkerRegistry(
    FleetBoard.create(1),
    { clock, door: { register: refused, contact: refused }, gate: new Gate(1), log, random: () => 0 },
    { holds: () => false, drop: () => {} },
    new Jobs(clock),
    { drainMs: 0, removesFailed: false, life: refused },
    { publish: async () => {}, lost: () => {}, ready: () => {}, forgotten: () => {} },
  );
  return fleetAdmin(registry, FleetBoard.create(1), new Jobs(clock));
}

/** Control for a serving thread in a test that adds no tokenizers and no workers. */
export const testControl: Control = {
  ...testCompute,
  addTokenizer: () => Promise.reject(new Error("no tokenizers are added here")),
  removeTokenizer: async () => false,
  admin: emptyFleetAdmin(),
};
