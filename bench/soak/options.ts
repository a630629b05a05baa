/** How a soak is run. */
export interface SoakOptions {
  readonly seconds: number;
  /** Serving threads of the gateway. */
  readonly threads: number;
  /** Requests at once while the load that the fleet bears is measured. */
  readonly clients: number;
  /** Share of that load that is sent in the soak. */
  readonly share: number;
  /** Of the engines; `openai` is an HTTP engine, which serves a model of its own. */
  readonly dialects: readonly string[];
  /** Between two faults, on average. */
  readonly gapMs: number;
  /** Of requests, arrivals and faults. */
  readonly seed: number;
}
