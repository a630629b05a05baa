import {
  type EmbedReply,
  type EmbedRequest,
  EngineError,
  type GenerateCall,
  type GenerateHandler,
  type GenerateRequest,
} from "../engines/engine.ts";
import type { FleetView, Lease, Model } from "./view.ts";

const idOfTry = ({ requestId }: { readonly requestId: string }, attempt: number): string =>
  attempt === 1 ? requestId : `${requestId}-${attempt}`;

/** Sends generations and texts to embed to a model's workers. */
export interface Dispatcher {
  generate(request: GenerateRequest, handler: GenerateHandler): GenerateCall;
  /** Rejects as an engine does, and with NoWorkersError. */
  embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedReply>;
}

/**
 * Sends each request to the least loaded worker, and on to the next as long as workers cannot be reached and nothing has come
 * back. Each try has a request id of its own, and its booking ends with it. Throws NoWorkersError when there is no worker at all.
 */
export function dispatcher(fleet: FleetView, model: Model): Dispatcher {
  /** A worker that was not tried; undefined if there is none: the failure that led here is the one to tell then. */
  function leaseOfAnother(tried: ReadonlySet<number>): Lease | undefined {
    try {
      return fleet.lease(model, tried);
    } catch {
      return undefined;
    }
  }

  return {
    generate(request, handler) {
      const tried = new Set<number>();
      let call: GenerateCall;
      let cancelled = false;
      let paused = false;

      function attempt(lease: Lease): void {
        tried.add(lease.worker.slot);
        const requestId = idOfTry(request, tried.size);
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
        const lease = leaseOfAnother(tried);
        if (lease === undefined) return false;
        try {
          attempt(lease);
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
    async embed(request, signal) {
      const tried = new Set<number>();
      let next: Lease | undefined = fleet.lease(model);
      for (;;) {
        const lease: Lease = next;
        tried.add(lease.worker.slot);
        try {
          return await lease.engine.embed({ ...request, requestId: idOfTry(request, tried.size) }, signal);
        } catch (error) {
          if (!(error instanceof EngineError) || error.kind !== "unavailable") throw error;
          fleet.avoid(lease.worker);
          next = signal.aborted ? undefined : leaseOfAnother(tried);
          if (next === undefined) throw error;
        } finally {
          lease.release();
        }
      }
    },
  };
}
