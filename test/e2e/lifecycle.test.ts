import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { demoModelFiles } from "../../src/tokenizer/demo-model.ts";
import { BUILD_MS, collieBinary } from "./support/binary.ts";
import {
  chat,
  cleanEnv,
  connect,
  eventually,
  start,
  startEngine,
  startGateway,
  type TestEngine,
  user,
} from "./support/processes.ts";

const SCRIPT = `
- contains: slow stream
  text: "one two three four five six seven eight nine ten"
  ms_per_token: 100
- contains: endless
  text: "${"on and ".repeat(400)}"
  ms_per_token: 100
`;

beforeAll(() => {
  collieBinary();
}, BUILD_MS);

describe("the binary in a folder that is not ours", () => {
  const folder = mkdtempSync(join(tmpdir(), "collie-hostile-"));
  beforeAll(() => {
    writeFileSync(join(folder, ".env"), "COLLIE_PORT=1\nCOLLIE_NO_SUCH_THING=1\n");
    writeFileSync(join(folder, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
    writeFileSync(join(folder, "evil.ts"), 'console.log("EVIL"); process.exit(66);\n');
    chmodSync(folder, 0o555);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("neither .env nor bunfig.toml has an effect", () => {
    const { stdout, stderr, exitCode } = Bun.spawnSync([collieBinary(), "config", "--print"], {
      cwd: folder,
      env: cleanEnv(),
    });
    expect(exitCode).toBe(0);
    expect(stdout.toString()).toContain("port: 30000");
    expect(stdout.toString() + stderr.toString()).not.toMatch(/EVIL|NO_SUCH_THING/);
  });

  const nobody = process.getuid?.() === 0 ? 65534 : undefined;
  test("runs as another user without a home, in a read-only folder", async () => {
    const { stdout, status } = spawnSync(collieBinary(), ["--version"], {
      cwd: folder,
      env: { PATH: process.env["PATH"] ?? "" },
      ...(nobody !== undefined && { uid: nobody, gid: nobody }),
    });
    expect(status).toBe(0);
    expect(stdout.toString()).toMatch(/^collie \d+\.\d+\.\d+\n$/);
    const demo = Bun.spawn([collieBinary(), "demo", "--port", "0"], {
      cwd: folder,
      env: { PATH: process.env["PATH"] ?? "" },
      stdout: "pipe",
      stderr: "inherit",
      ...(nobody !== undefined && { uid: nobody, gid: nobody }),
    });
    try {
      let output = "";
      const decoder = new TextDecoder();
      for await (const chunk of demo.stdout) {
        output += decoder.decode(chunk);
        if (output.includes("curl")) break;
      }
      const url = /ready on (http:\S+),/.exec(output)![1]!;
      const response = await chat({ url }, { model: "collie-demo", messages: user("Hello") });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain("simulated engine");
    } finally {
      demo.kill();
      expect(await demo.exited).toBe(0);
    }
  }, 30_000);
});

describe("collie demo", () => {
  test("prints a curl line that works, and takes its engine along when it ends or is killed", async () => {
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const demo = start(["demo", "--port", "0"]);
      const [, line] = await demo.until(/^ {2}(curl .*)$/m);
      const { stdout } = spawnSync("sh", ["-c", line!], { encoding: "utf8" });
      expect(stdout).toContain("data: [DONE]");
      const children = spawnSync("pgrep", ["-P", String(demo.pid)], { encoding: "utf8" })
        .stdout.trim()
        .split("\n");
      expect(children).toHaveLength(1);
      demo.kill(signal);
      await demo.exited;
      await eventually(() => spawnSync("kill", ["-0", children[0]!]).status !== 0);
    }
  }, 30_000);
});

describe("starting", () => {
  test("a port that is taken is said plainly", async () => {
    const taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    for (const threads of ["1", "2"]) {
      const program = start([
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        String(taken.port),
        "--threads",
        threads,
        "--worker-urls",
        "grpc://127.0.0.1:9",
      ]);
      expect(await program.exited).toBe(1);
      expect(program.output()).toContain("the address is in use");
    }
    taken.stop(true);
  });

  test("a file that is missing stops the start by the name of its setting", async () => {
    const program = start(["serve", "--worker-urls", "grpc://127.0.0.1:9", "--model-path", "./no-such-folder"]);
    expect(await program.exited).toBe(2);
    expect(program.output()).toContain('--model-path: "./no-such-folder" does not exist');
  });

  test("a chat template that is given and does not compile stops the start by its file and line", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "collie-template-")), "mine.jinja");
    writeFileSync(file, "fine\n{% if %}");
    const gateway = start(["serve", "--worker-urls", "grpc://127.0.0.1:1", "--port", "0", "--chat-template", file]);
    expect(await gateway.exited).toBe(2);
    expect(gateway.output()).toContain(
      `--chat-template: ${JSON.stringify(file)}: the chat template does not compile, line 2`,
    );
    rmSync(dirname(file), { recursive: true });
  });

  test("a broken template of the model costs it its chat only", async () => {
    const folder = mkdtempSync(join(tmpdir(), "collie-template-"));
    for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(folder, name), bytes);
    writeFileSync(join(folder, "chat_template.jinja"), "fine\n{% if %}");
    const engine = await startEngine();
    const gateway = await startGateway([engine], ["--model-path", folder]);
    const { url, model } = gateway;
    try {
      expect(await (await fetch(`${url}/v1/models`)).text()).toContain(model);
      const answer = await chat(gateway, { model, messages: user("Hello") });
      expect([answer.status, await answer.text()]).toEqual([
        400,
        expect.stringContaining("The model cannot chat: the chat template does not compile, line 2"),
      ]);
      const body = JSON.stringify({ model, prompt: "Hello" });
      const headers = { "content-type": "application/json" };
      const tokens = await fetch(`${url}/v1/tokenize`, { method: "POST", headers, body });
      expect([tokens.status, await tokens.json()]).toEqual([200, expect.objectContaining({ count: 1 })]);
      const told = /ERROR.*the chat template does not compile, line 2/;
      for (let i = 0; i < 100 && !told.test(gateway.program.output()); i++) await Bun.sleep(50);
      expect(gateway.program.output()).toMatch(told);
    } finally {
      await gateway.stop();
      await engine.stop();
      rmSync(folder, { recursive: true });
    }
  });

  test("serve without engines listens for workers to be added, and says so", async () => {
    const program = start(["serve", "--host", "127.0.0.1", "--port", "0"]);
    const [, url] = await program.until(/listening url=(\S+)/);
    expect((await fetch(`${url}/readiness`)).status).toBe(503);
    expect(program.output()).toContain("/workers");
    await program.stop();
  });

  test("an engine that comes later is found; until then requests and readiness get 503", async () => {
    // below the ports that the system gives out: another test's server must not come there
    const port = String(20_000 + Math.floor(Math.random() * 10_000));
    const worker = `grpc://127.0.0.1:${port}`;
    const gateway = start(["serve", "--host", "127.0.0.1", "--port", "0", "--worker-urls", worker]);
    const [, url] = await gateway.until(/listening url=(\S+)/);
    expect((await fetch(`${url}/readiness`)).status).toBe(503);
    expect((await fetch(`${url}/liveness`)).status).toBe(200);
    expect((await chat({ url: url! }, { model: "collie-demo", messages: user("Hello") })).status).toBe(503);
    const engine = start(["engine", "--port", port]);
    await gateway.until(/ready on/);
    expect((await fetch(`${url}/readiness`)).status).toBe(200);
    await gateway.stop();
    await engine.stop();
  });
});

/** Waits until no thread takes connections: all of them have been told by then. */
const refusesConnections = ({ url }: { readonly url: string }) =>
  eventually(() =>
    fetch(`${url}/readiness`, { keepalive: false }).then(
      () => false,
      (error: { readonly code?: string }) => error.code === "ECONNREFUSED",
    ),
  );

for (const threads of ["1", "2"]) {
  describe(`shutdown, ${threads} thread(s)`, () => {
    let engine: TestEngine;
    beforeAll(async () => {
      engine = await startEngine(SCRIPT);
    });
    afterAll(async () => {
      await engine?.stop();
    });

    test("SIGTERM: running streams finish, new connections are refused, exit code 0", async () => {
      const gateway = await startGateway([engine], ["--threads", threads]);
      const running = chat(gateway, { model: gateway.model, messages: user("slow stream"), stream: true }).then((r) =>
        r.text(),
      );
      const unstreamed = chat(gateway, { model: gateway.model, messages: user("slow stream") }).then((r) => r.json());
      await eventually(async () => (await engine.stats()).open === 2);
      gateway.program.kill("SIGTERM");
      await refusesConnections(gateway);
      expect(await running).toContain("[DONE]");
      expect(await unstreamed).toMatchObject({ choices: [{ finish_reason: "stop" }] });
      expect(await gateway.program.exited).toBe(0);
      expect((await engine.stats()).open).toBe(0);
    });

    test("after the grace period the rest is told and the engine freed, exit code 0", async () => {
      const gateway = await startGateway([engine], ["--threads", threads, "--shutdown-grace-period-secs", "1"]);
      const running = chat(gateway, { model: gateway.model, messages: user("endless"), stream: true }).then((r) =>
        r.text(),
      );
      const unstreamed = chat(gateway, { model: gateway.model, messages: user("endless") });
      await eventually(async () => (await engine.stats()).open === 2);
      const started = performance.now();
      gateway.program.kill("SIGTERM");
      const text = await running;
      expect(text).toContain('"code":"shutting_down"');
      expect(text).not.toContain("[DONE]");
      expect((await unstreamed).status).toBe(503);
      expect(await gateway.program.exited).toBe(0);
      expect(performance.now() - started).toBeLessThan(3500);
      await eventually(async () => (await engine.stats()).open === 0);
    });

    test("an upload that is under way is waited for", async () => {
      const gateway = await startGateway([engine], ["--threads", threads]);
      const connection = await connect(gateway);
      const body = JSON.stringify({ model: gateway.model, messages: user("hello"), max_tokens: 2 });
      connection.write(
        `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 20)}`,
      );
      await eventually(() => connection.heard().includes("100 Continue"));
      gateway.program.kill("SIGTERM");
      await gateway.program.until(/stopping/);
      await Bun.sleep(600);
      connection.write(body.slice(20));
      await eventually(() => connection.heard().includes('"finish_reason"'));
      expect(await gateway.program.exited).toBe(0);
    });

    test("a second signal ends it at once", async () => {
      const gateway = await startGateway([engine], ["--threads", threads]);
      const running = chat(gateway, { model: gateway.model, messages: user("endless"), stream: true })
        .then((r) => r.text())
        .catch(() => "cut");
      await eventually(async () => (await engine.stats()).open === 1);
      gateway.program.kill("SIGTERM");
      await gateway.program.until(/stopping/);
      const started = performance.now();
      gateway.program.kill("SIGTERM");
      expect(await gateway.program.exited).toBe(143);
      expect(performance.now() - started).toBeLessThan(3000);
      await running;
      await eventually(async () => (await engine.stats()).open === 0);
    });

    test("new requests on connections that are kept open are refused while running ones finish", async () => {
      const gateway = await startGateway([engine], ["--threads", threads]);
      const connection = await connect(gateway);
      const post = (content: string) => {
        const body = JSON.stringify({ model: gateway.model, messages: user(content), max_tokens: 2 });
        return `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      };
      connection.write(post("hello"));
      await eventually(() => connection.heard().includes('"finish_reason"'));
      const running = chat(gateway, { model: gateway.model, messages: user("slow stream"), stream: true }).then((r) =>
        r.text(),
      );
      await eventually(async () => (await engine.stats()).open === 1);
      gateway.program.kill("SIGTERM");
      await refusesConnections(gateway);
      const before = connection.heard().length;
      const answer = () => connection.heard().slice(before);
      if (!connection.isClosed()) connection.write(post("hello again"));
      await eventually(() => connection.isClosed() || answer() !== "");
      if (answer() !== "") expect(answer()).toContain('"code":"shutting_down"');
      expect(await running).toContain("[DONE]");
      expect(await gateway.program.exited).toBe(0);
    });
  });
}
