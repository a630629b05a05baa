/** The soak: a fleet under load and mischief, and nothing may be lost. See docs/benchmarks.md.   npm run soak -- [flags] */

import { parseArgs } from "node:util";
import { collieBinary } from "../../test/e2e/support/binary.ts";
import { describeMachine, machineText } from "../lab/machine.ts";
import { writeResult } from "../lab/output.ts";
import { runProgram } from "../lab/program.ts";
import { residentBytes } from "../loadgen/procfs.ts";
import { mixSeed, Random } from "../loadgen/random.ts";
import { checkSoak, Verdicts } from "./checks.ts";
import { Clients } from "./clients.ts";
import { type SoakGateway, startSoakGateway, TIMEOUT_SECS } from "./gateway.ts";
import { makeMischief } from "./mischief.ts";
import type { SoakOptions } from "./options.ts";
import { soakText } from "./report.ts";
import { Tally } from "./tally.ts";
import type { MemorySample } from "./trend.ts";
import { SoakWorker } from "./workers.ts";

const HELP = `Lets a fleet of simulated engines serve while they are killed, frozen and cut off, and checks every token.

  npm run soak -- [flags]

  --seconds N     length (1200)
  --threads N     serving threads of the gateway (2)
  --clients N     requests at once while the load that it can bear is measured (96)
  --share F       share of that load in the soak (0.6)
  --engines LIST  dialects of the engines, openai being an HTTP engine (vllm,sglang,tokenspeed,openai)
  --gap-secs F    time between two faults (2)
  --seed N        requests and faults (from the clock)
  --write         keep the result in bench/results

Exit status: 0 all checks hold, 3 some do not, 1 it could not run. The program is dist/collie, or $COLLIE_TEST_BINARY.
`;

const MODEL = "soak";
const HTTP_MODEL = "soak-http";
const ENGINES = "vllm,sglang,tokenspeed,openai";
/** Few at once, so that the engines' own pace is the limit and not the machine alone. */
const ENGINE = "--output echo --max-running 32 --prefill-tps 200000 --shutdown-grace-period-secs 0";
const ABORTS = 0.05;
const SAMPLE_MS = 1000;

/** Requests a second that the fleet bears: so many clients, each with the next request when the last is answered. */
async function measure(clients: Clients, options: SoakOptions): Promise<number> {
  const warmMs = Math.min(5000, options.seconds * 50);
  const started = performance.now();
  const from = started + warmMs;
  const until = from + Math.min(20_000, options.seconds * 100);
  let counted = 0;
  const client = async () => {
    while (performance.now() < until) {
      await clients.send();
      const now = performance.now();
      if (now >= from && now < until) counted++;
    }
  };
  await Promise.all(Array.from({ length: options.clients }, client));
  return (counted * 1000) / (until - from);
}

/** Sends requests when they come, at a rate, until the time is over; gives how many were not sent because too many were under way. */
async function load(clients: Clients, rate: number, options: SoakOptions): Promise<number> {
  const random = new Random(mixSeed(options.seed, 0x6c6f6164));
  const until = performance.now() + options.seconds * 1000;
  let heldBack = 0;
  for (let at = performance.now(); at < until; at += (-Math.log(random.unit()) * 1000) / rate) {
    const wait = at - performance.now();
    if (wait > 1) await Bun.sleep(wait);
    if (clients.running >= 2 * options.clients) heldBack++;
    else void clients.send();
  }
  return heldBack;
}

async function soak(options: SoakOptions, workers: readonly SoakWorker[], gateway: SoakGateway) {
  const measured = new Tally();
  const tally = new Tally();
  let counting = measured;
  const clients = new Clients({
    url: gateway.url,
    model: MODEL,
    httpModel: options.dialects.includes("openai") ? HTTP_MODEL : undefined,
    seed: options.seed,
    aborts: ABORTS,
    lostAfterMs: (TIMEOUT_SECS + 15) * 1000,
    onEnd: (kind, outcome) => counting.add(kind, outcome),
  });
  const capacity = await measure(clients, options);
  const rate = capacity * options.share;
  console.error(`it bears ${capacity.toFixed(1)} requests a second; now ${rate.toFixed(1)}, with faults`);

  counting = tally;
  const started = performance.now();
  const memory: MemorySample[] = [];
  const sampler = setInterval(() => {
    memory.push({ atSecs: (performance.now() - started) / 1000, bytes: residentBytes([gateway.pid]) });
  }, SAMPLE_MS);
  const isOver = () => performance.now() - started > options.seconds * 1000;
  const random = new Random(mixSeed(options.seed, 0x6d697363));
  const [heldBack, mischief] = await Promise.all([
    load(clients, rate, options),
    makeMischief(workers, random, options.gapMs, isOver),
  ]);
  for (const worker of workers) await worker.heal();
  while (clients.running > 0) await Bun.sleep(50);
  clearInterval(sampler);
  counting = new Tally(); // what comes now is judged by itself
  const verdicts = new Verdicts();
  const figures = { options, capacity, rate, heldBack, mischief, measured, tally, memory };
  await checkSoak(verdicts, figures, clients, workers, gateway);
  clients.close();
  return { verdicts, figures };
}

async function main(): Promise<number> {
  const string = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      ...{
        seconds: string,
        threads: string,
        clients: string,
        share: string,
        engines: string,
        "gap-secs": string,
        seed: string,
      },
      write: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const options: SoakOptions = {
    seconds: Number(values.seconds ?? 1200),
    threads: Number(values.threads ?? 2),
    clients: Number(values.clients ?? 96),
    share: Number(values.share ?? 0.6),
    dialects: (values.engines ?? ENGINES).split(","),
    gapMs: Number(values["gap-secs"] ?? 2) * 1000,
    seed: Number(values.seed ?? Date.now() >>> 0),
  };
  const machine = describeMachine();
  const binary = collieBinary();
  const workers = options.dialects.map((dialect) => {
    const name = dialect === "openai" ? HTTP_MODEL : MODEL;
    return new SoakWorker(dialect, binary, [...ENGINE.split(" "), "--served-model-name", name]);
  });
  try {
    await Promise.all(workers.map((worker) => worker.start()));
    const gateway = await startSoakGateway(binary, workers, options.threads);
    const { verdicts, figures } = await soak(options, workers, gateway);
    await gateway.stop();
    const text = soakText(`${machineText({ ...machine, pinned: false })}`, figures, verdicts);
    console.log(text);
    if (values.write) console.error(await writeResult(`${machine.date}-soak`, text, figures.memory));
    console.log(`soak: ${verdicts.passed} passed, ${verdicts.failed} failed`);
    return verdicts.failed === 0 ? 0 : 3;
  } finally {
    for (const worker of workers) await worker.stop();
  }
}

await runProgram(main);
