/** Records of services, from a real server of names. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createSocket, type Socket } from "node:dgram";
import { promises as dns } from "node:dns";
import { systemLookup } from "../../../src/fleet/discovery/dns.ts";

const SRV = 33;
let server: Socket;
let before: string[];

beforeAll(async () => {
  server = createSocket("udp4");
  await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
  server.on("message", (query, { port, address }) => server.send(answerTo(query), port, address));
  before = dns.getServers();
  dns.setServers([`127.0.0.1:${server.address().port}`]);
});
afterAll(() => {
  dns.setServers(before);
  server.close();
});

/** Format: RFC 1035, section 4. */
function answerTo(query: Buffer): Buffer {
  let end = 12;
  const labels: string[] = [];
  for (let length = query[end] ?? 0; length > 0; length = query[end] ?? 0) {
    labels.push(query.toString("latin1", end + 1, end + 1 + length));
    end += 1 + length;
  }
  const isService = query.readUInt16BE(end + 1) === SRV && labels[0] === "_grpc";
  const question = query.subarray(12, end + 5);
  const answers = isService ? [service(5001, "one.example"), service(5002, "two.example")] : [];
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(isService ? 0x8580 : 0x8583, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(answers.length, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, question, ...answers]);
}

function service(port: number, host: string): Buffer {
  const name = Buffer.from(
    `${host
      .split(".")
      .map((label) => String.fromCharCode(label.length) + label)
      .join("")}\0`,
    "latin1",
  );
  const fixed = Buffer.alloc(18);
  fixed.writeUInt16BE(0xc00c, 0); // the question's name
  fixed.writeUInt16BE(SRV, 2);
  fixed.writeUInt16BE(1, 4);
  fixed.writeUInt32BE(5, 6);
  fixed.writeUInt16BE(6 + name.length, 10);
  fixed.writeUInt16BE(port, 16);
  return Buffer.concat([fixed, name]);
}

test("hosts and ports of a service", async () => {
  const found = await systemLookup.services("_grpc._tcp.engines.example");
  expect(found.map(({ name, port }) => `${name}:${port}`).toSorted()).toEqual(["one.example:5001", "two.example:5002"]);
});

test("a service that there is not", () => {
  expect(systemLookup.services("_http._tcp.engines.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
});
