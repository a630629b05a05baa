import { describe, expect, test } from "bun:test";
import { atRank, withoutInnerMembers } from "../../../../src/apis/proxy/route.ts";

describe("a body that is passed on", () => {
  test("is the client's, but for what only the gateway tells engines", () => {
    const text =
      '{"model":"m", "routed_dp_rank": 1,"seed":12345678901234567890,"kv_transfer_params":{"a":[1,{"b":"}"}]},"bootstrap_room":7}';
    expect(withoutInnerMembers(text, JSON.parse(text))).toBe(
      '{"model":"m", "routed_dp_rank":null,"seed":12345678901234567890,"kv_transfer_params":null,"bootstrap_room":null}',
    );
    const plain = '{"model":"m","nested":{"bootstrap_host":"x"},"text":"\\"bootstrap_host\\": 1"}';
    expect(withoutInnerMembers(plain, JSON.parse(plain))).toBe(plain);
  });

  test("names the rank that was chosen, whatever the client has said", () => {
    expect(JSON.parse(atRank('{"model":"m"}', 3))).toEqual({ routed_dp_rank: 3, model: "m" });
    const body = { text: "{", routed_dp_rank: 1 };
    const kept = withoutInnerMembers(JSON.stringify(body), body);
    expect(JSON.parse(atRank(kept, 0))).toEqual({ text: "{", routed_dp_rank: 0 });
  });
});
