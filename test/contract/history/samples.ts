import type { NewResponse, StoredItem } from "../../../src/history/store.ts";

export const NOW = Date.UTC(2026, 10, 30, 12);

export const item = (id: string, text = id): StoredItem => ({
  id,
  json: `{"type":"message","id":${JSON.stringify(id)},"role":"user","content":[{"type":"input_text","text":${JSON.stringify(text)}}]}`,
});

/** A finished response with one item in and one out, whose body shows its output. */
export function response(id: string, more: Partial<NewResponse> = {}): NewResponse {
  const asked = item(`msg_in_${id}`);
  const told = item(`msg_out_${id}`);
  return {
    tenant: "acme",
    id,
    kind: "response",
    createdAt: NOW,
    previousId: null,
    conversationId: null,
    model: "qwen3",
    safetyIdentifier: null,
    status: "completed",
    body: `{"id":${JSON.stringify(id)},"object":"response","n":12345678901234567890,"output":[${told.json}]}`,
    input: [asked.json],
    output: [told.json],
    itemIds: [asked.id, told.id],
    ...more,
  };
}

/** What a promise is rejected with; `expect(…).rejects` of Bun 1.4.5 waits without letting message ports deliver. */
export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
