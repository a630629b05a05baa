/** `FleetAdmin` across threads: one question for all its methods. */
import type { AdminMethod, FleetAdmin } from "./admin.ts";

export interface AdminQuestion {
  readonly type: "admin";
  readonly method: AdminMethod;
  readonly args: readonly unknown[];
}

const METHODS = Object.keys({
  listWorkers: true,
  worker: true,
  addWorker: true,
  replaceWorker: true,
  patchWorker: true,
  removeWorker: true,
  loads: true,
  engineMetrics: true,
  told: true,
  flushCache: true,
  startProfile: true,
  stopProfile: true,
} satisfies Record<AdminMethod, true>) as readonly AdminMethod[];

type Method = (...args: readonly unknown[]) => Promise<unknown>;

/** The asking end. */
export function adminOver(ask: (question: AdminQuestion) => Promise<unknown>): FleetAdmin {
  const methods = METHODS.map((method) => [method, (...args: unknown[]) => ask({ type: "admin", method, args })]);
  return Object.fromEntries(methods) as unknown as FleetAdmin;
}

/** The answering end. */
export function askAdmin(admin: FleetAdmin, { method, args }: AdminQuestion): Promise<unknown> {
  return (admin[method] as Method)(...args);
}
