import { GrpcStatus } from "../../engines/grpc-error.ts";
import { WireReader } from "../../protobuf/reader.ts";
import type { GrpcMethod } from "./server.ts";
import type { ServerCall } from "./stream.ts";

const SERVING = Uint8Array.of(0x08, 1);
const NOT_SERVING = Uint8Array.of(0x08, 2);
const SERVICE_UNKNOWN = Uint8Array.of(0x08, 3);

/** `grpc.health.v1.Health` for the given services and "". Watch sends one status and ends, as the engines' servicers do. */
export function healthMethods(services: readonly string[], serving: () => boolean): [string, GrpcMethod][] {
  const known = (message: Uint8Array): string | undefined => {
    const r = new WireReader(message);
    let service = "";
    while (r.next()) {
      if (r.field === 1) service = r.string();
      else r.skip();
    }
    return service === "" || services.includes(service) ? undefined : service;
  };
  const status = () => (serving() ? SERVING : NOT_SERVING);
  return [
    [
      "/grpc.health.v1.Health/Check",
      (call: ServerCall, message: Uint8Array) => {
        const unknown = known(message);
        if (unknown !== undefined) return call.end(GrpcStatus.NOT_FOUND, `Unknown service: ${unknown}`);
        call.send(status());
        call.end();
      },
    ],
    [
      "/grpc.health.v1.Health/Watch",
      (call: ServerCall, message: Uint8Array) => {
        call.send(known(message) === undefined ? status() : SERVICE_UNKNOWN);
        call.end();
      },
    ],
  ];
}
