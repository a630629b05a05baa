import { describe, expect, test } from "bun:test";
import { loadContext } from "../../../../src/apis/shared/history.ts";
import { NotFoundError, PreconditionError, PreviousNotFoundError } from "../../../../src/errors.ts";
import type { HistoryStore, NewResponse } from "../../../../src/history/store.ts";
import { testHistory } from "../../../support/kept.ts";

const item = (id: string, more: object = { role: "user", content: id }): string =>
  JSON.stringify({ id, type: "message", ...more });
const call = (id: string): string =>
  item(id, { type: "function_call", call_id: `call_${id}`, name: "f", arguments: "{}" });
const result = (id: string): string =>
  item(`out_${id}`, { type: "function_call_output", call_id: `call_${id}`, output: "1" });

function turn(n: number, more: Partial<NewResponse> = {}): NewResponse {
  return {
    tenant: "t",
    id: `resp_${n}`,
    kind: "response",
    createdAt: n,
    previousId: n === 1 ? null : `resp_${n - 1}`,
    conversationId: null,
    model: "m",
    safetyIdentifier: null,
    status: "completed",
    body: "{}",
    input: [item(`in_${n}`)],
    output: [item(`out_${n}`)],
    itemIds: [],
    ...more,
  };
}

async function chain(...turns: readonly NewResponse[]): Promise<HistoryStore> {
  const history = testHistory();
  for (const one of turns) await history.putResponse(one);
  return history;
}
const ids = async (history: HistoryStore, previousResponseId: string): Promise<unknown[]> =>
  (await loadContext(history, { previousResponseId }, "t")).map(({ id }) => id);
const failure = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

describe("what a request goes on from", () => {
  test("is the input and output of all turns before, oldest first", async () => {
    expect(await ids(await chain(turn(1), turn(2), turn(3)), "resp_3")).toEqual(
      [1, 2, 3].flatMap((n) => [`in_${n}`, `out_${n}`]),
    );
  });

  test("does not begin with the result of a call that is gone", async () => {
    const turns = [
      turn(1, { output: [call("a"), call("b")] }),
      turn(2, { input: [result("a"), result("b")], output: [call("c")] }),
      turn(3, { input: [result("c"), item("in_3")] }),
    ];
    const history = await chain(...turns);
    expect(await ids(history, "resp_3")).toEqual(["in_1", "a", "b", "out_a", "out_b", "c", "out_c", "in_3", "out_3"]);
    await history.deleteResponse("t", "resp_1");
    expect(await ids(history, "resp_3")).toEqual(["c", "out_c", "in_3", "out_3"]);
  });

  test("is the newest part of a long conversation", async () => {
    const history = testHistory();
    await history.createConversation({ tenant: "t", id: "conv_1", createdAt: 1, metadata: "{}" }, []);
    const items = [call("a"), result("a"), ...Array.from({ length: 4999 }, (_, n) => item(`m_${n}`))];
    await history.addItems(
      "t",
      "conv_1",
      items.map((json) => ({ id: (JSON.parse(json) as { id: string }).id, json })),
      1,
    );
    const loaded = await loadContext(history, { conversationId: "conv_1" }, "t");
    expect([loaded.length, loaded[0]?.["id"], loaded.at(-1)?.["id"]]).toEqual([4999, "m_0", "m_4998"]);
  });

  test("has to be there, of the tenant, of the kind, and over", async () => {
    const history = await chain(
      turn(1),
      turn(2, { status: "in_progress" }),
      turn(3, { kind: "interaction", previousId: null }),
      turn(4, { status: "canceling" }),
    );
    for (const id of ["resp_9", "resp_3"])
      expect(await failure(loadContext(history, { previousResponseId: id }, "t"))).toBeInstanceOf(
        PreviousNotFoundError,
      );
    expect(await failure(loadContext(history, { previousResponseId: "resp_1" }, "other"))).toMatchObject({
      status: 404,
      code: "previous_response_not_found",
      param: "previous_response_id",
    });
    const interaction = await failure(loadContext(history, { previousResponseId: "resp_1" }, "t", "interaction"));
    expect(interaction).toMatchObject({ param: "previous_interaction_id" });
    expect((await loadContext(history, { previousResponseId: "resp_3" }, "t", "interaction")).length).toBe(2);
    for (const id of ["resp_2", "resp_4"]) {
      const error = await failure(loadContext(history, { previousResponseId: id }, "t"));
      expect(error).toBeInstanceOf(PreconditionError);
      expect((error as Error).message).toContain("in_progress");
    }
    expect(await failure(loadContext(history, { conversationId: "conv_9" }, "t"))).toBeInstanceOf(NotFoundError);
    expect(await failure(loadContext(null, { previousResponseId: "resp_1" }, "t"))).toBeInstanceOf(
      PreviousNotFoundError,
    );
    expect(await failure(loadContext(null, { conversationId: "conv_1" }, "t"))).toBeInstanceOf(NotFoundError);
    expect(await loadContext(null, {}, "t")).toEqual([]);
  });
});
