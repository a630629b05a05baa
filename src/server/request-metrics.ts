/** Requests for answers and vectors, counted in a thread's registry. */
import { EngineFailureError, type GatewayError, gatewayError, NoWorkersError } from "../errors.ts";
import type { FleetView } from "../fleet/view.ts";
import type { Counter, Histogram, MetricRegistry } from "../telemetry/registry.ts";

/** What a request asks for. */
export interface Asked {
  /** As SMG names them: chat, generate, responses, completions, rerank, embeddings, classify, messages; besides, interactions. */
  readonly endpoint: string;
  /** As the client named it. */
  readonly model: string;
  readonly isStream: boolean;
}

/** Counts one generation: told of its beginning at an engine and of its good end, not of its tokens. */
export interface GenerationMeter {
  begun(): void;
  ended(promptTokens: number, completionTokens: number): void;
}

interface OfModel {
  readonly ttft: Histogram;
  readonly tpot: Histogram;
  readonly duration: Histogram;
  readonly input: Counter;
  readonly output: Counter;
}

/** How metrics name what HTTP workers offer. */
const NAMES: Readonly<Record<string, string>> = {
  "/v1/chat/completions": "chat",
  "/v1/completions": "completions",
  "/v1/embeddings": "embeddings",
  "/v1/rerank": "rerank",
};

export const endpointName = (path: string): string => NAMES[path] ?? "other";

/** Names that nobody has are one: clients must not make metrics. */
const UNKNOWN = "unknown";
const BACKEND = "regular";

export class RequestMetrics {
  private readonly models = new Map<string, OfModel>();

  constructor(private readonly registry: MetricRegistry) {}

  begin({ endpoint, model, isStream }: Asked, fleet: FleetView, startedAt: number): RequestMeter {
    const way = fleet.way(model);
    const mode = way === "http" ? "http" : "grpc";
    const id = fleet.idOf(model);
    const isKnown = way !== undefined || fleet.policy.fallbacksOf(id).length > 0;
    const labels = [mode, BACKEND, mode, isKnown ? id : UNKNOWN, endpoint];
    this.registry.counter("smg_router_requests_total", ...labels, String(isStream)).add();
    return new RequestMeter(this, this.registry, labels, startedAt);
  }

  ofModel(mode: string, model: string, endpoint: string): OfModel {
    const key = `${mode} ${endpoint} ${model}`;
    let its = this.models.get(key);
    if (its === undefined) {
      const { registry } = this;
      const labels = [mode, BACKEND, model, endpoint];
      its = {
        ttft: registry.histogram("smg_router_ttft_seconds", ...labels),
        tpot: registry.histogram("smg_router_tpot_seconds", ...labels),
        duration: registry.histogram("smg_router_generation_duration_seconds", ...labels),
        input: registry.counter("smg_router_tokens_total", ...labels, "input"),
        output: registry.counter("smg_router_tokens_total", ...labels, "output"),
      };
      this.models.set(key, its);
    }
    return its;
  }
}

/** Counts one request. */
export class RequestMeter {
  private hasFailed = false;

  constructor(
    private readonly metrics: RequestMetrics,
    private readonly registry: MetricRegistry,
    /** Those of the router's metrics. */
    private readonly labels: readonly string[],
    private readonly startedAt: number,
  ) {}

  get endpoint(): string {
    return this.labels[4]!;
  }

  /** It has failed, before or within its answer; the first call counts. A client that leaves is no failure. */
  failed(error: unknown): void {
    const failure = gatewayError(error);
    if (this.hasFailed || failure.status === 499) return;
    this.hasFailed = true;
    this.registry.counter("smg_router_request_errors_total", ...this.labels, typeOf(failure)).add();
  }

  /** It is over, well or badly. */
  ended(): void {
    this.registry
      .histogram("smg_router_request_duration_seconds", ...this.labels)
      .observe((performance.now() - this.startedAt) / 1000);
  }

  /** A generation of it begins now. `model`: the id of the one that answers. */
  generation(model: string): GenerationMeter {
    const its = this.metrics.ofModel(this.labels[0]!, model, this.endpoint);
    const start = performance.now();
    let first = start;
    return {
      begun() {
        first = performance.now();
        its.ttft.observe((first - start) / 1000);
      },
      ended(promptTokens, completionTokens) {
        const now = performance.now();
        its.duration.observe((now - start) / 1000);
        if (completionTokens > 1) its.tpot.observe((now - first) / 1000 / (completionTokens - 1));
        its.input.add(promptTokens);
        its.output.add(completionTokens);
      },
    };
  }

  /** Tokens that have become vectors. */
  embedded(model: string, promptTokens: number): void {
    this.metrics.ofModel(this.labels[0]!, model, this.endpoint).input.add(promptTokens);
  }
}

function typeOf(failure: GatewayError): string {
  if (failure instanceof NoWorkersError) return "no_workers";
  if (failure.status === 504 || failure.status === 408) return "timeout";
  if (failure instanceof EngineFailureError) return "backend_error";
  return failure.status < 500 ? "validation_error" : "internal_error";
}
