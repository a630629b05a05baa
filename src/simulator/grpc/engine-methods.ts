import { GrpcStatus } from "../../engines/grpc-error.ts";
import { commonProto } from "../../engines/protos.ts";
import type { ProtoRpc } from "../../protobuf/proto-text.ts";
import { WireError } from "../../protobuf/wire-error.ts";
import type { Dialect } from "../dialects/dialect.ts";
import type { SimulatorHost } from "../host.ts";
import { type ProtoFile, structFile, timestampFile } from "./descriptors.ts";
import { healthMethods } from "./health.ts";
import { AgeFilter, isIn } from "./protocol-age.ts";
import { reflectionMethods } from "./reflection.ts";
import type { GrpcMethod } from "./server.ts";

/** What a server leaves out of the services beside its own. */
export interface OmittedServices {
  readonly noReflection: boolean;
  readonly noHealthService: boolean;
}

/**
 * All calls that an engine of a dialect and age answers, by path. Calls that came later are unknown to it; what is newer in requests
 * is skipped and named in the log, and answers are sent without it. `serving`: it is not being stopped.
 */
export function engineMethods(
  dialect: Dialect,
  host: SimulatorHost,
  omitted: OmittedServices,
  serving: () => boolean,
): Map<string, GrpcMethod> {
  const { proto } = dialect;
  const { fullName, rpcs } = proto.service();
  const age = host.protocol;
  const filter = age === "0.4.28" ? undefined : new AgeFilter(proto, age);
  const own = dialect.methods(host);
  const methods = new Map<string, GrpcMethod>();
  for (const rpc of rpcs) {
    if (!isIn(age, rpc.since)) continue;
    const { name } = rpc;
    const method = own[name] ?? undeclared;
    const aged = filter ? atAge(filter, rpc, method) : method;
    host.counts.calls[name] ??= 0;
    methods.set(`/${fullName}/${name}`, (call, message) => {
      host.counts.calls[name]!++;
      aged(call, message);
    });
  }
  const services = [fullName];
  if (!omitted.noReflection) services.unshift("grpc.reflection.v1alpha.ServerReflection");
  if (dialect.healthService !== "none" && !omitted.noHealthService) {
    services.unshift("grpc.health.v1.Health");
    const says = () => serving() && (host.alive || dialect.healthService === "server");
    for (const [path, method] of healthMethods([fullName], says)) methods.set(path, method);
  }
  if (!omitted.noReflection)
    for (const [path, method] of reflectionMethods({ services, file: protoFile(dialect), age }))
      methods.set(path, method);
  return methods;
}

const undeclared: GrpcMethod = (call) => call.end(GrpcStatus.UNIMPLEMENTED, "Method not implemented!");

function atAge(filter: AgeFilter, rpc: ProtoRpc, method: GrpcMethod): GrpcMethod {
  return (call, message) => {
    const dropped = new Set<string>();
    let known: Uint8Array;
    try {
      known = filter.strip(rpc.request, message, dropped);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      known = message;
    }
    if (dropped.size > 0) call.ignored = [...dropped];
    call.rewrite = (reply) => filter.strip(rpc.response, reply);
    method(call, known);
  };
}

/** The dialect's proto file with its imports. Which of Google's it names shows in the types that it uses. */
function protoFile({ proto, file }: Dialect): ProtoFile {
  const types = new Set(
    proto.messageNames().flatMap((name) => [...proto.message(name).fields.values()].map(({ type }) => type)),
  );
  const imports: ProtoFile[] = [];
  if (types.has("google.protobuf.Timestamp")) imports.push(timestampFile);
  if (types.has("google.protobuf.Struct")) imports.push(structFile);
  return { name: file, text: proto, imports: [...imports, { name: "common.proto", text: commonProto, imports: [] }] };
}
