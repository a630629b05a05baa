import { describe, expect, test } from "bun:test";
import type { Message, ToolCall } from "../../../src/generation/conversation.ts";
import { Turns } from "../../../src/generation/turns.ts";

const call = (id: string): ToolCall => ({ id, name: `f_${id}`, arguments: "{}" });
function of(fill: (turns: Turns) => void, options?: ConstructorParameters<typeof Turns>[0]): readonly Message[] {
  const turns = new Turns(options);
  fill(turns);
  return turns.messages;
}

describe("items of one assistant turn", () => {
  test("are one message", () => {
    const messages = of((turns) => {
      turns.user("a");
      turns.reasoning("thinks");
      turns.assistant("says");
      turns.call(call("1"));
      turns.call(call("2"));
    });
    expect(messages).toEqual([
      { role: "user", content: "a" },
      { role: "assistant", reasoning: "thinks", content: "says", toolCalls: [call("1"), call("2")] },
    ]);
  });

  test("calls alone have no content", () => {
    expect(of((turns) => turns.call(call("1")))).toEqual([
      { role: "assistant", content: "", withoutContent: true, toolCalls: [call("1")] },
    ]);
    const thought = of((turns) => {
      turns.reasoning("thinks");
      turns.call(call("1"));
    });
    expect(thought).toEqual([
      { role: "assistant", content: "", withoutContent: true, reasoning: "thinks", toolCalls: [call("1")] },
    ]);
  });

  test("reasoning behind text or calls begins another; one piece after the other is one reasoning", () => {
    const messages = of((turns) => {
      turns.reasoning("a");
      turns.reasoning("");
      turns.reasoning("b");
      turns.call(call("1"));
      turns.reasoning("c");
      turns.assistant("d");
      turns.reasoning("e");
    });
    expect(messages).toEqual([
      { role: "assistant", content: "", withoutContent: true, reasoning: "a\n\nb", toolCalls: [call("1")] },
      { role: "assistant", reasoning: "c", content: "d" },
      { role: "assistant", reasoning: "e", content: "" },
    ]);
  });

  test("text behind text goes on, behind calls it begins another; parts stay parts", () => {
    const messages = of((turns) => {
      turns.assistant("a");
      turns.assistant([{ type: "text", text: "b" }]);
      turns.call(call("1"));
      turns.assistant("c");
    });
    expect(messages).toEqual([
      {
        role: "assistant",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
        toolCalls: [call("1")],
      },
      { role: "assistant", content: "c" },
    ]);
  });
});

describe("results", () => {
  const answered = (...ids: (string | undefined)[]) =>
    of((turns) => {
      for (const id of ["1", "2", "3"]) turns.call(call(id));
      for (const id of ids) turns.result(id, `r${id}`);
      turns.user("a");
      turns.result("1", "late", { name: "f", isError: true });
    });

  test("stand in the order of their calls", () => {
    expect(answered("3", "1", "2").map(({ toolCallId }) => toolCallId)).toEqual([
      ...[undefined, "1", "2", "3"],
      ...[undefined, "1"],
    ]);
  });

  test("those of unknown calls stay behind, in their own order", () => {
    expect(answered("y", "2", "x", undefined, "1").map(({ content }) => content)).toEqual([
      ...["", "r1", "r2", "ry", "rx", "rundefined"],
      ...["a", "late"],
    ]);
  });

  test("have the tool's name, and say that it failed", () => {
    expect(answered().at(-1)).toEqual({ role: "tool", content: "late", toolCallId: "1", name: "f", isError: true });
  });

  test("are in order as soon as somebody looks", () => {
    const turns = new Turns();
    turns.call(call("1"));
    turns.call(call("2"));
    turns.result("2", "b");
    turns.result("1", "a");
    expect(turns.messages.slice(1).map(({ content }) => content)).toEqual(["a", "b"]);
  });
});

test("users are joined only where that is asked for", () => {
  const two = (turns: Turns) => {
    turns.user("a");
    turns.user("b");
    turns.system("s");
    turns.system("d", "developer");
    turns.user("c");
  };
  expect(of(two).map(({ role }) => role)).toEqual(["user", "user", "system", "developer", "user"]);
  expect(of(two, { joinUsers: true })).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    },
    { role: "system", content: "s" },
    { role: "developer", content: "d" },
    { role: "user", content: "c" },
  ]);
});
