import type { EmbedReply, EmbedRequest } from "../../engines/engine.ts";
import { Feature } from "../../engines/features.ts";
import type { RouteOfRequest } from "../lease.ts";
import type { FleetView, Model } from "../view.ts";
import { idOfTry } from "./attempts.ts";
import { firstAnswer } from "./promised.ts";

/** The vector of a text, from the worker that the policy chooses, or from another if that fails. Rejects as an engine does, and with NoWorkersError. */
export function dispatchEmbed(
  fleet: FleetView,
  model: Model,
  request: EmbedRequest,
  signal: AbortSignal,
  endpoint: string,
  { hints, trace }: RouteOfRequest = {},
): Promise<EmbedReply> {
  const { tokenIds } = request;
  const ask = { needs: Feature.embed, route: { ...hints, tokenIds, tokens: tokenIds.length }, trace };
  return firstAnswer(
    {
      endpoint,
      model: model.entry.id,
      lease: (tried) => fleet.lease(model, { ...ask, tried }),
      async work(lease, attempt, either) {
        const reply = await lease.engine.embed({ ...request, requestId: idOfTry(request.requestId, attempt) }, either);
        lease.done("ok");
        fleet.observer.tried(lease.worker, undefined);
        return reply;
      },
    },
    fleet,
    signal,
  );
}
