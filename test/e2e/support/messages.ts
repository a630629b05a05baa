/** What the tests of Messages ask, and how the engine answers it: with Qwen 3's template and parsers. */
import Anthropic from "@anthropic-ai/sdk";
import {
  BOTH,
  CITIES,
  degrees,
  ONE,
  result,
  type ScriptedServer,
  startScripted,
  THOUGHT,
  weather,
  YES,
} from "./scripted.ts";

const thought = `<think>\n${THOUGHT}\n</think>\n\n`;
const AGAIN = `${thought}<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>`;

const SCRIPT = [
  { contains: CITIES.map((city) => result(degrees(city))).join("\n"), text: BOTH, tokens_per_message: [1, 3, 2] },
  // the thoughts of the turn before are in the prompt again, as the model wrote them
  { contains: AGAIN, text: `${ONE} I thought so.` },
  { contains: result(degrees("Oslo")), text: ONE },
  { contains: "think of Oslo", text: `${thought}${weather("Oslo")}`, tokens_per_message: [1, 4, 2] },
  { contains: "weather of Oslo", text: weather("Oslo"), tokens_per_message: [1, 4, 2] },
  { contains: "both towns", text: `I look.\n${CITIES.map(weather).join("\n")}`, tokens_per_message: [1, 2, 5, 1] },
  { contains: "slowly", text: YES, delay_ms: 3000 },
  { contains: "hold on", text: YES, delay_ms: 60_000 },
];

export interface MessagesServer extends ScriptedServer {
  readonly client: Anthropic;
}

/** `args`: of the gateway. */
export async function startMessages(args?: readonly string[]): Promise<MessagesServer> {
  const server = await startScripted(SCRIPT, args);
  return { ...server, client: anthropicClient(server.gateway) };
}

/** A client that tries once. */
export const anthropicClient = ({ url }: { readonly url: string }): Anthropic =>
  new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
