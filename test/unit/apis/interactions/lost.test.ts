/** Interactions whose server has gone in the middle: somebody else tells how they ended, with what there was. */
import { expect, test } from "bun:test";
import { InteractionEvents, replayInteraction } from "../../../../src/apis/interactions/events.ts";
import { LOST_INTERACTION } from "../../../../src/apis/interactions/logged.ts";
import { interactionText } from "../../../../src/apis/interactions/object.ts";
import { interactionRow } from "../../../../src/apis/interactions/state.ts";
import { endLost } from "../../../../src/apis/shared/lost-run.ts";
import { testHistory } from "../../../support/kept.ts";
import {
  checkEvents,
  checkInteraction,
  type InteractionEvent,
  type Step,
} from "../../../support/schemas/interactions.ts";

const SIGNATURE = `s1.${"a".repeat(43)}`;
const CALL = '{"type":"function_call","id":"call_1","name":"f","arguments":{}}';
const head = { id: `int_${"0".repeat(50)}`, createdAt: Date.now(), model: "m", serviceTier: "standard", echo: {} };

/** Runs up to where the server has gone. */
async function lost(work: (events: InteractionEvents) => void, status = "in_progress") {
  const history = testHistory();
  const begun = interactionText(head, { status: "in_progress", updatedAt: head.createdAt, steps: [] });
  await history.putResponse(
    interactionRow({ head, previousId: undefined, input: ["{}"], status, body: begun, steps: [] }, "t"),
  );
  const log: string[] = [];
  const events = new InteractionEvents({ event: (_type, json) => void log.push(json), flush() {}, end() {}, cut() {} });
  events.created({ ...JSON.parse(begun), steps: undefined });
  work(events);
  await history.appendEvents("t", head.id, 0, log);
  await endLost(history, "t", head.id, LOST_INTERACTION);
  const row = (await history.getResponse("t", head.id))!;
  return { row, log: log.map((json) => JSON.parse(json) as InteractionEvent) };
}

function thoughtAndCall(events: InteractionEvents): void {
  events.start(0, "reasoning", '{"type":"thought","summary":[]}');
  events.delta("Hm", 2);
  events.delta(", hm", 6);
  events.signature(SIGNATURE, 6);
  events.stop();
  events.start(1, "call", CALL);
  events.delta('{"x": ', 6);
  events.delta("1.0}", 10);
  events.stop();
}
const STEPS: Step[] = [
  { type: "thought", signature: SIGNATURE, summary: [{ type: "text", text: "Hm, hm" }] },
  { type: "function_call", id: "call_1", name: "f", arguments: { x: 1 } },
];

test.each([
  ["in_progress", "failed"],
  ["canceling", "cancelled"],
])("one that was %s has %s", async (status, ended) => {
  const { row } = await lost(thoughtAndCall, status);
  expect(row.status).toBe(ended);
  expect(checkInteraction(JSON.parse(row.body))).toMatchObject({ status: ended, steps: STEPS });
  expect(row.body).toContain('"arguments":{"x": 1.0}');
  expect(row.output.map((json) => JSON.parse(json) as unknown)).toEqual(STEPS);
});

test("text counts as far as it came, half a call does not; whoever has followed it gets the end", async () => {
  for (const kind of ["text", "call"] as const) {
    const { row, log } = await lost((events) => {
      thoughtAndCall(events);
      events.start(2, kind, kind === "text" ? '{"type":"model_output","content":[]}' : CALL);
      events.delta('{"y', 3);
    });
    const told: Step[] =
      kind === "text" ? [...STEPS, { type: "model_output", content: [{ type: "text", text: '{"y' }] }] : STEPS;
    expect(checkInteraction(JSON.parse(row.body)).steps).toEqual(told);
    const { event_id } = log.at(-1)!;
    const [sequence, step, offset] = event_id.split(".").map(Number) as [number, number, number];
    const rest: InteractionEvent[] = [];
    const out = {
      event: (_type: string, json: string) => void rest.push(JSON.parse(json) as InteractionEvent),
      flush() {},
      end() {},
      cut() {},
    };
    replayInteraction(row.body, { sequence, step, offset }, out);
    const all = checkEvents([...log, ...rest]);
    expect([all.steps, all.last.status]).toEqual([told, "failed"]);
  }
});
