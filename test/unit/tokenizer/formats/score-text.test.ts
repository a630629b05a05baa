import { expect, test } from "bun:test";
import { scoreText } from "../../../../src/tokenizer/formats/score-text.ts";
import { random } from "../fixtures.ts";

/** Digits as an integer, then a power of ten. */
function asSerde(text: string): number {
  const [mantissa = "", exponent = "0"] = text.split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const power = Number(exponent) - fraction.length;
  const digits = Number(whole.replace("-", "") + fraction);
  const size = power < 0 ? digits / Number(`1e${-power}`) : digits * Number(`1e${power}`);
  return text.startsWith("-") ? -size : size;
}

test("scores come out of serde_json as they went in", () => {
  const next = random(3);
  let [shortest, written] = [0, 0];
  for (let i = 0; i < 20_000; i++) {
    const score = Math.fround(-Math.exp(next() * 8 - 4));
    expect(Math.abs(JSON.parse(scoreText(score)) - score)).toBeLessThan(Math.abs(score) * 2 ** -51);
    if (asSerde(JSON.stringify(score)) !== score) shortest++;
    if (asSerde(scoreText(score)) !== score) written++;
  }
  expect(shortest).toBeGreaterThan(1000);
  expect(written).toBeLessThan(100);
  expect([0, -0.5, 1200, -1e-7].map(scoreText)).toEqual(["0", "-0.5", "1200", "-1e-7"]);
});
