import { rankLoad } from "../dialects/loads.ts";
import type { SimulatorHost } from "../host.ts";
import type { HttpCall } from "../http/call.ts";
import type { Flavor } from "./flavors.ts";

type Figure = readonly [name: string, type: "gauge" | "counter", value: number];

/** Answers the paths by which a server tells its load; false: this one has no such path. */
export function loadRoute(host: SimulatorHost, flavor: Flavor, call: HttpCall): boolean {
  switch (`${flavor.owner} ${call.path}`) {
    case "vllm /metrics":
      call.body(200, "text/plain; version=0.0.4; charset=utf-8", metricsText(vllmFigures(host), vllmLabels(host)));
      return true;
    case "sglang /metrics":
      call.body(
        200,
        "text/plain; version=0.0.4; charset=utf-8",
        metricsText(sglangFigures(host), `model_name="${host.model.servedName}"`),
      );
      return true;
    case "sglang /v1/loads":
      call.json(200, sglangLoads(host));
      return true;
    case "sglang /get_load":
      call.json(200, [oldSglangLoad(host)]);
      return true;
    case "llamacpp /metrics":
      call.body(200, "text/plain; version=0.0.4", metricsText(llamaFigures(host), ""));
      return true;
    case "llamacpp /slots":
      call.json(200, slots(host));
      return true;
    default:
      return false;
  }
}

function metricsText(figures: readonly Figure[], labels: string): string {
  const braces = labels === "" ? "" : `{${labels}}`;
  return figures.map(([name, type, value]) => `# TYPE ${name} ${type}\n${name}${braces} ${value}\n`).join("");
}

function vllmLabels({ model }: SimulatorHost): string {
  return `engine="0",model_name="${model.servedName}"`;
}

function vllmFigures({ driver, counts }: SimulatorHost): Figure[] {
  const load = driver.core.load();
  return [
    ["vllm:num_requests_running", "gauge", load.running],
    ["vllm:num_requests_waiting", "gauge", load.waiting],
    ["vllm:kv_cache_usage_perc", "gauge", load.blocksInUse / load.blocksTotal],
    ["vllm:prefix_cache_queries_total", "counter", counts.promptTokens],
    ["vllm:prefix_cache_hits_total", "counter", counts.cachedTokens],
    ["vllm:num_preemptions_total", "counter", load.preemptions],
    ["vllm:prompt_tokens_total", "counter", counts.promptTokens],
    ["vllm:generation_tokens_total", "counter", counts.tokensSent],
    ["vllm:request_success_total", "counter", counts.finished],
  ];
}

function sglangFigures(host: SimulatorHost): Figure[] {
  const load = host.driver.core.load();
  return [
    ["sglang:num_running_reqs", "gauge", load.running],
    ["sglang:num_queue_reqs", "gauge", load.waiting],
    ["sglang:num_used_tokens", "gauge", load.blocksInUse * host.driver.core.options.blockSize],
    ["sglang:token_usage", "gauge", load.blocksInUse / load.blocksTotal],
    ["sglang:gen_throughput", "gauge", load.throughput],
    ["sglang:cache_hit_rate", "gauge", load.hitRate],
  ];
}

function llamaFigures({ driver, counts }: SimulatorHost): Figure[] {
  const load = driver.core.load();
  return [
    ["llamacpp:prompt_tokens_total", "counter", counts.promptTokens],
    ["llamacpp:tokens_predicted_total", "counter", counts.tokensSent],
    ["llamacpp:requests_processing", "gauge", load.running],
    ["llamacpp:requests_deferred", "gauge", load.waiting],
  ];
}

/** SGLang's loads of one rank; the names are those of its GetLoads message. */
function sglangLoads(host: SimulatorHost): unknown {
  const load = host.driver.core.load();
  const rank = rankLoad(host);
  const aggregate = {
    total_running_reqs: load.running,
    total_waiting_reqs: load.waiting,
    total_reqs: load.running + load.waiting,
    avg_token_usage: rank["token_usage"],
    avg_throughput: load.throughput,
    avg_utilization: rank["utilization"],
  };
  return { timestamp: new Date().toISOString(), version: "0.5.23", dp_rank_count: 1, loads: [rank], aggregate };
}

function oldSglangLoad({ driver }: SimulatorHost): unknown {
  const load = driver.core.load();
  return {
    dp_rank: 0,
    num_reqs: load.running + load.waiting,
    num_waiting_reqs: load.waiting,
    num_tokens: load.blocksInUse * driver.core.options.blockSize,
  };
}

/** llama.cpp has as many slots as requests may run at once. */
function slots({ driver, model }: SimulatorHost): unknown[] {
  const load = driver.core.load();
  const count = Math.min(driver.core.options.maxRunning, Math.max(4, load.running));
  return Array.from({ length: count }, (_, id) => ({
    id,
    n_ctx: model.contextLength,
    is_processing: id < load.running,
  }));
}
