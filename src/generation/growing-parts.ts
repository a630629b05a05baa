import type { Content, ContentPart } from "./conversation.ts";

export const partsOf = (content: Content): readonly ContentPart[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

/** Makes contents that get part after part: each time a copy of all before would take a chat of thousands of messages seconds. */
export class GrowingParts {
  /** Lists that were made here. */
  private readonly own = new WeakSet<readonly ContentPart[]>();

  /** The content with other parts in the place of its last ones. A content that was made here is not to be used any more then. */
  with(content: Content, more: readonly ContentPart[], dropped = 0): readonly ContentPart[] {
    const parts = partsOf(content);
    const grown = this.own.has(parts) ? (parts as ContentPart[]) : [...parts];
    this.own.add(grown);
    grown.length -= dropped;
    for (const part of more) grown.push(part);
    return grown;
  }
}
