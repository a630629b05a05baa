/** A request as the gateway's own conversation. */
import type { Constraint } from "../../engines/engine.ts";
import { UnsupportedError } from "../../errors.ts";
import type { Conversation } from "../../generation/conversation.ts";
import { rawMemberTextSteps } from "../../generation/raw-members.ts";
import type { Steps } from "../../steps.ts";
import { ThreadUnsupportedError } from "../anthropic/errors.ts";
import { refuseUnsupportedPrompt } from "../shared/sampling-fields.ts";
import { lossless } from "../shared/tools.ts";
import { wrong } from "./blocks.ts";
import { type OpenThinking, readHistory } from "./history.ts";
import { LateTools } from "./late-tools.ts";
import type { CountTokensRequest } from "./schema.ts";
import { type Thinking, thinkingOf } from "./thinking.ts";
import { declaredTools, toolUse } from "./tools.ts";

export interface MessageConversation {
  readonly conversation: Conversation;
  readonly thinking: Thinking;
  /** What `output_config.format` demands. */
  readonly format: Constraint | undefined;
}

const EFFORTS = ["low", "medium", "high", "xhigh", "max"];

/**
 * `raw`: the text of the request; `maxTokens`: undefined where tokens are only counted. Throws InvalidRequestError, and UnsupportedError
 * for what would change the meaning of the answer.
 */
export function* messageConversation(
  body: CountTokensRequest,
  open: OpenThinking,
  raw: string | undefined,
  maxTokens: number | undefined,
): Steps<MessageConversation> {
  refuseUnsupportedPrompt(body);
  if (body.mcp_servers && body.mcp_servers.length > 0)
    throw new UnsupportedError("mcp_servers is not supported", { param: "mcp_servers" });
  if (body.thread) throw new ThreadUnsupportedError();
  const thinking = thinkingOf(body, maxTokens);
  const late = new LateTools(yield* declaredTools(body, raw));
  const { messages, isPrefill } = yield* readHistory(body, { open, late, raw });
  const format = yield* formatOf(body, raw);
  const effort = effortOf(body);
  if (effort !== undefined && !EFFORTS.includes(effort))
    throw wrong("output_config.effort", `output_config.effort must be one of ${EFFORTS.join(", ")}`);
  const variables = body.chat_template_kwargs ?? undefined;
  const conversation: Conversation = {
    messages,
    ...toolUse(body, late.tools),
    addGenerationPrompt: !isPrefill,
    continueFinalMessage: isPrefill,
    systemInPlace: true,
    thinking: thinking.isOn,
    ...(effort !== undefined && { reasoningEffort: effort }),
    // in the form that templates know from Chat Completions
    ...(format && { responseFormat: { type: "json_schema", json_schema: { name: "answer", schema: format.schema } } }),
    templateVariables: variables === undefined ? {} : yield* lossless(raw, "chat_template_kwargs", variables),
  };
  return { conversation, thinking, format: format && { kind: "json_schema", schema: format.text } };
}

/** That of the last system message that names one, else the request's. */
function effortOf({ messages, output_config: config }: CountTokensRequest): string | undefined {
  const last = messages.findLast(({ role, output_config: own }) => role === "system" && own?.effort);
  return last?.output_config?.effort ?? config?.effort ?? undefined;
}

/** The schema of the answer: its JSON text and what templates get. The older `output_format` comes first, as in the SDK. */
function* formatOf(
  body: CountTokensRequest,
  raw: string | undefined,
): Steps<{ readonly text: string; readonly schema: unknown } | undefined> {
  const isOld = body.output_format !== undefined && body.output_format !== null;
  const at = isOld ? "output_format" : "output_config.format";
  const format = isOld ? body.output_format : body.output_config?.format;
  if (format === undefined || format === null) return undefined;
  if (format.type !== "json_schema") throw wrong(`${at}.type`, `${at}.type must be json_schema`);
  if (format.schema === undefined) throw wrong(`${at}.schema`, `Missing required parameter: '${at}.schema'`);
  const { schema } = format;
  const outer = raw === undefined || isOld ? raw : yield* rawMemberTextSteps(raw, "output_config");
  const member = outer === undefined ? undefined : yield* rawMemberTextSteps(outer, isOld ? "output_format" : "format");
  const text = member === undefined ? undefined : yield* rawMemberTextSteps(member, "schema");
  return { text: text ?? JSON.stringify(schema), schema: yield* lossless(member, "schema", schema) };
}
