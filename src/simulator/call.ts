/** What hears of the end of a call, from the other side or by flow control. Set the members it needs. */
export interface CallEvents {
  /** The client went away or reset the stream; nothing may be sent any more. */
  onCancel?(): void;
  /** After `waitForDrain`: messages go out again. */
  onDrain?(): void;
}

/** A call as the simulated engine sees it, whatever protocol it came by. Statuses are those of gRPC. */
export interface EngineCall extends CallEvents {
  /** False after the end, a reset or a lost connection. */
  readonly open: boolean;
  /** True while earlier messages wait for the client: hold further ones back if you can. */
  readonly blocked: boolean;
  /** Headers of the request, by lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  /** Fields of the request that the engine is too old to know. */
  readonly ignored?: readonly string[] | undefined;
  /** Asks for one `onDrain` when the call is not blocked any more. */
  waitForDrain(): void;
  /** Ends the call with a status; `metadata` goes along as trailers. */
  end(status?: number, message?: string, metadata?: Readonly<Record<string, string>>): void;
  /** Breaks this call off with an HTTP/2 error code, its connection where the protocol knows nothing smaller. */
  reset(code: number): void;
  /** Announces the end of the connection; with a code that is not 0 it is closed at once. */
  goAway(code: number): void;
  /** Cuts the connection, with all its calls. */
  disconnect(): void;
  /** Writes out what waits, before the process ends. */
  flush(): void;
  /** Sends a message that can't be decoded. */
  garble(): void;
  /** Sends a message of that many bytes that says nothing. */
  oversize(bytes: number): void;
}
