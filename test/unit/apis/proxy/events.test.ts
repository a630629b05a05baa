import { describe, expect, test } from "bun:test";
import { EventCutter } from "../../../../src/apis/proxy/events.ts";
import { UsageScanner, usageOf } from "../../../../src/apis/proxy/usage.ts";

/** What comes out for each piece, and what is left. */
function cut(...pieces: string[]): string[] {
  const cutter = new EventCutter();
  return [...pieces.map((piece) => cutter.push(Buffer.from(piece)).toString()), cutter.rest.toString()];
}

describe("events", () => {
  test("go on when they are whole, several at a time, and the rest waits", () => {
    expect(cut("data: a\n\n")).toEqual(["data: a\n\n", ""]);
    expect(cut("data: a\n\ndata: b\n\nda", "ta: c", "\n", "\ndata: d")).toEqual([
      "data: a\n\ndata: b\n\n",
      "",
      "",
      "data: c\n\n",
      "data: d",
    ]);
  });

  test("end with either line end, wherever they are cut", () => {
    const text = "data: a\r\n\r\ndata: b\n\n";
    for (let at = 0; at <= text.length; at++) {
      const [first, second, rest] = cut(text.slice(0, at), text.slice(at));
      expect([first! + second!, rest]).toEqual([text, ""]);
      expect(["", "data: a\r\n\r\n", text]).toContain(first!);
    }
  });

  test("that are longer than any should be go on in pieces", () => {
    const [first, second] = cut("x".repeat(200_000), "x".repeat(200_000));
    expect([first!.length, second!.length]).toEqual([0, 400_000]);
  });
});

describe("usage", () => {
  test("of a whole answer, whatever stands around it", () => {
    const of = (text: string) => usageOf(Buffer.from(text));
    expect(of('{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}')).toEqual({
      promptTokens: 3,
      completionTokens: 4,
      cachedTokens: undefined,
    });
    expect(of('{"usage" : { "prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1} },"data":[1]}')).toEqual({
      promptTokens: 3,
      completionTokens: 0,
      cachedTokens: 1,
    });
    expect(of('{"usage":{"total_tokens":9},"results":[]}')).toMatchObject({ promptTokens: 9, completionTokens: 0 });
    expect(of('{"usage":null}')).toBeUndefined();
    expect(of('{"usage":{"prompt_tokens":')).toBeUndefined();
    expect(of(JSON.stringify({ content: '"usage":{"prompt_tokens":1}' }))).toBeUndefined();
    expect(of("{}")).toBeUndefined();
  });

  test("of a stream: the last that is told, with nulls and events without any behind it", () => {
    const scanner = new UsageScanner();
    const see = (text: string) => scanner.see(Buffer.from(text));
    expect(scanner.usage).toBeUndefined();
    see('data: {"choices":[],"usage":null}\n\n');
    expect(scanner.usage).toBeUndefined();
    see('data: {"usage":{"prompt_tokens":5,"completion_tokens":1}}\n\n');
    see('data: {"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\ndata: [DONE]\n\n');
    see('data: {"usage": null}\n\n');
    expect(scanner.usage).toMatchObject({ promptTokens: 5, completionTokens: 2 });
  });
});
