/** Both channels behind one name, and what the suites need around them. */
import type { CallOptions, Channel, ChannelOptions } from "../../../src/engines/channel.ts";
import { createFramingChannel } from "../../../src/engines/framing-channel.ts";
import { GrpcError } from "../../../src/engines/grpc-error.ts";
import { createGrpcJsChannel } from "../../../src/engines/grpc-js-channel.ts";
import { lazyChannel } from "../../../src/engines/lazy-channel.ts";

export const OPTIONS: ChannelOptions = {
  maxReceiveBytes: 32 << 20,
  keepaliveMs: 0,
  keepaliveTimeoutMs: 1000,
  connectTimeoutMs: 3000,
};

export type MakeChannel = (target: string, options: ChannelOptions) => Channel;

export const CHANNELS: readonly (readonly [string, MakeChannel])[] = [
  ["framing", createFramingChannel],
  ["grpc-js", createGrpcJsChannel],
];
/** With the wrapper that loads a channel's code late. */
export const CHANNELS_AND_LATE: typeof CHANNELS = [
  ...CHANNELS,
  ["grpc-js, loaded late", (target, options) => lazyChannel(async () => createGrpcJsChannel(target, options))],
];

export const NOTHING = new Uint8Array(0);
export const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
export const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface ServerStats {
  readonly started: number;
  readonly cancelled: number;
  readonly active: number;
  readonly sent: number;
}

export async function stats(channel: Channel): Promise<ServerStats> {
  return JSON.parse(text(await channel.unary("/test.Bytes/Stats", NOTHING)));
}

/** The GrpcError that a call must end with. */
export async function failure(call: Promise<unknown>): Promise<GrpcError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof GrpcError) return error;
    throw error;
  }
  throw new Error("the call did not fail");
}

/** A server stream being read: how much came, and how it ended. */
export interface Reading {
  readonly call: { cancel(): void; pause(): void; resume(): void };
  /** Numbers at the head of the messages, in order of arrival. */
  readonly numbers: number[];
  idles: number;
  ends: number;
  readonly done: Promise<GrpcError | undefined>;
}

/** Reads a stream whose messages begin with a 32-bit number. `onNumber` sees each, with the reading. */
export function read(
  channel: Channel,
  path: string,
  request: Uint8Array,
  onNumber?: (number: number, reading: Reading) => void,
  options?: CallOptions,
): Reading {
  let finish: (error: GrpcError | undefined) => void = () => {};
  const done = new Promise<GrpcError | undefined>((resolve) => {
    finish = resolve;
  });
  const numbers: number[] = [];
  const reading: Reading & { call: Reading["call"] } = {
    call: { cancel() {}, pause() {}, resume() {} },
    numbers,
    idles: 0,
    ends: 0,
    done,
  };
  reading.call = channel.serverStream(
    path,
    request,
    {
      onMessage(bytes, start) {
        const number = new DataView(bytes.buffer, bytes.byteOffset).getUint32(start);
        numbers.push(number);
        onNumber?.(number, reading);
      },
      onIdle() {
        reading.idles++;
      },
      onEnd(error) {
        reading.ends++;
        finish(error);
      },
    },
    options,
  );
  return reading;
}

/** Waits until `check` holds; fails after `ms`. */
export async function until(check: () => boolean | Promise<boolean>, ms = 5000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await check())) {
    if (performance.now() > end) throw new Error("waited in vain");
    await sleep(10);
  }
}
