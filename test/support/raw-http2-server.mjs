// An HTTP/2 server that breaks gRPC in known ways, one per path: node raw-http2-server.mjs. Prints "READY <port>".
import http2 from "node:http2";

const HEAD = { ":status": 200, "content-type": "application/grpc" };
const frame = (bytes, flag = 0) => {
  const out = Buffer.alloc(5 + bytes.length);
  out[0] = flag;
  out.writeUInt32BE(bytes.length, 1);
  Buffer.from(bytes).copy(out, 5);
  return out;
};
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let sessions = 0;

/** Answers with headers and `OK` trailers around what `body` writes. */
function answer(stream, body, status = "0") {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
  return body(stream);
}

const paths = {
  "/raw/Ok": (stream) => answer(stream, (s) => s.end(frame([1]))),
  "/raw/Sessions": (stream) => answer(stream, (s) => s.end(frame([sessions]))),
  "/raw/NoTrailers": (stream) => {
    stream.respond(HEAD);
    stream.end(frame([1]));
  },
  "/raw/Compressed": (stream) => answer(stream, (s) => s.end(frame([1, 2, 3], 1))),
  "/raw/Oversized": (stream) => answer(stream, (s) => s.write(Buffer.of(0, 0xff, 0xff, 0xff, 0xff, 1))),
  "/raw/CutOff": (stream) => answer(stream, (s) => s.end(frame(new Uint8Array(100)).subarray(0, 50))),
  "/raw/TwoMessages": (stream) => answer(stream, (s) => s.end(Buffer.concat([frame([1]), frame([2])]))),
  "/raw/NoMessage": (stream) => answer(stream, (s) => s.end()),
  "/raw/Drip": (stream) =>
    answer(stream, async (s) => {
      const all = Buffer.concat([
        frame([0, 0, 0, 0]),
        frame([]),
        frame([0, 0, 0, 1]),
        frame(new Uint8Array(300).fill(2)),
      ]);
      for (let at = 0; at < all.length; at += 3) {
        s.write(all.subarray(at, at + 3));
        await sleep(1);
      }
      s.end();
    }),
  "/raw/TrailersOnly": (stream) =>
    stream.respond({ ...HEAD, "grpc-status": "5", "grpc-message": "no%20such%20model%zz" }, { endStream: true }),
  "/raw/OddStatus": (stream) => answer(stream, (s) => s.end(), "99"),
  "/raw/Html": (stream) => {
    stream.respond({ ":status": 200, "content-type": "text/html" });
    stream.end("<h1>hello</h1>");
  },
  "/raw/Http503": (stream) => {
    stream.respond({ ":status": 503, "content-type": "text/plain" });
    stream.end("busy");
  },
  // Says goodbye, and ends the running stream in order a while later.
  "/raw/Goaway0": (stream) =>
    answer(stream, async (s) => {
      s.write(frame([0, 0, 0, 0]));
      await sleep(30);
      stream.session.goaway(0);
      for (let i = 1; i < 20; i++) {
        await sleep(10);
        s.write(frame([0, 0, 0, i]));
      }
      s.end();
    }),
  "/raw/Goaway11": async (stream) => {
    stream.respond(HEAD);
    stream.write(frame([0, 0, 0, 0]));
    await sleep(30);
    const { session } = stream;
    session.goaway(11, undefined, Buffer.from("too_many_pings"));
    await sleep(30);
    session.destroy();
  },
  "/raw/Wait": (stream) => {
    stream.respond(HEAD);
    stream.write(frame([0, 0, 0, 0]));
  },
};

const server = http2.createServer();
server.on("session", (session) => {
  sessions++;
  session.on("error", () => {});
});
server.on("stream", (stream, headers) => {
  stream.on("error", () => {});
  const handle = paths[headers[":path"]];
  if (handle) Promise.resolve(handle(stream)).catch(() => {});
  else stream.respond({ ...HEAD, "grpc-status": "12" }, { endStream: true });
});
server.listen(0, "127.0.0.1", () => console.log(`READY ${server.address().port}`));
setTimeout(() => process.exit(0), 300_000).unref();
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
