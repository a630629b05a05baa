import { availableParallelism } from "node:os";
import { version } from "../../package.json" with { type: "json" };
import { doubleAlias } from "../config/aliases.ts";
import { emptyCaches, missingFiles, repeatedWorkers, selectorProblems } from "../config/checks.ts";
import { ConfigError } from "../config/config-error.ts";
import { disaggregationProblems, prefillWorkers } from "../config/disaggregation.ts";
import type { Environment } from "../config/given.ts";
import { cardAliases, doubleCard, fallbackLoop, namedCards, parseCard } from "../config/model-cards.ts";
import { resolveOptions } from "../config/resolve.ts";
import { type ServeConfig, serveOptions } from "../config/serve-options.ts";
import { OverloadedError } from "../errors.ts";
import { createBoards, prefixWriter, stickyGauges } from "../fleet/boards.ts";
import { type FleetControl, startFleetControl } from "../fleet/control.ts";
import type { Control } from "../fleet/control-link.ts";
import { discoveryProblems } from "../fleet/discovery/index.ts";
import { givenProblem } from "../fleet/given-template.ts";
import { tokenizerCacheMetrics } from "../fleet/metrics.ts";
import { withCard } from "../fleet/model-kind.ts";
import { emptyFleet } from "../fleet/snapshot.ts";
import { workerTlsProblems } from "../fleet/worker-tls.ts";
import { HistorySetupError, HistoryUnavailableError } from "../history/errors.ts";
import { shownHistoryUrl } from "../history/location.ts";
import { sourceProblem } from "../hub/source.ts";
import { createLogger, type Logger } from "../telemetry/log.ts";
import type { MetricFamily } from "../telemetry/metrics.ts";
import { type MetricsListener, startMetricsListener } from "../telemetry/metrics-listener.ts";
import { familiesOf, summed } from "../telemetry/registry.ts";
import { createComputePool } from "../threads/compute-pool.ts";
import { MAX_THREADS } from "../threads/fleet-board.ts";
import { type HistoryKeeper, startHistoryKeeperOr } from "../threads/history-keeper.ts";
import { ListenError, type ServingThreads, startServingThreads } from "../threads/supervisor.ts";
import { cacheFolder } from "./cache-folder.ts";
import { chosenHistory, sealingKey } from "./history-setting.ts";
import { notifyReady, notifyStopping, startWatchdog } from "./notify.ts";
import { parserProblem } from "./parser-problem.ts";
import { stateFolder } from "./state-folder.ts";
import { whenAskedToStop } from "./stop-signals.ts";

/** Most serving threads that are started unasked. */
const MOST_THREADS = 8;

function threadCount(config: ServeConfig): number {
  return Math.min(config.threads ?? Math.min(availableParallelism(), MOST_THREADS), MAX_THREADS);
}

/** The address that a client on this machine would use. */
export function clientUrl(hostname: string, port: number): string {
  const host = hostname === "0.0.0.0" || hostname === "::" ? "127.0.0.1" : hostname;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** What a start of the gateway leaves to its caller. */
export interface ServeHooks {
  /** The first worker is ready; `url` answers. */
  readonly onReady?: (url: string, model: string) => void;
}

/** Runs the gateway until it is told to stop; gives the exit status. */
export async function serve(config: ServeConfig, env: Environment, hooks: ServeHooks = {}): Promise<number> {
  const problems = [
    ...missingFiles(config, sourceProblem),
    ...emptyCaches(config),
    ...repeatedWorkers(config),
    ...disaggregationProblems(config),
    ...selectorProblems(config),
    ...workerTlsProblems(config),
    ...(await discoveryProblems(config)),
    ...namedProblems(config),
    ...historyProblem(config, env),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  const stop = whenAskedToStop();
  const log = createLogger({ level: config.logLevel, json: config.logJson });
  const threads = threadCount(config);
  const boards = createBoards(config, threads);
  const compute = createComputePool(Math.max(1, threads >> 1), log);
  let fleet: FleetControl | undefined;
  const control: Control = {
    ...compute,
    addTokenizer: async (wanted) => started(fleet).addTokenizer(wanted),
    removeTokenizer: async (id) => started(fleet).removeTokenizer(id),
    get admin() {
      return started(fleet).admin;
    },
  };
  let known = emptyFleet;
  let metrics: MetricsListener | undefined;
  let kept: HistoryKeeper | undefined;
  let failed = false;
  let serving: ServingThreads;
  let running: ServingThreads | undefined;
  try {
    kept = await keeper(config, threads, env, log, (message) => {
      log.error("the history's thread ended; nothing can be kept: ending", { error: message });
      failed = true;
      process.kill(process.pid, "SIGTERM");
    });
    metrics = listenForMetrics(config, async () => [
      ...familiesOf(summed([(await running?.counted()) ?? {}, fleet?.counted() ?? {}, stickyGauges(boards)])),
      ...tokenizerCacheMetrics(known.models),
    ]);
    serving = running = await startServingThreads(config, threads, boards, log, control, kept);
  } catch (error) {
    await metrics?.stop();
    await kept?.close();
    const message = startProblem(error);
    if (message === undefined) throw error;
    process.stderr.write(`collie: ${message}\n`);
    return 1;
  }
  const url = clientUrl(serving.hostname, serving.port);
  const workers = config.workerUrls.length + prefillWorkers(config.prefill).length + config.decode.length;
  log.info("listening", { url, version, threads, workers });
  if (workers === 0 && config.workerFile === undefined && !config.serviceDiscovery)
    log.warn(
      "there are no workers yet: start with --worker-urls, or add some with POST /workers (or try `collie demo`)",
    );
  if (metrics !== undefined) log.info("metrics", { url: `${clientUrl(metrics.hostname, metrics.port)}/metrics` });
  fleet = startFleetControl(
    config,
    boards.fleet,
    log,
    {
      apply(snapshot) {
        known = snapshot;
        return serving.apply(snapshot);
      },
      lost: (slot) => serving.lost(slot),
    },
    {
      cacheDir: cacheFolder(config.stateDir, env),
      compute,
      environment: env,
      prefix: prefixWriter(boards),
      others: boards.prefix.others(),
    },
  );
  fleet.ready.then((worker) => {
    if (hooks.onReady !== undefined) hooks.onReady(url, worker.model);
    else process.stdout.write(`collie ${version} ready on ${url}, model ${worker.model}\n`);
  });
  const warn = (message: string) => log.warn(message);
  notifyReady(`Serving on ${url}`, { env, warn });
  const stopWatchdog = startWatchdog({ env, warn, alive: () => !serving.isStuck() });

  const signal = await stop.first;
  log.info("stopping", { signal, grace_secs: config.shutdownGracePeriodSecs });
  notifyStopping({ env, warn });
  await serving.shutdown(config.shutdownGracePeriodSecs * 1000);
  fleet.close();
  compute.close();
  await metrics?.stop();
  await kept.close();
  stopWatchdog();
  log.info("stopped");
  // systemd starts again what has failed
  return failed ? 1 : 0;
}

/** A history that is named must be one. Whether it can be opened is seen later. */
function historyProblem(config: ServeConfig, env: Environment): string[] {
  try {
    chosenHistory(config, stateFolder(config.stateDir, env), 1);
    return [];
  } catch (error) {
    if (!(error instanceof HistorySetupError)) throw error;
    return [error.message];
  }
}

/** Opens the history, and makes the key of seals. Throws HistorySetupError and HistoryUnavailableError. */
async function keeper(
  config: ServeConfig,
  threads: number,
  env: Environment,
  log: Logger,
  onEnd: (message: string) => void,
): Promise<HistoryKeeper> {
  const folder = stateFolder(config.stateDir, env);
  const { setting, byDefault } = chosenHistory(config, folder, threads);
  const days = config.historyRetentionDays;
  const kept = await startHistoryKeeperOr(
    {
      history: setting,
      sealingKey: keyOfSeals(config.sealingKey, folder, byDefault, log),
      retentionDays: days < 0 ? undefined : days,
      log,
      onEnd,
    },
    byDefault,
  );
  log.info("history", { url: shownHistoryUrl(kept.history.url) });
  return kept;
}

/** A folder that cannot be written to need not end the start, unless things are to be kept in it. */
function keyOfSeals(
  given: string | undefined,
  folder: string | undefined,
  byDefault: boolean,
  log: Logger,
): Uint8Array {
  try {
    return sealingKey(given, folder);
  } catch (error) {
    if (!byDefault || !(error instanceof HistorySetupError)) throw error;
    log.warn("the key of seals lasts until the next start only", { error: error.message });
    return sealingKey(undefined, undefined);
  }
}

/** What keeps the gateway from starting, in words; undefined for defects. */
function startProblem(error: unknown): string | undefined {
  if (error instanceof HistoryUnavailableError) {
    const { message, cause } = error;
    return cause instanceof Error ? `${message}: ${cause.message}` : message;
  }
  return error instanceof ListenError || error instanceof HistorySetupError ? error.message : undefined;
}

/** The metrics' port, if one is given. Throws ListenError. */
function listenForMetrics(
  { prometheusHost, prometheusPort }: ServeConfig,
  collect: () => Promise<readonly MetricFamily[]>,
): MetricsListener | undefined {
  if (prometheusPort === undefined) return undefined;
  try {
    return startMetricsListener(prometheusHost, prometheusPort, collect);
  } catch (error) {
    throw new ListenError((error as Error).message, { cause: error });
  }
}

/** What is named for all models, or by the card of one, must be there. A template that the model brings may cost it its chats only. */
function namedProblems(config: ServeConfig): string[] {
  const cards = config.modelCard.map(parseCard);
  const double = doubleCard(cards);
  const alias = doubleAlias([...config.modelAlias, ...cardAliases(cards)]);
  const problems = settingProblems(config, "");
  for (const card of cards) {
    const where = `--model-card: ${card.id}: `;
    const own = settingProblems(withCard(NOTHING, [card], card.id), where);
    const isSound = problems.length + own.length === 0;
    problems.push(...(isSound ? pairProblem(withCard(config, [card], card.id), where) : own));
  }
  if (double !== undefined) problems.push(`--model-card: ${double} has two cards`);
  if (alias !== undefined) problems.push(`--model-alias: ${alias} names two models`);
  const loop = fallbackLoop(namedCards(cards, config.modelAlias));
  if (loop !== undefined) problems.push(`--model-card: fallbacks go round in a circle: ${loop.join(" -> ")}`);
  return problems;
}

const NOTHING = { reasoningParser: undefined, toolCallParser: undefined, chatTemplate: undefined };
type Named = Pick<ServeConfig, keyof typeof NOTHING>;

function settingProblems(named: Named, where: string): string[] {
  const { chatTemplate } = named;
  const problem = chatTemplate === undefined ? undefined : givenProblem(chatTemplate);
  const template = `${where === "" ? "--chat-template" : `${where}chat_template`}: ${JSON.stringify(chatTemplate)}`;
  return [...pairProblem(named, where), ...(problem === undefined ? [] : [`${template}: ${problem}`])];
}

function pairProblem({ reasoningParser, toolCallParser }: Named, where: string): string[] {
  const problem = parserProblem(reasoningParser, toolCallParser);
  return problem === undefined ? [] : [where + problem];
}

/** Serving threads listen a moment before there is a fleet. */
function started(fleet: FleetControl | undefined): FleetControl {
  if (fleet === undefined) throw new OverloadedError("The server is starting");
  return fleet;
}

/** `collie serve`. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const { values, warnings } = resolveOptions(serveOptions, { args, env });
  for (const warning of warnings) process.stderr.write(`collie: ${warning}\n`);
  return serve(values, env);
}
