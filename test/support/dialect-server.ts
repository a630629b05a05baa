/** A server of an engine dialect whose answers a test writes itself, message by message, on grpc-js. */
import * as grpc from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { type DialectName, dialectPackage } from "./proto-package.ts";

type Message = Record<string, unknown>;

/** What a scripted RPC does with its call. */
export interface ScriptedCall {
  readonly request: Message;
  readonly metadata: grpc.Metadata;
  /** Sends a message; of unary RPCs the last one counts. */
  send(message: Message): void;
  /** Sends bytes as they are. */
  sendBytes(bytes: Uint8Array): void;
  /** Ends with OK, or with a status. */
  end(code?: number, details?: string, trailers?: Readonly<Record<string, string>>): void;
  /** Resolves when the client is gone. */
  readonly gone: Promise<void>;
}
export type Script = (call: ScriptedCall) => void | Promise<void>;

export interface DialectServer {
  readonly port: number;
  /** Decoded requests so far, by RPC. */
  readonly requests: Record<string, Message[]>;
  /** Cuts all connections. */
  close(): void;
}

/** Starts the server on a free port. RPCs without a script are UNIMPLEMENTED. `service` replaces the service's name. */
export async function startDialectServer(
  dialect: DialectName,
  scripts: Record<string, Script>,
  service?: string,
): Promise<DialectServer> {
  const own = serviceOf(dialect);
  const server = new grpc.Server();
  const requests: Record<string, Message[]> = {};
  for (const rpc of own.methodsArray) {
    const script = scripts[rpc.name];
    if (script === undefined) continue;
    requests[rpc.name] = [];
    const requestType = rpc.resolvedRequestType as protobuf.Type;
    const responseType = rpc.resolvedResponseType as protobuf.Type;
    const asBytes = (message: Message): Buffer =>
      Buffer.from(responseType.encode(responseType.fromObject(message)).finish());
    const definition: grpc.MethodDefinition<Buffer, Buffer> = {
      path: `/${service ?? own.fullName.slice(1)}/${rpc.name}`,
      requestStream: false,
      responseStream: rpc.responseStream ?? false,
      requestSerialize: (bytes) => bytes,
      requestDeserialize: (bytes) => bytes,
      responseSerialize: (bytes) => bytes,
      responseDeserialize: (bytes) => bytes,
    };
    const decode = (bytes: Buffer): Message => {
      const request = requestType.toObject(requestType.decode(bytes), { longs: Number }) as Message;
      requests[rpc.name]!.push(request);
      return request;
    };
    const handler = rpc.responseStream
      ? (call: grpc.ServerWritableStream<Buffer, Buffer>) =>
          void script({
            request: decode(call.request),
            metadata: call.metadata,
            send: (message) => call.write(asBytes(message)),
            sendBytes: (bytes) => call.write(Buffer.from(bytes)),
            end: (code = 0, details = "", trailers = {}) =>
              code === 0 ? call.end() : call.emit("error", { code, details, metadata: asMetadata(trailers) }),
            gone: new Promise((resolve) => call.on("cancelled", () => resolve())),
          })
      : (call: grpc.ServerUnaryCall<Buffer, Buffer>, reply: grpc.sendUnaryData<Buffer>) => {
          let bytes: Buffer = Buffer.alloc(0);
          void script({
            request: decode(call.request),
            metadata: call.metadata,
            send: (message) => {
              bytes = asBytes(message);
            },
            sendBytes: (raw) => {
              bytes = Buffer.from(raw);
            },
            end: (code = 0, details = "", trailers = {}) =>
              code === 0 ? reply(null, bytes) : reply({ code, details, metadata: asMetadata(trailers) }),
            gone: new Promise((resolve) => call.on("cancelled", () => resolve())),
          });
        };
    server.addService({ [rpc.name]: definition }, { [rpc.name]: handler as grpc.UntypedHandleCall });
  }
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return { port, requests, close: () => server.forceShutdown() };
}

function serviceOf(dialect: DialectName): protobuf.Service {
  const { packageName, root } = dialectPackage(dialect);
  const service = root.lookup(packageName);
  const found = (service as protobuf.Namespace).nestedArray.find((each) => each instanceof protobuf.Service);
  if (found === undefined) throw new Error(`${packageName} has no service`);
  return found as protobuf.Service;
}

function asMetadata(trailers: Readonly<Record<string, string>>): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [key, value] of Object.entries(trailers)) metadata.set(key, value);
  return metadata;
}
