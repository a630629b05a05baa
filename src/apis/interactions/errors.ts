import { GatewayError } from "../../errors.ts";

/** An interaction in the background was cancelled: its status says so. */
export class InteractionCancelledError extends GatewayError {
  readonly status = 499;
  readonly code = "interaction_cancelled";
  constructor() {
    super("The interaction was cancelled");
  }
}
