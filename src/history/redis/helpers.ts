/** What all scripts begin with. Names such as @responses.id are those of fields, which the schema setting may change. */

/** Keys, which SMG 1.9 names so too: `response:{id}`, `item:{id}`, `conversation:{id}`, `conversation:{id}:items`. */
export const HELPERS = `
local O, T = ARGV[1], ARGV[2]
local call = redis.call
-- as encodeURIComponent: ids come from clients, and a colon in one would make it the key of something else
local function esc(s) return (string.gsub(s, "[^%w%-_%.!~%*'%(%)]", function(c) return string.format('%%%02X', string.byte(c)) end)) end
local function of(t) if t == '' then return O end return O .. 'tenant:' .. esc(t) .. ':' end
local function R(t, id) return of(t) .. 'response:' .. esc(id) end
local function C(t, id) return of(t) .. 'conversation:' .. esc(id) end
local function I(t, id) return of(t) .. 'item:' .. esc(id) end
local function holders(t, id) return I(t, id) .. ':responses' end
local function kindList(t, kind) return of(t) .. 'responses:' .. kind end
local function all(name) return O .. 'history:' .. name end
local function member(t, id) return t .. '\\n' .. id end
local function parts(m) local at = string.find(m, '\\n', 1, true) return string.sub(m, 1, at - 1), string.sub(m, at + 1) end
local unfinished = { queued = true, in_progress = true, canceling = true }
local function mark(t, id, status, at)
  if unfinished[status] then call('ZADD', all('unfinished'), at, member(t, id)) else call('ZREM', all('unfinished'), member(t, id)) end
end
local function lines(s) local found = {} for line in string.gmatch(s, '[^\\n]+') do found[#found + 1] = line end return found end
local function unrefer(t, id)
  for _, item in ipairs(call('SMEMBERS', R(t, id) .. ':items')) do call('SREM', holders(t, item), id) end
  call('DEL', R(t, id) .. ':items')
end
local function refer(t, id, ids)
  for _, item in ipairs(ids) do call('SADD', holders(t, item), id) call('SADD', R(t, id) .. ':items', item) end
end
local function forget(t, id)
  local kind = call('HGET', R(t, id), @responses.kind) or 'response'
  unrefer(t, id)
  call('ZREM', kindList(t, kind), id)
  call('ZREM', all('responses'), member(t, id))
  call('ZREM', all('unfinished'), member(t, id))
  return call('DEL', R(t, id), R(t, id) .. ':events')
end
local function release(t, item)
  if call('HINCRBY', I(t, item), 'links', -1) <= 0 then call('DEL', I(t, item)) end
end
-- items from ARGV[from]: id, type, role, status, content; "" for none
local function addItems(t, id, at, iso, responseId, from)
  if call('EXISTS', C(t, id)) == 0 then return 0 end
  local list = C(t, id) .. ':items'
  local last = call('ZREVRANGE', list, 0, 0, 'WITHSCORES')[2]
  local place = tonumber(at)
  if last and tonumber(last) >= place then place = tonumber(last) + 0.001 end
  for i = from, #ARGV, 5 do
    local item = ARGV[i]
    if call('ZADD', list, 'NX', string.format('%.17g', place), item) == 1 then
      if call('EXISTS', I(t, item)) == 0 then
        call('HSET', I(t, item), @conversation_items.id, item, @conversation_items.item_type, ARGV[i + 1],
          @conversation_items.content, ARGV[i + 4], @conversation_items.created_at, iso)
        if ARGV[i + 2] ~= '' then call('HSET', I(t, item), @conversation_items.role, ARGV[i + 2]) end
        if ARGV[i + 3] ~= '' then call('HSET', I(t, item), @conversation_items.status, ARGV[i + 3]) end
        if responseId ~= '' then call('HSET', I(t, item), @conversation_items.response_id, responseId) end
      end
      call('HINCRBY', I(t, item), 'links', 1)
    end
    place = place + 0.001
  end
  call('ZADD', all('conversations'), at, member(t, id))
  return 1
end
local function item(t, id)
  return call('HMGET', I(t, id), @conversation_items.id, @conversation_items.item_type, @conversation_items.role,
    @conversation_items.status, @conversation_items.content)
end
local function dropConversation(t, id)
  call('ZREM', all('conversations'), member(t, id))
  return call('DEL', C(t, id), C(t, id) .. ':items')
end
-- ids of a page in the order in which they are read, one more than limit; or false and the cursor that is not there
local function page(list, order, limit, after, before)
  local n = call('ZCARD', list)
  local function index(cursor)
    local rank = call('ZRANK', list, cursor)
    if not rank then return nil end
    if order == 'asc' then return rank end
    return n - 1 - rank
  end
  local low, high = 0, n - 1
  if after ~= '' then local at = index(after) if not at then return false, 'after' end low = at + 1 end
  if before ~= '' then local at = index(before) if not at then return false, 'before' end high = at - 1 end
  local backward = before ~= '' and after == ''
  if backward then low = math.max(low, high - limit) else high = math.min(high, low + limit) end
  if low > high then return {} end
  local ids = call(order == 'asc' and 'ZRANGE' or 'ZREVRANGE', list, low, high)
  if not backward then return ids end
  local turned = {}
  for i = #ids, 1, -1 do turned[#turned + 1] = ids[i] end
  return turned
end
local function turn(t, id)
  return call('HMGET', R(t, id), @responses.id, @responses.kind, @responses.created_at, @responses.conversation_id, @responses.model,
    @responses.status, @responses.input, @responses.raw_response, @responses.output_items, @responses.previous_response_id,
    @responses.safety_identifier)
end
`;
