import type { OptionTable } from "../config/option.ts";

/** Settings of `collie explain`. */
export const explainOptions = {
  url: {
    flag: "url",
    type: "string",
    default: "http://127.0.0.1:30000",
    group: "Gateway",
    help: "Where the gateway listens.",
  },
  apiKey: {
    flag: "api-key",
    type: "string",
    secret: true,
    group: "Gateway",
    help: "The gateway's key, if it has one.",
  },
  model: {
    flag: "model",
    type: "string",
    group: "Request",
    help: "The model that the request would name; may be left out where there is only one.",
  },
  prompt: {
    flag: "prompt",
    type: "string",
    group: "Request",
    help: "The prompt, as of a completion. Without it, and without a file, it is read from standard input.",
  },
  file: { flag: "file", type: "string", group: "Request", help: "File with the prompt." },
  chat: {
    flag: "chat",
    type: "string",
    group: "Request",
    help: "File with the body of a chat completion, or with its messages alone, as JSON; - is standard input.",
  },
  routingKey: {
    flag: "routing-key",
    type: "string",
    group: "Request",
    help: "Routing key that the request would have (x-smg-routing-key).",
  },
  targetWorker: {
    flag: "target-worker",
    type: "string",
    group: "Request",
    help: "Worker that the request would ask for (x-smg-target-worker).",
  },
  json: { flag: "json", type: "boolean", group: "Output", help: "Print what the gateway answers." },
  most: {
    flag: "most",
    type: "integer",
    default: 20,
    min: 1,
    group: "Output",
    help: "Workers that are drawn; the others are counted.",
  },
} as const satisfies OptionTable;
