import type { ProtoText } from "../../protobuf/proto-text.ts";
import type { GrpcMethod } from "../grpc/server.ts";
import type { SimulatorHost } from "../host.ts";

/** How one engine's wire contract looks and behaves. A dialect holds no state of its own. */
export interface Dialect {
  readonly name: string;
  /** Its messages and calls, with the release that brought each. */
  readonly proto: ProtoText;
  /** Name of the proto file, as reflection tells it. */
  readonly file: string;
  /** Of what `grpc.health.v1` tells: of the engine, or only of the server before it, which serves until it is stopped. */
  readonly healthService: "engine" | "server" | "none";
  /** Calls by name; what the proto has besides is answered UNIMPLEMENTED. */
  methods(host: SimulatorHost): Readonly<Record<string, GrpcMethod>>;
}
