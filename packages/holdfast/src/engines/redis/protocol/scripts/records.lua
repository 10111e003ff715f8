-- What the keys of one resource hold, and how to read and write them. Every operation gets its own
-- `keys` and `args`; `at` is the server's time in ms.
--
-- keys  1 holder    string: the exclusive grant, or the marker of shared grants. The only truth: when this
--                   key is gone, every grant of the resource is. Other programs may SET NX it, which
--                   excludes us
--       2 queue     sorted set of the waiters' grant ids, by arrival
--       3 waiters   hash, grant id -> record
--       4 shared    hash, grant id -> record
--       5 fence     string: the last token given out
--       6 gone      sorted set of tombstones: grant ids whose claims are refused, by when that ends. They
--                   share one key. With a key for each, every claim would look up a key that is far in
--                   memory from the keys in use
--       7 ends      sorted set of shared grant ids, by when each stops blocking others
--       8 tokens    sorted set of shared grant ids, by first token
-- There may be thousands of shared grants and waiters. Only inspect reads all of them.

stamp = stamp or micros(redis.call('TIME'))
local at = math.floor(stamp / 1000)

local MANY, VIEWS = 16, 4
-- All live shared claims have the same limit, and the marker stores it.
local MARKER = 'hf:s:'

local function whole(number)
  return string.format('%.0f', number)
end

-- `plain` is the state of a grant that is neither revoked nor left behind.
local function state_of(g, plain)
  if g.absent then return g.revoked == '1' and '4' or '3' end
  return g.revoked == '1' and '1' or plain
end

local function read_state(g, state)
  g.state = state
  g.revoked = (state == '1' or state == '4') and '1' or '0'
  g.absent = state == '3' or state == '4'
  return g
end

-- State 2, because this part writes a record only when somebody waits or may wait: the release must
-- look at the queue.
local function exclusive_record(g)
  return record_of(g.id, g.delay, state_of(g, '2'), g.ttl, g.index, whole(g.order),
    whole(g.token) .. ':' .. g.tokens .. ':' .. g.label)
end

local function write_exclusive(keys, g, px)
  redis.call('SET', keys[1], exclusive_record(g), 'PX', px)
end

local function read_exclusive(value)
  local id, delay, state, ttl, index, order, rest = match(value, RECORD)
  local token, tokens, label = match(rest or '', REST)
  if not token then return nil end
  return read_state({ mode = 'x', id = id, token = tonumber(token), tokens = tonumber(tokens),
    ttl = tonumber(ttl), delay = tonumber(delay), order = tonumber(order), index = tonumber(index),
    label = label, limit = 0 }, state)
end

-- The record is written last, because it makes the grant: a key of another type fails before that.
local function write_shared(keys, g)
  redis.call('ZADD', keys[7], whole(g.ends + g.delay), g.id)
  redis.call('HSET', keys[4], g.id, table.concat({ whole(g.token), g.tokens, g.ttl, g.delay,
    state_of(g, '0'), g.limit, whole(g.ends), g.index, whole(g.order), g.label }, ':'))
end

-- The shared grant of this id, alive or not; nil where there is none.
local function read_shared(keys, id)
  local value = redis.call('HGET', keys[4], id)
  if not value then return nil end
  local token, tokens, ttl, delay, state, limit, ends, index, order, label =
    string.match(value, '^(%d+):(%d+):(%d+):(%d+):(%d):(%d+):(%d+):(%d+):(%d+):(.*)$')
  return read_state({ mode = 's', id = id, token = tonumber(token), tokens = tonumber(tokens),
    ttl = tonumber(ttl), delay = tonumber(delay), limit = tonumber(limit), ends = tonumber(ends),
    order = tonumber(order), index = tonumber(index), label = label, left = ends - at }, state)
end

local function forget_shared(keys, id)
  -- A key of another type in place of the ends fails here, before anything is removed.
  redis.call('ZSCORE', keys[7], id)
  redis.call('ZREM', keys[8], id)
  redis.call('ZREM', keys[7], id)
  redis.call('HDEL', keys[4], id)
end

-- The marker lives as long as the last shared grant, including its lock-delay. Where a limit is
-- given, the marker is written again, with it.
local function mark_shared(keys, limit)
  local last = redis.call('ZREVRANGE', keys[7], 0, 0, 'WITHSCORES')[2]
  local left = last and last - at or 0
  if left <= 0 then
    redis.call('DEL', keys[1], keys[4], keys[7], keys[8])
    return
  end
  if limit then
    redis.call('SET', keys[1], MARKER .. limit, 'PX', whole(left))
  elseif redis.call('PTTL', keys[1]) == left then
    return
  else
    redis.call('PEXPIRE', keys[1], whole(left))
  end
  for _, key in ipairs({ keys[4], keys[7], keys[8] }) do redis.call('PEXPIRE', key, whole(left)) end
end

local function marker_limit(value)
  return string.sub(value, 1, #MARKER) == MARKER and tonumber(string.sub(value, #MARKER + 1)) or nil
end

-- What blocks the resource: { mode = 'x', count = 1, grant }, { mode = 's', count, limit }, or {
-- count = 0 } for nothing. `left` of a grant is the rest of its life, which its lock-delay follows.
-- A holder of another program is the grant { foreign = true }.
local function blockers(keys)
  local value = redis.call('GET', keys[1])
  if not value then return { count = 0 } end
  local limit = marker_limit(value)
  if not limit then
    local pttl = redis.call('PTTL', keys[1])
    local g = read_exclusive(value)
    if not g then
      g = { foreign = true, mode = 'x', left = pttl, delay = 0 }
    else
      -- Without an expiry, somebody removed it by hand. The holder's next renewal brings it back.
      g.left = pttl < 0 and g.ttl or pttl - g.delay
    end
    return { mode = 'x', count = 1, grant = g }
  end
  -- Removes some of the grants that are over. The next call removes more, and the count below
  -- leaves them out anyway.
  for _, id in ipairs(redis.call('ZRANGE', keys[7], '-inf', whole(at), 'BYSCORE', 'LIMIT', 0, MANY)) do
    forget_shared(keys, id)
  end
  local count = redis.call('ZCOUNT', keys[7], '(' .. whole(at), '+inf')
  if count > 0 then return { mode = 's', count = count, limit = limit } end
  redis.call('DEL', keys[1], keys[4], keys[7], keys[8])
  return { count = 0 }
end

-- The grant of this id, if it is alive.
local function alive(keys, id)
  local value = redis.call('GET', keys[1])
  if not value then return nil end
  local g
  if marker_limit(value) then
    g = read_shared(keys, id)
  else
    g = read_exclusive(value)
    if not g or g.id ~= id then return nil end
    local pttl = g.delay > 0 and redis.call('PTTL', keys[1]) or -1
    g.left = pttl < 0 and 1 or pttl - g.delay
  end
  return g and g.left > 0 and g or nil
end

-- Gives an existing grant a new life, from now on.
local function arm(keys, g, ttl)
  g.ttl = ttl
  if g.mode == 'x' then
    write_exclusive(keys, g, ttl + g.delay)
  else
    g.ends = at + ttl
    write_shared(keys, g)
    mark_shared(keys)
  end
end

-- The rest of a grant's life. Where somebody removed the expiry by hand, it is unknown and counts
-- as 0.
local function left_of(keys, g)
  if g.mode == 's' then return g.left end
  local pttl = redis.call('PTTL', keys[1])
  return pttl < 0 and 0 or pttl - g.delay
end

-- The claim was repeated: its grant gets a new life, unless a renewal already gave it a longer one.
local function rearm(keys, g)
  if left_of(keys, g) < g.ttl then arm(keys, g, g.ttl) end
  return { 'granted', whole(g.token), g.tokens, g.ttl }
end

local function fits(present, mode, limit)
  if not present.mode then return true end
  if mode == 'x' or present.mode == 'x' then return false end
  return limit == 0 or present.count < limit
end

-- A holder as inspect and waiters show it: mode, the token in use, label, ms left, whether revoked.
local function view_of(g)
  if g.foreign then return { 'x', '0', '(another program)', g.left, 0 } end
  return { g.mode, whole(g.token + g.index), g.label, g.left, tonumber(g.revoked) }
end

-- A few holders, those that end first. Every heartbeat of every waiter gets them, so all would be
-- too many.
local function holder_views(keys, present)
  if present.views then return present.views end
  local g, views = present.grant, {}
  present.views = views
  if g then
    if g.foreign or g.left > 0 then views[1] = view_of(g) end
    return views
  end
  if not present.mode then return views end
  for _, id in ipairs(redis.call('ZRANGE', keys[7], '(' .. whole(at), '+inf', 'BYSCORE', 'LIMIT', 0,
    VIEWS)) do
    g = read_shared(keys, id)
    if g and g.left > 0 then views[#views + 1] = view_of(g) end
  end
  return views
end
