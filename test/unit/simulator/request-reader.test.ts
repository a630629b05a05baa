import { expect, test } from "bun:test";
import { HttpSyntaxError, RequestReader } from "../../../src/simulator/http/request-reader.ts";

const bytes = (text: string) => Buffer.from(text, "latin1");

test("requests come out whole, wherever the bytes are cut", () => {
  const first = 'POST /a?b=1 HTTP/1.1\r\nHost: x\r\ncontent-LENGTH: 5\r\nX-Twice: 1\r\nX-Twice:  2 \r\n\r\n{"a"}';
  const second = "GET /b HTTP/1.0\r\n\r\n";
  const third =
    "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;note=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  const all = bytes(first + second + third);
  for (const size of [1, 7, all.length]) {
    const reader = new RequestReader(() => {});
    const seen: unknown[] = [];
    for (let at = 0; at < all.length; at += size) {
      reader.push(all.subarray(at, at + size));
      for (let request = reader.next(); request; request = reader.next())
        seen.push([request.method, request.target, request.body.toString(), request.headers.get("x-twice")]);
    }
    expect(seen).toEqual([
      ["POST", "/a?b=1", '{"a"}', "2"],
      ["GET", "/b", "", undefined],
      ["POST", "/c", "abc0123456789", undefined],
    ]);
  }
});

test("a client that waits for leave to send its body gets it once", () => {
  let asked = 0;
  const reader = new RequestReader(() => asked++);
  reader.push(bytes("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"));
  expect(reader.next()).toBeUndefined();
  reader.push(bytes("ab"));
  expect(reader.next()).toBeUndefined();
  reader.push(bytes("cd"));
  expect(reader.next()?.body.toString()).toBe("abcd");
  expect(asked).toBe(1);
});

test("what is no request is refused", () => {
  for (const text of [
    "HELLO\r\n\r\n",
    "GET / HTTP/2.0\r\n\r\n",
    "GET / HTTP/1.1\r\nno colon\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    `GET / HTTP/1.1\r\nx: ${"y".repeat(70_000)}`,
  ]) {
    const reader = new RequestReader(() => {});
    reader.push(bytes(text));
    expect(() => reader.next()).toThrow(HttpSyntaxError);
  }
});
