import type { FleetSnapshot } from "../fleet/snapshot.ts";
import type { ServingOptions } from "../server/serving.ts";

/** What control tells a serving thread. */
export type ToThread =
  | { readonly type: "start"; readonly options: ServingOptions; readonly fleet: FleetSnapshot }
  | { readonly type: "fleet"; readonly fleet: FleetSnapshot; readonly version: number }
  | { readonly type: "drain"; readonly graceMs: number }
  | { readonly type: "ping" };

/** What a serving thread tells control. */
export type FromThread =
  | { readonly type: "listening"; readonly hostname: string; readonly port: number }
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "applied"; readonly version: number }
  | { readonly type: "drained" }
  | { readonly type: "pong" };
