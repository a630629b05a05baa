import { describe, expect, test } from "bun:test";
import { encodeHeaders, HpackDecoder, HpackError } from "../../../src/http2/hpack.ts";

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));

/** The request examples of RFC 7541, appendices C.3 (plain) and C.4 (Huffman): three blocks on one connection. */
const REQUESTS = [
  { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com" },
  { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com", "cache-control": "no-cache" },
  {
    ":method": "GET",
    ":scheme": "https",
    ":path": "/index.html",
    ":authority": "www.example.com",
    "custom-key": "custom-value",
  },
];
const PLAIN = [
  "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
  "8286 84be 5808 6e6f 2d63 6163 6865",
  "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
];
const HUFFMAN = [
  "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
  "8286 84be 5886 a8eb 1064 9cbf",
  "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
];

describe("decoding", () => {
  for (const [name, blocks] of [
    ["plain", PLAIN],
    ["Huffman", HUFFMAN],
  ] as const)
    test(`the examples of RFC 7541, ${name}`, () => {
      const decoder = new HpackDecoder();
      for (const [i, block] of blocks.entries())
        expect(Object.fromEntries(decoder.decode(hex(block)))).toEqual(REQUESTS[i]!);
    });

  test("repeated names are joined, and a table size change evicts", () => {
    const decoder = new HpackDecoder();
    expect(decoder.decode(hex("40 0161 0162 40 0161 0163")).get("a")).toBe("b, c");
    expect(decoder.decode(hex("be")).get("a")).toBe("c");
    // The size update to 0 empties the table: the next index is unknown.
    expect(() => decoder.decode(hex("20 be"))).toThrow(HpackError);
  });

  test("malformed blocks throw", () => {
    for (const block of [
      "80",
      "be",
      "00 05 61",
      "7f ff ff ff ff ff ff",
      "3f e2 1f",
      "00 81 00 00",
      "00 84 ff ff ff ff 00",
    ])
      expect(() => new HpackDecoder().decode(hex(block))).toThrow(HpackError);
  });
});

test("what is encoded decodes to itself, long values too", () => {
  const headers = [
    [":status", "200"],
    ["grpc-message", "x".repeat(5000)],
    ["k", ""],
  ] as const;
  expect([...new HpackDecoder().decode(encodeHeaders(headers))]).toEqual(headers.map(([k, v]) => [k, v]));
});

test("a header list over the limit is cut, and the table stays in step", () => {
  const decoder = new HpackDecoder();
  const entry = Buffer.concat([hex("40 01 61 7f a1 1e"), Buffer.from("x".repeat(4000))]);
  const headers = decoder.decode(Buffer.concat([entry, Buffer.alloc(100, 0xbe), hex("40 0162 0163")]));
  expect(decoder.tooLarge).toBe(true);
  expect(headers.get("a")!.length).toBeLessThan(65_536);
  expect(headers.has("b")).toBe(false);
  expect(decoder.decode(hex("be")).get("b")).toBe("c");
  expect(decoder.tooLarge).toBe(false);
});

test("whole entries of the static table are encoded by their index", () => {
  expect(
    encodeHeaders([
      [":method", "POST"],
      [":scheme", "http"],
      [":status", "200"],
    ]),
  ).toEqual(Uint8Array.of(0x83, 0x86, 0x88));
});
