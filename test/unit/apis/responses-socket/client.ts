/** A client of the WebSocket transport: Bun's own, so that every message is seen as it is. */
import { check, eventSchemas, type ResponseBody, type ResponseEvent } from "../../../support/schemas/responses.ts";
import { checkEvents } from "../../../support/schemas/responses-order.ts";
import type { Gateway } from "../../server/gateway.ts";

export type Message = ResponseEvent & {
  readonly stream_id?: string;
  readonly error?: { readonly code: string; readonly message: string; readonly param: string | null };
  readonly steer?: { readonly id?: string; readonly input?: unknown; readonly previous_response_id: string };
  readonly [member: string]: unknown;
};

export interface Client {
  readonly received: Message[];
  readonly closed: Promise<{ readonly code: number }>;
  send(message: object | string): void;
  /** The next message behind those that were taken. */
  next(): Promise<Message>;
  /** All messages up to the first one of a type, or the end of a response. */
  until(...types: readonly string[]): Promise<Message[]>;
  /** The events of one response to its end, in the right order. */
  response(lane?: string): Promise<ResponseBody>;
  close(): void;
}

export const ENDS = ["response.completed", "response.incomplete", "response.failed"];

export async function connect({ port }: Gateway, headers: Record<string, string> = {}): Promise<Client> {
  const socket = new WebSocket(`ws://localhost:${port}/v1/responses`, { headers } as unknown as string);
  const received: Message[] = [];
  let taken = 0;
  let wake = (): void => {};
  socket.onmessage = ({ data }) => {
    received.push(JSON.parse(String(data)) as Message);
    wake();
  };
  const closed = new Promise<{ readonly code: number }>((resolve) => {
    socket.onclose = ({ code }) => {
      resolve({ code });
      wake();
    };
  });
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve();
    socket.onerror = () => reject(new Error("no connection"));
  });
  const next = async (): Promise<Message> => {
    const until = Date.now() + 20_000;
    while (received.length <= taken) {
      if (Date.now() > until) throw new Error(`no message behind ${JSON.stringify(received.at(-1))}`);
      await Promise.race([new Promise<void>((resolve) => (wake = resolve)), Bun.sleep(100)]);
    }
    return received[taken++]!;
  };
  const until = async (...types: readonly string[]): Promise<Message[]> => {
    const found: Message[] = [];
    do found.push(await next());
    while (!types.includes(found.at(-1)!.type));
    return found;
  };
  return {
    received,
    closed,
    send: (message) => socket.send(typeof message === "string" ? message : JSON.stringify(message)),
    next,
    until,
    async response(lane) {
      const events = await until(...ENDS);
      for (const event of events)
        if (event.stream_id !== lane) throw new Error(`another lane: ${JSON.stringify(event)}`);
      const plain = events.map(({ stream_id: _, ...event }) => event as ResponseEvent);
      for (const event of plain) check(eventSchemas[event.type]!, event, event.type);
      return checkEvents(plain);
    },
    close: () => socket.close(),
  };
}
