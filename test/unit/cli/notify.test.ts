import { describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sendDatagram, unixAddress } from "../../../src/cli/datagram.ts";
import { notifyReady, notifyStopping, startWatchdog } from "../../../src/cli/notify.ts";
import { until } from "../../support/until.ts";
import { receiveDatagrams } from "./datagram-receiver.ts";

const linux = process.platform === "linux";
if (!linux) console.warn("SKIPPED: systemd notification, it needs Linux");

let sockets = 0;
const abstractName = () => `@collie-test-${process.pid}-${++sockets}`;
const never = (message: string) => {
  throw new Error(message);
};

describe.skipIf(!linux)("to a real socket", () => {
  test("ready, with and without a status, and stopping", () => {
    const address = abstractName();
    using receiver = receiveDatagrams(address);
    const context = { env: { NOTIFY_SOCKET: address }, warn: never };
    notifyReady("", context);
    notifyReady("listening\non 30000", context);
    notifyStopping(context);
    expect(receiver.take()).toEqual(["READY=1", "READY=1\nSTATUS=listening on 30000", "STOPPING=1"]);
  });

  test("a socket in the file system", () => {
    const folder = mkdtempSync(join(tmpdir(), "collie-notify-"));
    try {
      using receiver = receiveDatagrams(join(folder, "notify"));
      notifyReady("", { env: { NOTIFY_SOCKET: join(folder, "notify") }, warn: never });
      expect(receiver.take()).toEqual(["READY=1"]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("the watchdog is pinged at half the interval, and only while the loop turns", async () => {
    const address = abstractName();
    using receiver = receiveDatagrams(address);
    const env = { NOTIFY_SOCKET: address, WATCHDOG_USEC: "200000", WATCHDOG_PID: String(process.pid) };
    const began = performance.now();
    const stop = startWatchdog({ env, warn: never });
    expect(receiver.take()).toEqual(["WATCHDOG=1"]);
    const three = async () => {
      const pings: string[] = [];
      await until(() => pings.push(...receiver.take()) >= 3, "three pings");
    };
    await three();
    expect(performance.now() - began).toBeGreaterThan(290);
    // a busy machine may delay some
    let least = performance.now() - began;
    for (let round = 0; round < 20 && least >= 390; round++) {
      const from = performance.now();
      await three();
      least = Math.min(least, performance.now() - from);
    }
    expect(least).toBeLessThan(390);
    const end = performance.now() + 250;
    while (performance.now() < end);
    expect(receiver.take()).toEqual([]);
    stop();
    await Bun.sleep(150);
    expect(receiver.take()).toEqual([]);
  });

  test("a full queue never blocks a ping", () => {
    const address = abstractName();
    using _receiver = receiveDatagrams(address);
    let problem: string | undefined;
    for (let i = 0; i < 10_000 && problem === undefined; i++) problem = sendDatagram(address, "WATCHDOG=1", false);
    expect(problem).toContain("queue is full");
  });

  test("sockets are closed again", () => {
    const address = abstractName();
    using receiver = receiveDatagrams(address);
    const openFiles = () => readdirSync("/proc/self/fd").length;
    const before = openFiles();
    for (let i = 0; i < 50; i++) {
      expect(sendDatagram(address, "x", false)).toBeUndefined();
      receiver.take();
    }
    // The test runner may open a few of its own meanwhile.
    expect(openFiles()).toBeLessThan(before + 25);
  });

  test("no receiver: one warning, and one for a whole outage of the watchdog", async () => {
    const warnings: string[] = [];
    const context = {
      env: { NOTIFY_SOCKET: abstractName(), WATCHDOG_USEC: "20000" },
      warn: (message: string) => void warnings.push(message),
    };
    notifyReady("", context);
    expect(warnings).toEqual([expect.stringContaining("can't be told")]);
    const stop = startWatchdog(context);
    await until(() => warnings.length > 1, "a warning");
    await Bun.sleep(100);
    stop();
    expect(warnings).toHaveLength(2);
  });
});

test("outside systemd nothing happens", () => {
  notifyReady("", { env: {}, warn: never });
  notifyStopping({ env: {}, warn: never });
  startWatchdog({ env: { WATCHDOG_USEC: "1000" }, warn: never })();
});

test("a watchdog for another process, or none, is not pinged", () => {
  const env = { NOTIFY_SOCKET: "/nowhere", WATCHDOG_USEC: "1000" };
  startWatchdog({ env: { ...env, WATCHDOG_PID: "1" }, warn: never })();
  startWatchdog({ env: { ...env, WATCHDOG_USEC: "0" }, warn: never })();
  startWatchdog({ env: { ...env, WATCHDOG_USEC: "x" }, warn: never })();
});

test("addresses that can't be used are told, not thrown", () => {
  for (const address of ["vsock:2:1234", "", "@", "/", "relative", `/${"x".repeat(107)}`, `@${"x".repeat(108)}`])
    expect(unixAddress(address)).toBeUndefined();
  expect(unixAddress(`/${"x".repeat(106)}`)).toHaveLength(110);
  expect(unixAddress(`@${"x".repeat(107)}`)).toHaveLength(110);
  const warnings: string[] = [];
  notifyReady("", { env: { NOTIFY_SOCKET: "vsock:2:1" }, warn: (message) => void warnings.push(message) });
  expect(warnings).toHaveLength(1);
});
