/** A compute thread that dies of the text "die". */
import { textOf } from "../../src/fleet/control-link.ts";
import type { ComputeJob } from "../../src/threads/messages.ts";
import "../../src/threads/compute-thread.ts";

declare const self: Worker;

const work = self.onmessage as (event: MessageEvent<ComputeJob>) => void;
self.onmessage = (event: MessageEvent<ComputeJob>) => {
  if (event.data.type === "encode" && textOf(event.data.text) === "die") process.exit(1);
  work(event);
};
