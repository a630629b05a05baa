/** Which pods are workers, and what they do. */
import type { ServeConfig } from "../../../config/serve-options.ts";
import type { WorkerSpec } from "../../worker-spec.ts";

export type Role = NonNullable<WorkerSpec["workerType"]>;

export interface RoleSelector {
  readonly role: Role;
  /** As the API takes it: `label=value`, joined by commas. */
  readonly selector: string;
}

/** The more special first: a pod that several of them find has the first of their roles. */
export function roleSelectors(
  config: Pick<ServeConfig, "selector" | "prefillSelector" | "decodeSelector" | "encodeSelector">,
): readonly RoleSelector[] {
  const all = [
    ["encode", config.encodeSelector],
    ["prefill", config.prefillSelector],
    ["decode", config.decodeSelector],
    ["regular", config.selector],
  ] as const;
  return all.flatMap(([role, labels]) => (labels.length === 0 ? [] : [{ role, selector: labels.join(",") }]));
}
