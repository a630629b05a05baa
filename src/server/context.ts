import type { Sealer } from "../apis/shared/seal.ts";
import type { ServeConfig } from "../config/serve-options.ts";
import type { Control } from "../fleet/control-link.ts";
import type { FleetView } from "../fleet/view.ts";
import type { HistoryStore } from "../history/store.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Admission } from "./admission.ts";
import type { RequestMetrics } from "./request-metrics.ts";
import type { RequestScopes } from "./request-scope.ts";
import type { RunRegistry } from "./runs.ts";

/** What the routes of one serving thread work with. */
export interface ServerContext {
  readonly config: ServeConfig;
  readonly fleet: FleetView;
  readonly control: Control;
  readonly scopes: RequestScopes;
  /** Absent where as many requests may run as come. */
  readonly admission?: Admission | undefined;
  readonly log: Logger;
  /** Counts requests; absent for those that are none. */
  readonly metrics?: RequestMetrics | undefined;
  /** What clients have stored; null: nothing is (`--history none`). */
  readonly history: HistoryStore | null;
  readonly sealer: Sealer;
  /** Work of this thread that has no client. */
  readonly runs: RunRegistry;
  /** The gateway has been told to stop. */
  draining(): boolean;
}
