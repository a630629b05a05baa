import { expect, test } from "bun:test";
import { FleetView } from "../../../src/fleet/view.ts";
import { warmUp } from "../../../src/server/warm-up.ts";
import { FleetBoard } from "../../../src/threads/fleet-board.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { modelEntry } from "./gateway.ts";

test("chats are sent to models that generate only", async () => {
  const fleet = new FleetView(FleetBoard.create(1), 0, () => new ScriptedEngine());
  const models = [
    modelEntry({ id: "chats", aliases: [] }),
    modelEntry({ id: "embeds", aliases: [], pooling: { matryoshka: undefined, classes: undefined } }),
  ];
  fleet.apply({ workers: [], expected: 0, models, tokenizers: [] });
  const asked = new Set<string>();
  await warmUp(
    async (request) => {
      asked.add(((await request.json()) as { model: string }).model);
      return new Response();
    },
    models.map(({ id }) => fleet.model(id)),
    0,
  );
  expect([...asked]).toEqual(["chats"]);
});
