/** Responses out of the rows that SQL gives. */
import { arrayTexts } from "../json-text.ts";
import { bodyOf, outputOf } from "../rows.ts";
import type { ChainTurn, ResponseKind, StoredResponse } from "../store.ts";
import type { Row } from "./statement.ts";

/** Microseconds as milliseconds. */
export const millis = (micros: unknown): number => Math.floor(Number(micros ?? 0) / 1000);

export function responseOf(row: Row): StoredResponse {
  return {
    tenant: row["tenant"] as string,
    previousId: row["previous_response_id"] as string | null,
    safetyIdentifier: row["safety_identifier"] as string | null,
    body: bodyOf(row["raw_response"] as string | null),
    ...turnOf(row),
  };
}

export function turnOf(row: Row): ChainTurn {
  const kind = row["kind"] as ResponseKind;
  return {
    id: row["id"] as string,
    kind,
    createdAt: millis(row["created"]),
    conversationId: row["conversation_id"] as string | null,
    model: row["model"] as string | null,
    status: row["status"] as string,
    input: arrayTexts((row["input"] as string | null) ?? "[]"),
    output: outputOf(kind, bodyOf(row["raw_response"] as string | null), row["output_items"] as string | null),
  };
}
