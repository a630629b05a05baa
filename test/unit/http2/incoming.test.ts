import { describe, expect, test } from "bun:test";
import { ConnectionError, PREFACE } from "../../../src/http2/frames.ts";
import { encodeHeaders } from "../../../src/http2/hpack.ts";
import { IncomingFrames, type IncomingHandler } from "../../../src/http2/incoming.ts";
import { OutBuffer } from "../../../src/http2/out-buffer.ts";

/** Writes down what comes, bytes as hex. */
function recorder(): { events: string[]; handler: IncomingHandler } {
  const events: string[] = [];
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
  return {
    events,
    handler: {
      onData: (id, bytes, start, end, size, ended) =>
        events.push(`data ${id} ${hex(bytes.subarray(start, end))} ${size} ${ended}`),
      onHeaders: ({ id, ended, headers }) => events.push(`headers ${id} ${ended} ${JSON.stringify([...headers])}`),
      onReset: (id, code) => events.push(`reset ${id} ${code}`),
      onSetting: (key, value) => events.push(`setting ${key} ${value}`),
      onSettingsEnd: () => events.push("settings"),
      onPing: (payload) => events.push(`ping ${hex(payload)}`),
      onPingAnswer: () => events.push("pong"),
      onGoAway: (lastId, code) => events.push(`goaway ${lastId} ${code}`),
      onWindowUpdate: (id, increment) => events.push(`window ${id} ${increment}`),
    },
  };
}

function everyKind(): Uint8Array {
  const out = new OutBuffer();
  out.settings([
    [3, 100],
    [4, 0x7fffffff],
  ]);
  out.headers(
    1,
    encodeHeaders([
      [":status", "200"],
      ["k", "v".repeat(300)],
    ]),
    false,
    128,
  );
  out.frame(3, 0, 1, 0x7fffffff);
  out.append(Uint8Array.of(1, 2, 255));
  out.frame(6, 0, 8, 5);
  out.append(Uint8Array.of(2, 9, 8, 7, 0, 0));
  out.frame(0, 0, 0, 1);
  out.rstStream(3, 8);
  out.windowUpdate(0, 65_535);
  out.frame(8, 6, 1, 0);
  out.append(new Uint8Array(8));
  out.frame(8, 6, 0, 0);
  out.append(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
  out.goAway(0x7fffffff, 11, "too_many_pings");
  return out.bytes.slice(out.start, out.end);
}

const EXPECTED = [
  "setting 3 100",
  "setting 4 2147483647",
  "settings",
  `headers 1 false [[":status","200"],["k","${"v".repeat(300)}"]]`,
  "data 2147483647 0102ff 3 true",
  "data 5 090807 6 false",
  "data 1  0 false",
  "reset 3 8",
  "window 0 65535",
  "pong",
  "ping 0102030405060708",
  "goaway 2147483647 11",
];

describe("incoming frames", () => {
  test("are the same, however the socket splits them", () => {
    for (const preface of [undefined, PREFACE]) {
      const bytes = preface === undefined ? everyKind() : Buffer.concat([preface, everyKind()]);
      for (let step = 1; step <= bytes.length; step++) {
        const { events, handler } = recorder();
        const incoming = new IncomingFrames(handler, preface);
        // One buffer for all reads, as a socket may do.
        const read = new Uint8Array(step);
        for (let at = 0; at < bytes.length; at += step) {
          read.set(bytes.subarray(at, at + step));
          incoming.push(read.subarray(0, Math.min(step, bytes.length - at)));
        }
        expect(events).toEqual(EXPECTED);
      }
    }
  });

  test("the last DATA frame of a stream that a read has in full is known as such when it is given out", () => {
    const seen: string[] = [];
    const { handler } = recorder();
    const incoming: IncomingFrames = new IncomingFrames({
      ...handler,
      onData: (id, _bytes, start) => seen.push(`${id}${incoming.isLastData(id, start) ? " last" : ""}`),
    });
    const out = new OutBuffer();
    out.settings([]);
    for (const id of [1, 3, 1, 5, 3]) {
      out.frame(4, 0, 0, id);
      out.append(new Uint8Array(4));
    }
    out.rstStream(1, 8);
    const bytes = out.bytes.slice(out.start, out.end);
    incoming.push(bytes);
    expect(seen).toEqual(["1", "3", "1 last", "5 last", "3 last"]);
    // The last frame of 3 has come in part: the one before it is the last that is whole.
    seen.length = 0;
    const cut = bytes.length - 13 - 2;
    incoming.push(bytes.subarray(9, cut));
    expect(seen).toEqual(["1", "3 last", "1 last", "5 last"]);
    incoming.push(bytes.subarray(cut));
    expect(seen.at(-1)).toStartWith("3");
  });

  test("stop gives out no more, not even of the same read", () => {
    const { events, handler } = recorder();
    const incoming: IncomingFrames = new IncomingFrames({ ...handler, onReset: () => incoming.stop() });
    incoming.push(everyKind());
    incoming.push(everyKind());
    expect(events).toEqual(EXPECTED.slice(0, 7));
  });

  test("another preface, and anything before the settings, is refused", () => {
    const { handler } = recorder();
    expect(() => new IncomingFrames(handler, PREFACE).push(Buffer.from("GET / HTTP/1.1\r\n"))).toThrow(ConnectionError);
    const out = new OutBuffer();
    out.windowUpdate(0, 1);
    expect(() => new IncomingFrames(handler).push(out.bytes.slice(0, out.end))).toThrow(ConnectionError);
  });
});

describe("out buffer", () => {
  test("keeps what is not written, in order, while it grows; a large one is given back", () => {
    const out = new OutBuffer();
    const written: number[] = [];
    let next = 0;
    for (let round = 0; round < 300; round++) {
      for (let i = 0; i < 3000; i++) out.append(Uint8Array.of(next++ & 255));
      const size = Math.min(out.length, round < 150 ? 1000 : 6000);
      written.push(...out.bytes.subarray(out.start, out.start + size));
      out.drop(size);
    }
    expect(out.length).toBe(0);
    expect(written).toHaveLength(900_000);
    expect(written.every((byte, i) => byte === (i & 255))).toBe(true);
    expect(out.bytes.length).toBeLessThan(100_000);
  });
});
