/** What interactions keep, in the store of the gateway. */
import type { NewResponse } from "../../history/store.ts";
import type { InteractionHead } from "./object.ts";
import type { EndedInteraction } from "./writer.ts";

export interface KeptInteraction extends EndedInteraction {
  readonly head: InteractionHead;
  readonly previousId: string | undefined;
  /** The request's own steps: JSON texts. */
  readonly input: readonly string[];
}

/** The row of an interaction. */
export function interactionRow(
  { head, previousId, input, status, body, steps }: Omit<KeptInteraction, "status"> & { readonly status: string },
  tenant: string,
): NewResponse {
  return {
    tenant,
    id: head.id,
    kind: "interaction",
    createdAt: head.createdAt,
    previousId: previousId ?? null,
    conversationId: null,
    model: head.model,
    safetyIdentifier: null,
    status,
    body,
    input,
    output: steps,
    itemIds: [],
  };
}
