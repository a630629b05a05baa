/** Writes responses to a SQLite file until it is killed, and prints the number of each once the store has acknowledged it. */
import { openHistory, startHistoryThread } from "../../../src/history/open.ts";
import { item, response } from "./samples.ts";

const [url = "", name = "", start = "0"] = process.argv.slice(2);
const entry = new URL("../../../src/history/thread.ts", import.meta.url);
const thread = (await startHistoryThread({ url }, entry, (message) => console.error(message)))!;
const store = (await openHistory({ url }, thread.connect()))!;

let next = Number(start);
async function write(): Promise<void> {
  for (;;) {
    const n = next++;
    const conversationItems = [item(`msg_${name}_${n}_0`), item(`msg_${name}_${n}_1`)];
    const id = `resp_${name}_${n}`;
    const body = JSON.stringify({ id, text: "x".repeat((n * 997) % 20_000) });
    await store.putResponse(
      response(id, { status: "in_progress", body, output: [], conversationId: "conv_1", conversationItems }),
    );
    await store.appendEvents("acme", id, 0, ["{}", "{}"]);
    process.stdout.write(`${n}\n`);
  }
}
await Promise.all(Array.from({ length: 8 }, write));
