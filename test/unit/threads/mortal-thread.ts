/** A real serving thread that ends when it is told to, as one ends that runs out of memory, or hangs as in an endless loop. */
import "../../../src/threads/serving-thread.ts";
import type { ToThread } from "../../../src/threads/messages.ts";

declare const self: Worker;

const serve = self.onmessage;
const orders = new BroadcastChannel("mortal-thread");
let thread = -1;

self.onmessage = (event: MessageEvent<ToThread>) => {
  if (event.data.type === "start") thread = event.data.options.thread;
  serve?.call(self, event);
};
orders.onmessage = (event: MessageEvent<number | { readonly hang: number }>) => {
  if (event.data === thread) process.exit(1);
  if (typeof event.data === "object" && event.data.hang === thread) for (;;);
};
