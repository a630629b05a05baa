/** System text of a request, without what would change from one request to the next. */
import { UnsupportedError } from "../../errors.ts";
import { isObject } from "../shared/tools.ts";
import { stringOf, wrong } from "./blocks.ts";
import type { LateTools } from "./late-tools.ts";
import type { SentBlock, SentContent } from "./schema.ts";
import { declaredTool } from "./tools.ts";

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

/**
 * The text of a system prompt or message; undefined where there is none. Clients send one text as a string or as a block, with their marks for
 * the cache on it or not: the prompt must be the same. `at`: its name in errors. `late`: of a message, which may bring tools in.
 */
export function systemText(sent: SentContent | null | undefined, at: string, late?: LateTools): string | undefined {
  if (sent === undefined || sent === null) return undefined;
  if (typeof sent === "string") return withoutBilling(sent) || undefined;
  const texts = sent.map((block, i) => blockText(block as SentBlock, `${at}[${i}]`, late));
  return texts.filter((text) => text !== "").join("\n") || undefined;
}

function blockText(block: SentBlock, at: string, late: LateTools | undefined): string {
  if (block.type === "text") return withoutBilling(stringOf(block, "text", at));
  if (late !== undefined && block.type === "tool_addition")
    return `These tools are available from now on:\n${late.tell([changedTool(block, at, late)])}`;
  if (late !== undefined && block.type === "tool_removal")
    return `This tool is not available any more: ${changedTool(block, at, late)}`;
  throw wrong(`${at}.type`, `${at}.type: a system prompt holds text only, not '${block.type.slice(0, 40)}'`);
}

/** The name of the tool that comes in or goes; one that is defined there is kept. */
function changedTool(block: SentBlock, at: string, late: LateTools): string {
  const tool = block["tool"];
  if (!isObject(tool)) throw wrong(`${at}.tool`, `${at}.tool must be an object`);
  if (tool["type"] === "tool_reference") return stringOf(tool as SentBlock, "name", `${at}.tool`);
  const definition = tool["definition"];
  if (tool["type"] !== "tool_definition" || block.type !== "tool_addition" || !isObject(definition)) {
    throw new UnsupportedError(`${at}.tool.type: '${String(tool["type"]).slice(0, 40)}' is not supported`, {
      param: `${at}.tool.type`,
    });
  }
  const declared = declaredTool(definition as SentBlock, undefined, `${at}.tool.definition`);
  late.define(declared);
  return declared.definition.name;
}
