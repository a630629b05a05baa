/** `truncation: "auto"`: what of a conversation goes first where it is too long for the model. */
import { contentText, type Message } from "../../generation/conversation.ts";

/** Places of messages that stay or go together, and the length of their texts. */
interface Unit {
  readonly messages: number[];
  readonly isUser: boolean;
  size: number;
}

/**
 * The messages without the oldest ones, whose texts make up at least `share` (0 to 1) of all if so much can go. Whole turns go first, each
 * from a message of the user to the next; then what the assistant did since the last of these, calls with their results. System messages,
 * the user's last message and what came last stay. Undefined: nothing can go.
 */
export function withoutOldest(messages: readonly Message[], share: number): readonly Message[] | undefined {
  const units = unitsOf(messages);
  const lastUser = units.findLastIndex(({ isUser }) => isUser);
  const since = units.slice(lastUser + 1, -1).map((unit) => [unit]);
  const wanted = share * messages.reduce((sum, message) => sum + sizeOf(message), 0);
  const gone = new Set<number>();
  let size = 0;
  for (const group of [...turnsOf(units.slice(0, Math.max(lastUser, 0))), ...since]) {
    if (gone.size > 0 && size >= wanted) break;
    for (const unit of group) {
      for (const at of unit.messages) gone.add(at);
      size += unit.size;
    }
  }
  return gone.size === 0 ? undefined : messages.filter((_, at) => !gone.has(at));
}

/** The same until the texts have no more than about `most` characters, as far as it goes. */
export function withinCharacters(messages: readonly Message[], most: number): readonly Message[] {
  const size = messages.reduce((sum, message) => sum + sizeOf(message), 0);
  return size <= most ? messages : (withoutOldest(messages, 1 - most / size) ?? messages);
}

function turnsOf(units: readonly Unit[]): Unit[][] {
  const turns: Unit[][] = [];
  for (const unit of units) {
    const last = turns.at(-1);
    if (unit.isUser || last === undefined) turns.push([unit]);
    else last.push(unit);
  }
  return turns;
}

/** A message of the user, or one of the assistant with the results of its calls. */
function unitsOf(messages: readonly Message[]): Unit[] {
  const units: Unit[] = [];
  messages.forEach((message, at) => {
    const { role } = message;
    if (role === "system" || role === "developer") return;
    const last = units.at(-1);
    if (role === "tool" && last?.isUser === false) {
      last.messages.push(at);
      last.size += sizeOf(message);
    } else units.push({ messages: [at], isUser: role === "user", size: sizeOf(message) });
  });
  return units;
}

function sizeOf({ content, reasoning = "", toolCalls = [] }: Message): number {
  const calls = toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  return contentText(content).length + reasoning.length + calls;
}
