/** Tools of a request, and how they are to be used. */
import { UnsupportedError } from "../../errors.ts";
import type { Conversation, ToolChoice, ToolDefinition } from "../../generation/conversation.ts";
import type { Steps } from "../../steps.ts";
import { checkedChoice, functionDefinition, isObject, losslessList } from "../shared/tools.ts";
import { missing, wrong } from "./content.ts";
import type { InteractionsRequest, Loose } from "./schema.ts";

const LONGEST_NAME = 128;
const CHOICE = "generation_config.tool_choice";

/** `isStrict`: the arguments of calls must satisfy the schema. */
interface Chosen {
  readonly choice: ToolChoice | undefined;
  readonly isStrict: boolean;
}

/** `raw`: the text of the request, so that templates get schemas with numbers and the order of keys as sent. Throws InvalidRequestErrors. */
export function* interactionTools(
  { tools: sent, generation_config: config }: Pick<InteractionsRequest, "tools" | "generation_config">,
  raw: string | undefined,
): Steps<Pick<Conversation, "tools" | "emptyToolList" | "toolChoice" | "parallelToolCalls">> {
  const { choice, isStrict } = chosen(config?.tool_choice ?? undefined);
  const asSent = yield* losslessList(raw, "tools");
  const tools = (sent ?? []).map((tool: Loose, i) => definition(tool, asSent?.[i], isStrict, `tools[${i}]`));
  const names = new Set<string>();
  tools.forEach(({ name }, i) => {
    if (names.has(name)) throw wrong(`tools[${i}].name`, `tools[${i}].name: there is another tool '${name}'`);
    names.add(name);
  });
  return {
    tools,
    ...(tools.length === 0 && sent && { emptyToolList: true }),
    toolChoice: checkedChoice(choice, tools, CHOICE),
    parallelToolCalls: true,
  };
}

function definition(tool: Loose, asSent: unknown, strict: boolean, at: string): ToolDefinition {
  const { type, name, description, parameters } = tool;
  if (typeof type !== "string") throw missing(`${at}.type`);
  // tools that Google's servers would run: without them the answer means something else
  if (type !== "function")
    throw new UnsupportedError(`${at}.type: tools of the type '${type.slice(0, 60)}' are not supported`, {
      param: `${at}.type`,
    });
  if (typeof name !== "string" || name === "") throw missing(`${at}.name`);
  if (name.length > LONGEST_NAME) throw wrong(`${at}.name`, `${at}.name is longer than ${LONGEST_NAME} characters`);
  if (parameters !== undefined && parameters !== null && !isObject(parameters))
    throw wrong(`${at}.parameters`, `${at}.parameters must be an object`);
  const text = typeof description === "string" && description !== "" ? description : undefined;
  const schema = asSent instanceof Map ? (asSent.get("parameters") as unknown) : parameters;
  const declaration = {
    type: "function",
    function: {
      name,
      ...(text !== undefined && { description: text }),
      ...(schema !== undefined && schema !== null && { parameters: schema }),
    },
  };
  return functionDefinition({ name, description: text, parameters, strict }, declaration);
}

function chosen(given: string | object | undefined): Chosen {
  if (given === undefined) return { choice: undefined, isStrict: false };
  if (typeof given === "string") return byMode(given, CHOICE);
  const allowed = (given as Loose)["allowed_tools"];
  const at = `${CHOICE}.allowed_tools`;
  if (!isObject(allowed)) throw missing(at);
  const { mode = "auto", tools } = allowed;
  const { choice, isStrict } = byMode(mode, `${at}.mode`);
  if (tools === undefined || tools === null || choice === undefined || choice.mode === "none")
    return { choice, isStrict };
  if (!Array.isArray(tools) || tools.length === 0 || !tools.every((name) => typeof name === "string"))
    throw wrong(`${at}.tools`, `${at}.tools must be a list of names`);
  return { choice: { ...choice, allowed: [...new Set(tools as string[])] }, isStrict };
}

/** `validated`: text or calls, but calls only with arguments that satisfy their schemas. */
function byMode(mode: unknown, at: string): Chosen {
  switch (mode) {
    case "auto":
    case "none":
      return { choice: { mode }, isStrict: false };
    case "any":
      return { choice: { mode: "required" }, isStrict: false };
    case "validated":
      return { choice: { mode: "auto" }, isStrict: true };
    default:
      throw wrong(at, `${at} must be auto, any, none or validated`);
  }
}
