/** A batch as clients see it, and as the history keeps it. */

/** How far a batch is; also the status of its row in the history. */
export type BatchStatus = "in_progress" | "canceling" | "ended";

/** How many of its requests came to what. All of them count as `processing` until the batch has ended. */
export interface BatchCounts {
  readonly processing: number;
  readonly succeeded: number;
  readonly errored: number;
  readonly canceled: number;
  readonly expired: number;
}

/** What the history keeps; what a row's status and the address of the server say is added when it is shown. */
export interface BatchBody {
  readonly id: string;
  readonly type: "message_batch";
  readonly request_counts: BatchCounts;
  readonly created_at: string;
  readonly expires_at: string;
  readonly ended_at: string | null;
  readonly cancel_initiated_at: string | null;
  readonly archived_at: null;
}

/** What has not been answered by then is given up. */
const LIFE_MS = 24 * 60 * 60 * 1000;

/** @param createdAt milliseconds since 1970 */
export const newBatch = (id: string, createdAt: number, requests: number): BatchBody => ({
  id,
  type: "message_batch",
  request_counts: { processing: requests, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
  created_at: timeText(createdAt),
  expires_at: timeText(createdAt + LIFE_MS),
  ended_at: null,
  cancel_initiated_at: null,
  archived_at: null,
});

export const timeText = (ms: number): string => new Date(ms).toISOString();

/** @param origin of the server as the client reaches it: `https://host:port` */
export function shownBatch(
  { body, status }: { readonly body: string; readonly status: string },
  origin: string,
): Record<string, unknown> {
  const batch = JSON.parse(body) as BatchBody;
  return {
    ...batch,
    processing_status: status,
    results_url: status === "ended" ? `${origin}/v1/messages/batches/${batch.id}/results` : null,
  };
}
