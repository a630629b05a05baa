import { loadsReply, rankLoad } from "../dialects/loads.ts";
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
      call.json(200, oldSglangLoads(host));
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

function vllmFigures({ ranks, counts }: SimulatorHost): Figure[] {
  const load = ranks.load();
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
  const load = host.ranks.load();
  return [
    ["sglang:num_running_reqs", "gauge", load.running],
    ["sglang:num_queue_reqs", "gauge", load.waiting],
    ["sglang:num_used_tokens", "gauge", load.blocksInUse * host.ranks.options.blockSize],
    ["sglang:token_usage", "gauge", load.blocksInUse / load.blocksTotal],
    ["sglang:gen_throughput", "gauge", load.throughput],
    ["sglang:cache_hit_rate", "gauge", load.hitRate],
  ];
}

function llamaFigures({ ranks, counts }: SimulatorHost): Figure[] {
  const load = ranks.load();
  return [
    ["llamacpp:prompt_tokens_total", "counter", counts.promptTokens],
    ["llamacpp:tokens_predicted_total", "counter", counts.tokensSent],
    ["llamacpp:requests_processing", "gauge", load.running],
    ["llamacpp:requests_deferred", "gauge", load.waiting],
  ];
}

/** SGLang's loads of its ranks; the names are those of its GetLoads message. */
function sglangLoads({ ranks }: SimulatorHost): unknown {
  const told = ranks.loads().map((load, rank) => rankLoad(rank, load, ranks.options));
  return loadsReply("0.5.23", told, undefined);
}

function oldSglangLoads({ ranks }: SimulatorHost): unknown[] {
  return ranks.loads().map((load, rank) => ({
    dp_rank: rank,
    num_reqs: load.running + load.waiting,
    num_waiting_reqs: load.waiting,
    num_tokens: load.blocksInUse * ranks.options.blockSize,
  }));
}

/** llama.cpp has as many slots as requests may run at once. */
function slots({ ranks, model }: SimulatorHost): unknown[] {
  const load = ranks.load();
  const count = Math.min(ranks.options.maxRunning, Math.max(4, load.running));
  return Array.from({ length: count }, (_, id) => ({
    id,
    n_ctx: model.contextLength,
    is_processing: id < load.running,
  }));
}
