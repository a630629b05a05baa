/** Books and releases at random on a shared fleet board; what it still holds at the end is what it answers. */
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { random } from "../generation/random.ts";

declare const self: Worker;

export type Task =
  | {
      readonly kind: "book";
      readonly memory: SharedArrayBuffer;
      readonly thread: number;
      readonly slots: number[];
      readonly steps: number;
    }
  | { readonly kind: "claim"; readonly memory: SharedArrayBuffer; readonly count: number };

self.onmessage = ({ data: task }: MessageEvent<Task>) => {
  const board = FleetBoard.open(task.memory);
  if (task.kind === "claim") {
    const claimed = Array.from({ length: task.count }, () => board.claim());
    self.postMessage(claimed.filter((slot) => board.state(slot) === WorkerState.starting));
    return;
  }
  const { below, pick } = random(task.thread + 1);
  const held: number[] = [];
  for (let step = 0; step < task.steps; step++) {
    if (held.length > 0 && (held.length > 50 || below(2) === 0)) {
      const [slot] = held.splice(below(held.length), 1);
      board.release(slot ?? -1, task.thread);
    } else {
      const slot = pick(task.slots);
      board.book(slot, task.thread);
      held.push(slot);
    }
  }
  self.postMessage(held);
};
