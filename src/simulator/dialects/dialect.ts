import type { GrpcMethod } from "../grpc/server.ts";
import type { SimulatorHost } from "../host.ts";

/** How one engine's wire contract looks and behaves. A dialect holds no state of its own. */
export interface Dialect {
  readonly name: string;
  /** Full name of its gRPC service. */
  readonly service: string;
  /** Methods by name, without the service. */
  methods(host: SimulatorHost): Readonly<Record<string, GrpcMethod>>;
}
