/** Entry point of a serving thread: a Bun worker that runs the whole app. */
import { controlOver } from "../fleet/control-link.ts";
import { type Serving, startServing } from "../server/serving.ts";
import type { FromThread, ToThread } from "./messages.ts";

declare const self: Worker;

const tell = (message: FromThread) => self.postMessage(message);
let serving: Serving | undefined;
const link = controlOver({
  ask: (id, question) => tell({ type: "question", id, question }),
  forget: (id) => tell({ type: "forget", id }),
});

self.onmessage = ({ data }: MessageEvent<ToThread>) => {
  if (data.type === "ping") tell({ type: "pong" });
  else if (data.type === "answer") link.answered(data.id, data.answer);
  else if (data.type === "start") {
    try {
      serving = startServing(data.options, link.control);
      serving.apply(data.fleet);
      tell({ type: "listening", hostname: serving.hostname, port: serving.port });
    } catch (error) {
      tell({ type: "failed", message: (error as Error).message });
    }
  } else if (data.type === "fleet") {
    serving?.apply(data.fleet);
    tell({ type: "applied", version: data.version });
  } else if (serving !== undefined) {
    const running = serving;
    running
      .drain(data.graceMs)
      .then(() => running.stop())
      .finally(() => tell({ type: "drained" }));
  } else tell({ type: "drained" });
};
