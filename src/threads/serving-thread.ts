/** Entry point of a serving thread: a Bun worker that runs the whole app. */
import { controlOver } from "../fleet/control-link.ts";
import type { FleetSnapshot } from "../fleet/snapshot.ts";
import { openKept, type Serving, startServing } from "../server/serving.ts";
import type { FromThread, ToThread } from "./messages.ts";

declare const self: Worker;

const tell = (message: FromThread) => self.postMessage(message);
let serving: Serving | undefined;
/** The newest that is known. */
let fleet: FleetSnapshot | undefined;
const link = controlOver({
  ask: (id, question) => tell({ type: "question", id, question }),
  forget: (id) => tell({ type: "forget", id }),
});

self.onmessage = ({ data }: MessageEvent<ToThread>) => {
  if (data.type === "ping") tell({ type: "pong" });
  else if (data.type === "metrics") tell({ type: "metrics", counted: serving?.counted() ?? {} });
  else if (data.type === "answer") link.answered(data.id, data.answer);
  else if (data.type === "start") {
    const { options, historyPort } = data;
    fleet = data.fleet;
    const failed = (what: "history" | "port") => (error: unknown) =>
      tell({ type: "failed", what, message: (error as Error).message });
    openKept(options.kept, historyPort)
      .then((kept) => {
        try {
          serving = startServing(options, link.control, kept);
          if (fleet !== undefined) serving.apply(fleet);
          tell({ type: "listening", hostname: serving.hostname, port: serving.port });
        } catch (error) {
          failed("port")(error);
        }
      })
      .catch(failed("history"));
  } else if (data.type === "fleet") {
    fleet = data.fleet;
    serving?.apply(fleet);
    tell({ type: "applied", version: data.version });
  } else if (data.type === "lost") serving?.lost(data.slot);
  else if (serving !== undefined) {
    const running = serving;
    running
      .drain(data.graceMs)
      .then(() => running.stop())
      .finally(() => tell({ type: "drained" }));
  } else tell({ type: "drained" });
};
