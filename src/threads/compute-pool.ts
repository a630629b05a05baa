import { OverloadedError } from "../errors.ts";
import { type Compute, type SharedText, sharedText, unwrap } from "../fleet/control-link.ts";
import { workerUrl } from "../program.ts";
import type { Logger } from "../telemetry/log.ts";
import type { TokenizerHandle } from "../tokenizer/load.ts";
import type { EncodeOptions } from "../tokenizer/tokenizer.ts";
import type { ComputeJob, FromCompute } from "./messages.ts";

/** Compute threads with a queue before them. */
export interface ComputePool extends Compute {
  /** Ends the threads; what still waits is rejected. */
  close(): void;
}

/** A thread that has had nothing to do for so long is ended: its tables and buffers take tens of megabytes. */
const IDLE_MS = 30_000;
/** Texts that wait may take so many bytes. */
const MOST_WAITING_BYTES = 512 << 20;
const MOST_WAITING = 1000;

interface Waiting {
  readonly job: Extract<ComputeJob, { type: "build" }> | (EncodeJob & { readonly handle: TokenizerHandle });
  readonly bytes: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}
type EncodeJob = Extract<ComputeJob, { type: "encode" }>;

/** Bun's workers can be told not to keep the process alive; the types are the browser's. */
type HeldWorker = Worker & { ref(): void; unref(): void };

interface Thread {
  readonly worker: HeldWorker;
  /** Tokenizers that it has been sent. */
  readonly known: Set<string>;
  running: Waiting | undefined;
  idle: ReturnType<typeof setTimeout> | undefined;
}

/** At most `most` threads, started when there is work for them. */
export function createComputePool(
  most: number,
  log: Logger,
  entry: URL = workerUrl("threads/compute-thread"),
  idleMs = IDLE_MS,
): ComputePool {
  const threads = new Set<Thread>();
  const waiting: Waiting[] = [];
  let waitingBytes = 0;
  let closed = false;

  function start(): Thread {
    const worker = new Worker(entry) as HeldWorker;
    worker.unref();
    const thread: Thread = { worker, known: new Set(), running: undefined, idle: undefined };
    threads.add(thread);
    worker.addEventListener("message", ({ data }: MessageEvent<FromCompute>) => {
      const done = thread.running;
      thread.running = undefined;
      next(thread);
      try {
        done?.resolve(unwrap(data));
      } catch (error) {
        done?.reject(error);
      }
    });
    worker.addEventListener("error", (event) => log.error("compute thread failed", { error: event.message }));
    worker.addEventListener("close", () => {
      threads.delete(thread);
      clearTimeout(thread.idle);
      thread.running?.reject(new Error("the compute thread ended"));
      if (!closed) pump();
    });
    return thread;
  }

  function give(thread: Thread, work: Waiting): void {
    clearTimeout(thread.idle);
    thread.running = work;
    thread.worker.ref();
    const { job } = work;
    let sent: ComputeJob = job;
    if (job.type === "encode") {
      const { handle, ...rest } = job;
      if (thread.known.has(job.key)) sent = rest;
      thread.known.add(handle.key);
    }
    thread.worker.postMessage(sent);
  }

  function next(thread: Thread): void {
    const work = waiting.shift();
    if (work !== undefined) {
      waitingBytes -= work.bytes;
      give(thread, work);
      return;
    }
    thread.worker.unref();
    thread.idle = setTimeout(() => {
      threads.delete(thread);
      thread.worker.terminate();
    }, idleMs);
    thread.idle.unref();
  }

  function pump(): void {
    while (waiting.length > 0) {
      const free = [...threads].find((thread) => thread.running === undefined);
      if (free === undefined && threads.size >= most) return;
      next(free ?? start());
    }
  }

  function submit(job: Waiting["job"], bytes: number, signal?: AbortSignal): Promise<unknown> {
    if (closed) return Promise.reject(new OverloadedError("The server is shutting down"));
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (waiting.length >= MOST_WAITING || waitingBytes + bytes > MOST_WAITING_BYTES)
      return Promise.reject(new OverloadedError("Too many long texts are waiting to be tokenized"));
    return new Promise((resolve, reject) => {
      const settle = () => signal?.removeEventListener("abort", abort);
      const work: Waiting = {
        job,
        bytes,
        resolve(value) {
          settle();
          resolve(value);
        },
        reject(error) {
          settle();
          reject(error);
        },
      };
      function abort(): void {
        const at = waiting.indexOf(work);
        if (at >= 0) {
          waiting.splice(at, 1);
          waitingBytes -= bytes;
        }
        work.reject(signal?.reason);
      }
      signal?.addEventListener("abort", abort);
      waiting.push(work);
      waitingBytes += bytes;
      pump();
    });
  }

  async function encodeShared(
    handle: TokenizerHandle,
    text: SharedText,
    options: EncodeOptions,
    signal: AbortSignal,
  ): Promise<Uint32Array> {
    const job = { type: "encode", key: handle.key, handle, text, options } as const;
    return (await submit(job, text.length, signal)) as Uint32Array;
  }

  return {
    async build(files, cacheDir) {
      return (await submit({ type: "build", files, cacheDir }, 0)) as TokenizerHandle;
    },
    encode: (handle, text, options, signal) => encodeShared(handle, sharedText(text), options, signal),
    encodeShared,
    close() {
      closed = true;
      for (const work of waiting.splice(0)) work.reject(new OverloadedError("The server is shutting down"));
      for (const { worker } of threads) worker.terminate();
    },
  };
}
