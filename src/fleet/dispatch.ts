import {
  type EmbedReply,
  type EmbedRequest,
  EngineError,
  type GenerateCall,
  type GenerateHandler,
  type GenerateRequest,
} from "../engines/engine.ts";
import { Feature, featuresOf } from "../engines/features.ts";
import type { Lease, LeaseAsk, Outcome } from "./lease.ts";
import type { FleetView, Model } from "./view.ts";

const idOfTry = ({ requestId }: { readonly requestId: string }, attempt: number): string =>
  attempt === 1 ? requestId : `${requestId}-${attempt}`;

/** What an end says of the worker: a request that is wrong, or given up, says nothing. */
function outcomeOf(error: unknown): Outcome {
  if (error === undefined) return "ok";
  const kind = error instanceof EngineError ? error.kind : "failed";
  return kind === "unavailable" || kind === "timeout" || kind === "failed" ? "failure" : "neutral";
}

const awayError = () => new EngineError("unavailable", "the engine does not answer any more");

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
  function leaseOfAnother(ask: LeaseAsk, tried: ReadonlySet<number>): Lease | undefined {
    try {
      return fleet.lease(model, { ...ask, tried });
    } catch {
      return undefined;
    }
  }

  /** Rejects with "unavailable" when the worker is lost meanwhile. */
  async function embedAt({ worker, engine }: Lease, request: EmbedRequest, signal: AbortSignal): Promise<EmbedReply> {
    const lost = new AbortController();
    const forget = fleet.lost.watch(worker.slot, () => lost.abort());
    try {
      return await engine.embed(request, AbortSignal.any([signal, lost.signal]));
    } catch (error) {
      throw lost.signal.aborted && !signal.aborted ? awayError() : error;
    } finally {
      forget();
    }
  }

  return {
    generate(request, handler) {
      const ask = { needs: featuresOf(request), tokens: request.tokenIds.length };
      const tried = new Set<number>();
      let call: GenerateCall;
      let cancelled = false;
      let paused = false;

      function attempt(lease: Lease): void {
        tried.add(lease.worker.slot);
        const requestId = idOfTry(request, tried.size);
        const lost = new AbortController();
        const forget = fleet.lost.watch(lease.worker.slot, () => {
          lost.abort();
          call.cancel();
        });
        try {
          call = lease.engine.generate({ ...request, requestId }, receiver(lease, lost.signal, forget));
        } catch (error) {
          forget();
          lease.done(outcomeOf(error));
          throw error;
        }
        if (paused) call.pause();
      }

      function receiver(lease: Lease, lost: AbortSignal, forget: () => void): GenerateHandler {
        let begun = false;
        return {
          onChunk(chunk) {
            if (!begun) {
              lease.begun();
              forget();
            }
            begun = true;
            lease.progress();
            handler.onChunk(chunk);
          },
          onFinish(finish) {
            begun = true;
            forget();
            handler.onFinish(finish);
          },
          onIdle: () => handler.onIdle(),
          onEnd(error) {
            forget();
            const failure = lost.aborted && error?.kind === "cancelled" && !cancelled ? awayError() : error;
            lease.done(outcomeOf(failure));
            if (failure?.kind === "unavailable") fleet.avoid(lease.worker);
            if (failure?.kind !== "unavailable" || begun || cancelled || !another()) handler.onEnd(failure);
          },
        };
      }

      /** Tries the next worker; false if there is none. */
      function another(): boolean {
        const lease = leaseOfAnother(ask, tried);
        if (lease === undefined) return false;
        try {
          attempt(lease);
          return true;
        } catch {
          return false; // the failure that led here is the one to tell
        }
      }

      attempt(fleet.lease(model, ask));
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
      const ask = { needs: Feature.embed, tokens: request.tokenIds.length };
      let next: Lease | undefined = fleet.lease(model, ask);
      for (;;) {
        const lease: Lease = next;
        tried.add(lease.worker.slot);
        try {
          const reply = await embedAt(lease, { ...request, requestId: idOfTry(request, tried.size) }, signal);
          lease.done("ok");
          return reply;
        } catch (error) {
          lease.done(outcomeOf(error));
          if (!(error instanceof EngineError) || error.kind !== "unavailable") throw error;
          fleet.avoid(lease.worker);
          next = signal.aborted ? undefined : leaseOfAnother(ask, tried);
          if (next === undefined) throw error;
        }
      }
    },
  };
}
