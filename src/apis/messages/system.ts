/** System text of a request, without what would change from one request to the next. */
import { InvalidRequestError } from "../../errors.ts";
import type { Content } from "../../generation/conversation.ts";
import type { SentContent } from "./schema.ts";

/**
 * Claude Code puts a line in front of its system text, `x-anthropic-billing-header: cc_version=…; cch=…;`, whose checksum is another one in
 * each request (anthropics/claude-code#68900): engines would find nothing of the prompt in their caches. It is not meant for the model.
 */
const BILLING = "x-anthropic-billing-header:";

function withoutBilling(text: string): string {
  if (!text.startsWith(BILLING)) return text;
  const end = text.indexOf("\n");
  return end < 0 ? "" : text.slice(end + 1).replace(/^\n+/, "");
}

/** The text of a system prompt or message; undefined where there is none. `at`: its name in errors. */
export function systemContent(sent: SentContent | null | undefined, at: string): Content | undefined {
  if (sent === undefined || sent === null) return undefined;
  if (typeof sent === "string") return withoutBilling(sent) || undefined;
  const texts = sent.map((block, i) => {
    const { type, text } = block as { type: string; text?: unknown };
    if (type !== "text") {
      throw new InvalidRequestError(`${at}[${i}].type: a system prompt holds text only, not '${type.slice(0, 40)}'`, {
        param: `${at}[${i}].type`,
      });
    }
    if (typeof text !== "string")
      throw new InvalidRequestError(`${at}[${i}].text must be a string`, { param: `${at}[${i}].text` });
    return withoutBilling(text);
  });
  const parts = texts.filter((text) => text !== "").map((text) => ({ type: "text", text }) as const);
  return parts.length === 0 ? undefined : parts;
}
