// A gRPC server of its own process, on grpc-js, under Node or Bun: node grpc-server.mjs '{"port":0}'
// Messages are plain bytes. Prints "READY <port>". Options: port, graceMs, tls { cert, key, ca } (with ca, clients must show a certificate).
import * as grpc from "@grpc/grpc-js";

const options = JSON.parse(process.argv[2] ?? "{}");
const identity = (bytes) => bytes;
const method = (name, responseStream) => ({
  path: `/test.Bytes/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: identity,
  requestDeserialize: identity,
  responseSerialize: identity,
  responseDeserialize: identity,
});
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const seen = { started: 0, cancelled: 0, active: 0, sent: 0 };

const server = new grpc.Server({
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  ...(options.maxStreams ? { "grpc.max_concurrent_streams": options.maxStreams } : {}),
});
server.addService(
  {
    Echo: method("Echo", false),
    Size: method("Size", false),
    Metadata: method("Metadata", false),
    Fail: method("Fail", false),
    Hang: method("Hang", false),
    Stats: method("Stats", false),
    Stream: method("Stream", true),
    FailLater: method("FailLater", true),
  },
  {
    Echo: (call, reply) => reply(null, call.request),
    Size: (call, reply) => reply(null, Buffer.alloc(JSON.parse(call.request).size, 7)),
    Metadata: (call, reply) => {
      const all = {};
      for (const [key, value] of Object.entries(call.metadata.getMap()))
        all[key] = typeof value === "string" ? value : [...value];
      reply(null, Buffer.from(JSON.stringify(all)));
    },
    Fail: (_call, reply) => {
      const metadata = new grpc.Metadata();
      metadata.set("x-why", "full");
      metadata.set("x-why-bin", Buffer.from([1, 2, 255]));
      reply({ code: grpc.status.RESOURCE_EXHAUSTED, details: "kv full: 100% é", metadata });
    },
    Hang: (call) => {
      seen.started++;
      call.on("cancelled", () => seen.cancelled++);
    },
    Stats: (_call, reply) => reply(null, Buffer.from(JSON.stringify(seen))),
    // { count, delayMs, size }: messages of `size` bytes that begin with their number.
    async Stream(call) {
      const { count, delayMs, size } = { delayMs: 0, size: 4, ...JSON.parse(call.request) };
      let gone = false;
      let wake = () => {};
      call.on("drain", () => wake());
      seen.started++;
      seen.active++;
      call.on("cancelled", () => {
        gone = true;
        seen.cancelled++;
        wake();
      });
      for (let i = 0; i < count && !gone; i++) {
        const message = Buffer.alloc(size, 1);
        message.writeUInt32BE(i);
        seen.sent++;
        if (!call.write(message))
          await new Promise((resolve) => {
            wake = resolve;
          });
        if (delayMs > 0) await sleep(delayMs);
      }
      seen.active--;
      call.end();
    },
    async FailLater(call) {
      call.write(Buffer.from("one"));
      await sleep(20);
      call.emit("error", { code: grpc.status.NOT_FOUND, details: "gone" });
    },
  },
);

const pem = (text) => Buffer.from(text);
const credentials = options.tls
  ? grpc.ServerCredentials.createSsl(
      options.tls.ca ? pem(options.tls.ca) : null,
      [{ cert_chain: pem(options.tls.cert), private_key: pem(options.tls.key) }],
      options.tls.ca !== undefined,
    )
  : grpc.ServerCredentials.createInsecure();
server.bindAsync(`127.0.0.1:${options.port ?? 0}`, credentials, (error, port) => {
  if (error) throw error;
  console.log(`READY ${port}`);
});
process.on("SIGTERM", () => {
  server.tryShutdown(() => process.exit(0));
  setTimeout(() => process.exit(0), options.graceMs ?? 3000);
});
// Never outlive the tests.
setTimeout(() => process.exit(0), 300_000).unref();
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
