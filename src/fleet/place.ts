import type { FleetBoard } from "../threads/fleet-board.ts";
import type { Booking, Outcome } from "./lease.ts";
import type { WorkerEntry } from "./snapshot.ts";

/** A place at a worker, booked on the board when it is made. */
export class Place<E> implements Booking {
  private held = true;

  constructor(
    private readonly board: FleetBoard,
    private readonly thread: number,
    readonly worker: WorkerEntry,
    readonly engine: E,
    readonly isProbe: boolean,
  ) {
    board.book(worker.slot, thread);
  }

  begun(): void {}

  progress(): void {}

  done(_outcome: Outcome): void {
    if (!this.held) return;
    this.held = false;
    this.board.release(this.worker.slot, this.thread);
  }
}
