/** What the tests of Responses ask, and how the engine answers it: with Qwen 3's template and parsers. */
import OpenAI, { type ClientOptions } from "openai";
import {
  BOTH,
  CITIES,
  call,
  degrees,
  LONG,
  ONE,
  result,
  type ScriptedServer,
  startScripted,
  weather,
} from "./scripted.ts";

export const CODE = 'print("hi")\n';

const SCRIPT = [
  { contains: CITIES.map((city) => result(degrees(city))).join("\n"), text: BOTH, tokens_per_message: [1, 3, 2] },
  { contains: result(degrees("Oslo")), text: ONE },
  { contains: result("printed hi"), text: "It printed hi." },
  {
    contains: "weather of Oslo",
    text: `<think>\nOne town.\n</think>\n\n${weather("Oslo")}`,
    tokens_per_message: [1, 4, 2],
  },
  { contains: "both towns", text: CITIES.map(weather).join("\n"), tokens_per_message: [1, 2, 5, 1] },
  { contains: "say hi in Python", text: call("run_code", { input: CODE }), tokens_per_message: [1, 4] },
  { contains: "send a mail", text: call("mail__send", { to: "ann" }) },
  { contains: "never ends", text: LONG, finish_reason: "length" },
];

export interface ResponsesServer extends ScriptedServer {
  readonly client: OpenAI;
}

export async function startResponses(): Promise<ResponsesServer> {
  const server = await startScripted(SCRIPT);
  return { ...server, client: openAiClient(server.gateway) };
}

/** A client that tries once. */
export const openAiClient = ({ url }: { readonly url: string }, more: ClientOptions = {}): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0, ...more });

/** One that makes a connection for each call: any of the threads may take it. */
export const scatteredClient = (gateway: { readonly url: string }): OpenAI =>
  openAiClient(gateway, { defaultHeaders: { connection: "close" } });
