import type { ServeConfig } from "../config/serve-options.ts";
import type { Control } from "../fleet/control-link.ts";
import type { FleetView } from "../fleet/view.ts";
import type { Logger } from "../telemetry/log.ts";
import type { RequestScopes } from "./request-scope.ts";

/** What the routes of one serving thread work with. */
export interface ServerContext {
  readonly config: ServeConfig;
  readonly fleet: FleetView;
  readonly control: Control;
  readonly scopes: RequestScopes;
  readonly log: Logger;
  /** The gateway has been told to stop. */
  draining(): boolean;
}
