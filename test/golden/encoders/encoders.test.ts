/** Native encoders against the models' published ones: see the script beside. */
import { expect, test } from "bun:test";
import { atOnce } from "../../../src/steps.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { InvalidRequestError } from "../../../src/errors.ts";
import type { TemplateInput } from "../../../src/template/chat-template.ts";
import { namespaceText } from "../../../src/template/encoders/harmony-types.ts";
import { renderSegments } from "../../../src/template/encoders/kimi-k3.ts";
import { kimiToolsText } from "../../../src/template/encoders/kimi-tools.ts";
import { ENCODER_NAMES, type EncoderName, nativeEncoder } from "../../../src/template/encoders/native-encoder.ts";
import { refill } from "../../../src/template/engine/limits.ts";
import { type JsonObject, type JsonValue, parseLossless } from "../../../src/template/lossless-json.ts";

const file = readFileSync(join(import.meta.dir, "encoders.jsonl.gz"));
const [head, ...rows] = gunzipSync(file)
  .toString("utf8")
  .trimEnd()
  .split("\n")
  .map((line) => parseLossless(line) as JsonObject);
const now = new Date(String(head?.get("clock")));
const list = (value: JsonValue | undefined): readonly JsonValue[] => (value ?? []) as readonly JsonValue[];
const of = (encoder: string): readonly JsonObject[] => rows.filter((row) => row.get("encoder") === encoder);

function inputOf(row: JsonObject): TemplateInput {
  const tools = row.get("tools");
  return {
    messages: list(row.get("messages")) as readonly JsonObject[],
    ...(tools === undefined ? {} : { tools: list(tools) }),
    variables: row.get("kwargs") as JsonObject,
    addGenerationPrompt: true,
    now,
  };
}

/** What an encoder makes of a row; "error" when it refuses it. Other errors are thrown on. */
function found(encoder: EncoderName, row: JsonObject): unknown {
  try {
    if (encoder !== "kimi_k3") return nativeEncoder(encoder).render(inputOf(row));
    const segments = renderSegments(inputOf(row));
    expect(nativeEncoder(encoder).render(inputOf(row))).toBe(segments.map(({ text }) => text).join(""));
    return segments.map(({ text, special }) => (special ? "1" : "0") + text);
  } catch (error) {
    if (error instanceof InvalidRequestError) return "error";
    throw error;
  }
}

test.each(ENCODER_NAMES)("%s renders all conversations alike", (encoder) => {
  const cases = of(encoder);
  expect(cases.length).toBeGreaterThan(150);
  for (const row of cases) {
    const expected = row.has("error") ? "error" : (row.get("text") ?? row.get("segments"));
    expect([row.get("case"), found(encoder, row)]).toEqual([row.get("case"), expected]);
  }
});

test("Kimi K2.5 declares all tools alike", () => {
  const cases = of("kimi_tools");
  expect(cases.length).toBeGreaterThan(300);
  for (const row of cases)
    expect([row.get("case"), kimiToolsText(list(row.get("tools"))) ?? null]).toEqual([row.get("case"), row.get("text")]);
});

test("harmony declares all tools alike", () => {
  const cases = of("harmony_tools");
  expect(cases.length).toBeGreaterThan(300);
  for (const row of cases) {
    refill();
    expect([row.get("case"), atOnce(namespaceText(list(row.get("tools"))))]).toEqual([row.get("case"), row.get("text")]);
  }
});
