import type { EmbedReply, EmbedRequest, GenerateCall, GenerateHandler, GenerateRequest } from "../../engines/engine.ts";
import type { RouteOfRequest } from "../lease.ts";
import type { FleetView, Model } from "../view.ts";
import { dispatchEmbed } from "./embed.ts";
import { dispatchGeneration } from "./generate.ts";

/** Sends generations and texts to embed to a model's workers. */
export interface Dispatcher {
  /** Throws NoWorkersError and UnsupportedError. */
  generate(request: GenerateRequest, handler: GenerateHandler): GenerateCall;
  /** Rejects as an engine does, and with NoWorkersError. */
  embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedReply>;
}

/** `endpoint`: what the requests are for, for those who count. `route`: what the client's request says of where they should go. */
export const dispatcher = (fleet: FleetView, model: Model, endpoint: string, route?: RouteOfRequest): Dispatcher => ({
  generate: (request, handler) => dispatchGeneration(fleet, model, request, handler, endpoint, route),
  embed: (request, signal) => dispatchEmbed(fleet, model, request, signal, endpoint, route),
});
