/**
 * What is done in Redis as a whole: scripts that the server runs one at a time. All begin with the same helpers, and get the tenant
 * and their arguments as ARGV[2…]; ARGV[1] is the schema's owner with its colon, or empty. They make keys themselves, which Redis
 * Cluster does not allow.
 */
import { fieldOf, type SchemaSetting, type TableName } from "../schema.ts";
import { HELPERS } from "./helpers.ts";

export type ScriptName = keyof typeof BODIES;

/** The text of each script, with the schema's names in it. */
export function scriptsOf(schema: SchemaSetting): Readonly<Record<ScriptName, string>> {
  const named = (text: string): string =>
    text.replaceAll(
      /@(\w+)\.(\w+)/g,
      (_, table: string, column: string) => `'${fieldOf(schema, table as TableName, column)}'`,
    );
  return Object.fromEntries(
    Object.entries(BODIES).map(([name, body]) => [name, named(HELPERS + body)]),
  ) as unknown as Readonly<Record<ScriptName, string>>;
}

const BODIES = {
  // id kind at iso status ids fields… "" items…
  putResponse: `
local id, kind, at, iso, status = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
if call('EXISTS', R(T, id)) == 1 then return 'conflict' end
local i = 9
while ARGV[i] ~= '' do call('HSET', R(T, id), ARGV[i], ARGV[i + 1]) i = i + 2 end
refer(T, id, lines(ARGV[8]))
call('ZADD', kindList(T, kind), at, id)
call('ZADD', all('responses'), at, member(T, id))
mark(T, id, status, at)
if i == #ARGV then return 'stored' end
local conversation = call('HGET', R(T, id), @responses.conversation_id)
if conversation and addItems(T, conversation, at, iso, id, i + 1) == 1 then return 'stored' end
return 'no_conversation'`,
  getState: `
if call('EXISTS', R(T, ARGV[3])) == 0 then return false end
return { call('HGET', R(T, ARGV[3]), @responses.status) or 'completed', call('ZSCORE', all('unfinished'), member(T, ARGV[3])) }`,
  // id at iso ifStatus status ids body beside|"" fields 0|1 items…
  updateResponse: `
local id, at, iso, wanted, status = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
if call('EXISTS', R(T, id)) == 0 then return 'not_found' end
local now = call('HGET', R(T, id), @responses.status) or 'completed'
if wanted ~= '' then
  local fits = false
  for _, one in ipairs(lines(wanted)) do if one == now then fits = true end end
  if not fits then return 'other_status' end
end
if status ~= '' then call('HSET', R(T, id), @responses.status, status) now = status end
if ARGV[11] == '1' then
  call('HSET', R(T, id), @responses.raw_response, ARGV[9])
  if ARGV[10] == '' then call('HDEL', R(T, id), @responses.output_items) else call('HSET', R(T, id), @responses.output_items, ARGV[10]) end
  unrefer(T, id)
  refer(T, id, lines(ARGV[8]))
end
mark(T, id, now, at)
if #ARGV == 11 then return 'stored' end
local conversation = call('HGET', R(T, id), @responses.conversation_id)
if conversation and addItems(T, conversation, at, iso, id, 12) == 1 then return 'stored' end
return 'no_conversation'`,
  kindOf: `
if call('EXISTS', R(T, ARGV[3])) == 0 then return false end
return call('HGET', R(T, ARGV[3]), @responses.kind) or 'response'`,
  deleteResponse: `
if call('EXISTS', R(T, ARGV[3])) == 0 then return 0 end
forget(T, ARGV[3])
return 1`,
  // kind order limit after before
  listResponses: `
local ids, cursor = page(kindList(T, ARGV[3]), ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7])
if not ids then return cursor end
local rows = {}
for i, id in ipairs(ids) do rows[i] = turn(T, id) end
return rows`,
  // id maxTurns maxBytes
  readChain: `
local id, rows, bytes = ARGV[3], {}, 0
while id and #rows < tonumber(ARGV[4]) and bytes <= tonumber(ARGV[5]) do
  local row = turn(T, id)
  if not row[1] then break end
  bytes = bytes + #(row[7] or '') + #(row[9] or row[8] or '')
  row[12] = bytes
  rows[#rows + 1] = row
  id = row[10]
end
return rows`,
  // ids…; items of conversations, ids of others with their responses, and these responses
  findItems: `
local items, held, turns, seen = {}, {}, {}, {}
for i = 3, #ARGV do
  local row = item(T, ARGV[i])
  if row[1] then items[#items + 1] = row
  else
    local ids = call('SMEMBERS', holders(T, ARGV[i]))
    table.sort(ids)
    if ids[1] then
      held[#held + 1] = { ARGV[i], ids[1] }
      if not seen[ids[1]] then seen[ids[1]] = true turns[#turns + 1] = turn(T, ids[1]) end
    end
  end
end
return { items, held, turns }`,
  // id at iso metadata items…
  createConversation: `
local id = ARGV[3]
if call('EXISTS', C(T, id)) == 1 then return 'conflict' end
call('HSET', C(T, id), @conversations.id, id, @conversations.created_at, ARGV[5], @conversations.metadata, ARGV[6])
call('ZADD', all('conversations'), ARGV[4], member(T, id))
addItems(T, id, ARGV[4], ARGV[5], '', 7)
return 'stored'`,
  // id at metadata
  updateConversation: `
local key = C(T, ARGV[3])
if call('EXISTS', key) == 0 then return false end
call('HSET', key, @conversations.metadata, ARGV[5])
call('ZADD', all('conversations'), ARGV[4], member(T, ARGV[3]))
return call('HMGET', key, @conversations.created_at, @conversations.metadata)`,
  getConversation: `
local key = C(T, ARGV[3])
if call('EXISTS', key) == 0 then return false end
return call('HMGET', key, @conversations.created_at, @conversations.metadata)`,
  deleteConversation: `
local id = ARGV[3]
if call('EXISTS', C(T, id)) == 0 then return 0 end
for _, one in ipairs(call('ZRANGE', C(T, id) .. ':items', 0, -1)) do release(T, one) end
dropConversation(T, id)
return 1`,
  // id at iso items…
  addItems: `return addItems(T, ARGV[3], ARGV[4], ARGV[5], '', 6)`,
  // id item
  getItem: `
if not call('ZSCORE', C(T, ARGV[3]) .. ':items', ARGV[4]) then return false end
return item(T, ARGV[4])`,
  // id order limit after before
  listItems: `
if call('EXISTS', C(T, ARGV[3])) == 0 then return 'none' end
local ids, cursor = page(C(T, ARGV[3]) .. ':items', ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7])
if not ids then return cursor end
local rows = {}
for i, id in ipairs(ids) do rows[i] = item(T, id) end
return rows`,
  // id maxItems maxBytes; the last row is how many there are
  newestItems: `
if call('EXISTS', C(T, ARGV[3])) == 0 then return false end
local list, limit, rows, bytes = C(T, ARGV[3]) .. ':items', tonumber(ARGV[4]), {}, 0
for i, id in ipairs(call('ZREVRANGE', list, 0, math.max(limit, 1) - 1)) do
  local row = item(T, id)
  bytes = bytes + #(row[5] or '')
  if i > 1 and bytes > tonumber(ARGV[5]) then break end
  rows[i] = row
end
rows[#rows + 1] = call('ZCARD', list)
return rows`,
  // id item
  removeItem: `
if call('ZREM', C(T, ARGV[3]) .. ':items', ARGV[4]) == 0 then return 0 end
release(T, ARGV[4])
return 1`,
  // id first events…
  appendEvents: `
if not unfinished[call('HGET', R(T, ARGV[3]), @responses.status)] then return 'over' end
local log = R(T, ARGV[3]) .. ':events'
if #ARGV > 4 and call('LLEN', log) ~= tonumber(ARGV[4]) then return 'conflict' end
for i = 5, #ARGV do call('RPUSH', log, ARGV[i]) end
return 'stored'`,
  // id after maxEvents maxBytes
  readEvents: `
if call('EXISTS', R(T, ARGV[3])) == 0 then return false end
local log, at, most, bytes, found = R(T, ARGV[3]) .. ':events', tonumber(ARGV[4]) + 1, tonumber(ARGV[5]), tonumber(ARGV[6]), {}
while #found < most and bytes > 0 do
  local some = call('LRANGE', log, at, at + math.min(most - #found, 64) - 1)
  if #some == 0 then break end
  for _, event in ipairs(some) do
    if bytes <= 0 then break end
    found[#found + 1] = event
    bytes = bytes - #event
  end
  at = at + #some
end
return found`,
  // before limit
  listUnfinished: `
local rows = {}
for i, m in ipairs(call('ZRANGEBYSCORE', all('unfinished'), '-inf', '(' .. ARGV[3], 'LIMIT', 0, ARGV[4])) do
  local t, id = parts(m)
  rows[i] = { t, id, call('HGET', R(t, id), @responses.kind), call('HGET', R(t, id), @responses.status), call('ZSCORE', all('unfinished'), m) }
end
return rows`,
  // before limit
  removeExpired: `
local left = tonumber(ARGV[4])
for _, m in ipairs(call('ZRANGEBYSCORE', all('responses'), '-inf', '(' .. ARGV[3], 'LIMIT', 0, left)) do
  local t, id = parts(m)
  forget(t, id)
  left = left - 1
end
for _, m in ipairs(left > 0 and call('ZRANGEBYSCORE', all('conversations'), '-inf', '(' .. ARGV[3], 'LIMIT', 0, left) or {}) do
  local t, id = parts(m)
  local list = C(t, id) .. ':items'
  for _, one in ipairs(left > 0 and call('ZRANGE', list, 0, left - 1) or {}) do
    call('ZREM', list, one)
    release(t, one)
    left = left - 1
  end
  if left > 0 and call('ZCARD', list) == 0 then dropConversation(t, id) left = left - 1 end
end
return tonumber(ARGV[4]) - left`,
  // a version that this program knows
  openHistory: `
local key = all('version')
local now = tonumber(call('GET', key) or '0')
if now < tonumber(ARGV[3]) then call('SET', key, ARGV[3]) now = tonumber(ARGV[3]) end
return now`,
} as const;
