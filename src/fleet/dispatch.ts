import type { GenerateCall, GenerateHandler, GenerateRequest } from "../engines/engine.ts";
import type { FleetView, Lease, Model } from "./view.ts";

/** Sends generations to a model's workers. */
export interface Dispatcher {
  generate(request: GenerateRequest, handler: GenerateHandler): GenerateCall;
}

/**
 * Sends each generation to the least loaded worker, and on to the next as long as workers cannot be reached and nothing has come
 * back. Each try has a request id of its own, and its booking ends with it. Throws NoWorkersError when there is no worker at all.
 */
export function dispatcher(fleet: FleetView, model: Model): Dispatcher {
  return {
    generate(request, handler) {
      const tried = new Set<number>();
      let call: GenerateCall;
      let cancelled = false;
      let paused = false;

      function attempt(lease: Lease): void {
        tried.add(lease.worker.slot);
        const requestId = tried.size === 1 ? request.requestId : `${request.requestId}-${tried.size}`;
        try {
          call = lease.engine.generate({ ...request, requestId }, receiver(lease));
        } catch (error) {
          lease.release();
          throw error;
        }
        if (paused) call.pause();
      }

      function receiver(lease: Lease): GenerateHandler {
        let begun = false;
        return {
          onChunk(chunk) {
            begun = true;
            handler.onChunk(chunk);
          },
          onFinish(finish) {
            begun = true;
            handler.onFinish(finish);
          },
          onIdle: () => handler.onIdle(),
          onEnd(error) {
            lease.release();
            if (error?.kind === "unavailable") fleet.avoid(lease.worker);
            if (error?.kind !== "unavailable" || begun || cancelled || !another()) handler.onEnd(error);
          },
        };
      }

      /** Tries the next worker; false if there is none. */
      function another(): boolean {
        try {
          attempt(fleet.lease(model, tried));
          return true;
        } catch {
          return false; // the failure that led here is the one to tell
        }
      }

      attempt(fleet.lease(model));
      return {
        cancel() {
          cancelled = true;
          call.cancel();
        },
        pause() {
          paused = true;
          call.pause();
        },
        resume() {
          paused = false;
          call.resume();
        },
      };
    },
  };
}
