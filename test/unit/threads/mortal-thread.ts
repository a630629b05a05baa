/**
 * A real serving thread that ends when it is told to, as one ends that runs out of memory (in the middle of writing to the prefix index,
 * too), or hangs as in an endless loop.
 */
import "../../../src/threads/serving-thread.ts";
import type { ToThread } from "../../../src/threads/messages.ts";
import { instantiate } from "../../../src/threads/prefix-kernel/kernel.ts";

declare const self: Worker;

const serve = self.onmessage;
const orders = new BroadcastChannel("mortal-thread");
let thread = -1;
let index: WebAssembly.Memory | undefined;

self.onmessage = (event: MessageEvent<ToThread>) => {
  if (event.data.type === "start") {
    thread = event.data.options.thread;
    index = event.data.options.boards.prefix;
  }
  serve?.call(self, event);
};
orders.onmessage = ({ data }: MessageEvent<number | { readonly hang?: number; readonly dieWriting?: number }>) => {
  if (data === thread) process.exit(1);
  if (typeof data !== "object") return;
  if (data.hang === thread) for (;;);
  if (data.dieWriting !== thread) return;
  while (instantiate(index!).lock(thread + 1, 1000) === 0);
  process.exit(1);
};
