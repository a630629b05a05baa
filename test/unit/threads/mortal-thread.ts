/** A real serving thread that ends when it is told to, as one ends that runs out of memory. */
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
orders.onmessage = (event: MessageEvent<number>) => {
  if (event.data === thread) process.exit(1);
};
