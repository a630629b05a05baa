/** The engine dialects: what their services are called, and who speaks them. */
import type { Channel } from "./channel.ts";
import type { Engine } from "./engine.ts";
import { createVllmEngine, VLLM_SERVICE } from "./vllm/engine.ts";

export interface Dialect {
  readonly name: string;
  readonly service: string;
  /** RPC that every servicer of the dialect answers without work: HealthCheck of some runs a generation. */
  readonly probe: string;
  /** Absent for dialects that the gateway recognises but does not speak. */
  readonly create?: (channels: { readonly stream: Channel; readonly control: Channel }) => Engine;
}

/** In the order of asking. */
export const DIALECTS: readonly Dialect[] = [
  { name: "vllm", service: VLLM_SERVICE, probe: "HealthCheck", create: createVllmEngine },
  { name: "sglang", service: "sglang.grpc.scheduler.SglangScheduler", probe: "GetModelInfo" },
  { name: "tokenspeed", service: "tokenspeed.grpc.scheduler.TokenSpeedScheduler", probe: "GetModelInfo" },
  { name: "trtllm", service: "trtllm.TrtllmService", probe: "GetModelInfo" },
  { name: "mlx", service: "mlx.grpc.engine.MlxEngine", probe: "GetModelInfo" },
];

/** Names of the dialects that the gateway speaks. */
export const SUPPORTED_DIALECTS: readonly string[] = DIALECTS.filter((d) => d.create !== undefined).map((d) => d.name);
