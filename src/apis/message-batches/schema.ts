/** Batches of Messages. */
import { type Static, Type as t } from "@sinclair/typebox";

/** As many as Anthropic takes. */
const MOST = 100_000;

/** Request of `POST /v1/messages/batches`. What a batch asks for in each is looked at when its turn comes. */
export const batchRequest = t.Object(
  {
    requests: t.Array(
      t.Object({
        custom_id: t.String({ pattern: "^[a-zA-Z0-9_-]{1,64}$" }),
        params: t.Object({}, { additionalProperties: true, description: "A request of POST /v1/messages" }),
      }),
      { minItems: 1, maxItems: MOST },
    ),
  },
  { additionalProperties: true },
);
export type BatchRequest = Static<typeof batchRequest>;

const time = t.String({ description: "RFC 3339" });
const count = t.Integer();

export const batchResponse = t.Object({
  id: t.String(),
  type: t.Literal("message_batch"),
  processing_status: t.String({ description: "in_progress, canceling or ended" }),
  request_counts: t.Object({
    processing: count,
    succeeded: count,
    errored: count,
    canceled: count,
    expired: count,
  }),
  created_at: time,
  expires_at: time,
  ended_at: t.Union([time, t.Null()]),
  cancel_initiated_at: t.Union([time, t.Null()]),
  archived_at: t.Null(),
  results_url: t.Union([t.String({ description: "JSON lines, once it has ended" }), t.Null()]),
});
