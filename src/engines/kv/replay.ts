/** Asks a publisher for what it sent before: it keeps its last batches, some thousands of them. */
import { connectZmq, type ZmqSocket } from "./zmq.ts";
import type { ZmqAddress } from "./zmq-address.ts";

/** How long the next part of an answer may take. */
const SILENCE_MS = 5000;
const EMPTY = new Uint8Array(0);

export interface Replay {
  pause(): void;
  resume(): void;
  /** Nothing comes after it. */
  close(): void;
}

/** Number of a batch, as publishers write it; undefined: what ends a replay, or is none. */
export function sequenceOf(frame: Uint8Array | undefined): number | undefined {
  if (frame?.length !== 8) return undefined;
  const view = new DataView(frame.buffer, frame.byteOffset, 8);
  const high = view.getUint32(0);
  return high >= 0x200000 ? undefined : high * 2 ** 32 + view.getUint32(4);
}

/** The batches from number `from` on, as far as they are kept. `onDone` comes once, also where nobody answers. */
export function startReplay(
  address: ZmqAddress,
  from: number,
  onBatch: (sequence: number, payload: Uint8Array) => void,
  onDone: (isWhole: boolean) => void,
): Replay {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  let isPaused = false;
  const finish = (isWhole: boolean): void => {
    if (isOver) return;
    close();
    onDone(isWhole);
  };
  const wait = (): void => {
    clearTimeout(timer);
    if (!isPaused && !isOver) timer = setTimeout(() => finish(false), SILENCE_MS);
  };
  const close = (): void => {
    isOver = true;
    clearTimeout(timer);
    socket.close();
  };
  const socket: ZmqSocket = connectZmq("DEALER", address, {
    onReady() {
      const number = Buffer.alloc(8);
      number.writeBigUInt64BE(BigInt(from));
      socket.send([EMPTY, number]);
      wait();
    },
    // an empty frame, that of the topic with some engines, the number, the batch
    onMessage(frames) {
      const sequence = sequenceOf(frames.at(-2));
      if (frames.length < 3 || sequence === undefined) return finish(true);
      onBatch(sequence, frames.at(-1)!);
      wait();
    },
    onClose: () => finish(false),
  });
  return {
    pause() {
      isPaused = true;
      clearTimeout(timer);
      socket.pause();
    },
    resume() {
      isPaused = false;
      socket.resume();
      wait();
    },
    close,
  };
}
