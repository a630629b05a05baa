/** How responses and items lie in a row, and how the rows of SMG 1.9's databases read; shared by SQL and Redis. */
import { arrayOfTexts, arrayTexts, idOf, memberText } from "./json-text.ts";
import type { ResponseKind, ResponseState, StoredItem, StoredResponse } from "./store.ts";
import { UNFINISHED_STATUSES } from "./store.ts";

/** Member of the body that shows the output. */
const OUTPUT_MEMBERS: Readonly<Record<ResponseKind, string>> = { response: "output", interaction: "steps", batch: "" };

/** What is kept of the output beside the body: nothing if the body shows it as it is. */
export function outputBeside(kind: ResponseKind, body: string, output: readonly string[]): string | null {
  const text = arrayOfTexts(output);
  const shown = memberText(body, OUTPUT_MEMBERS[kind]);
  return shown === text || (shown === undefined && output.length === 0) ? null : text;
}

/** The output of a row that was written so. */
export function outputOf(kind: ResponseKind, body: string, beside: string | null): string[] {
  return arrayTexts(beside ?? memberText(body, OUTPUT_MEMBERS[kind]) ?? "[]");
}

/** What a turn counts for in a chain: UTF-8 bytes of what lies in its row for it. */
export function turnBytes({ kind, body, input, output }: StoredResponse): number {
  return Buffer.byteLength(arrayOfTexts(input)) + Buffer.byteLength(outputBeside(kind, body, output) ?? body);
}

export function stateOf(status: string, updatedAt: number): ResponseState {
  return { status, updatedAt: (UNFINISHED_STATUSES as readonly string[]).includes(status) ? updatedAt : null };
}

/** SMG writes null where there is no body. */
export const bodyOf = (text: string | null): string => text ?? "null";

export interface ItemColumns {
  readonly id: string;
  readonly type: string;
  readonly role: string | null;
  readonly status: string | null;
  /** SMG keeps the content of messages here and other items whole; we keep all items whole. */
  readonly content: string;
}

export function itemColumns({ id, json }: StoredItem): ItemColumns {
  const parsed: unknown = JSON.parse(json);
  const member = (name: string): string | null => {
    const value = typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>)[name] : undefined;
    return typeof value === "string" ? value : null;
  };
  return { id, type: member("type") ?? "message", role: member("role"), status: member("status"), content: json };
}

/** The item of a row, also of one that SMG wrote (its `item_to_json`: the parts of a message, and its phase beside them). */
export function itemOf({ id, type, role, status, content }: ItemColumns): StoredItem {
  if (idOf(content) === id) return { id, json: content };
  const text = (value: string): string => JSON.stringify(value);
  const inner = type === "message" ? memberText(content, "content") : undefined;
  const phase = inner === undefined ? undefined : memberText(content, "phase");
  const members = [`"id":${text(id)}`, `"type":${text(type)}`];
  if (role !== null) members.push(`"role":${text(role)}`);
  members.push(`"content":${inner ?? content}`);
  if (phase !== undefined) members.push(`"phase":${phase}`);
  if (status !== null) members.push(`"status":${text(status)}`);
  return { id, json: `{${members.join(",")}}` };
}

/** Those of `ids` among the items of a response, the first of each. */
export function itemsAmong(ids: ReadonlySet<string>, texts: readonly string[]): StoredItem[] {
  const found = new Map<string, StoredItem>();
  for (const json of texts) {
    const id = idOf(json);
    if (ids.has(id) && !found.has(id)) found.set(id, { id, json });
  }
  return [...found.values()];
}
