-- What the keys of one resource hold, and how to read and write it. Every operation gets `keys` and
-- `args` of its own; `at` is the server's time in ms.
--
-- keys  1 holder    string: the exclusive grant, or the marker of shared ones. The only truth: when
--                   it is gone, everything that was granted is. Others may SET NX it, and exclude us
--       2 queue     sorted set of grant ids, by arrival
--       3 waiters   hash, grant id -> record
--       4 shared    hash, grant id -> record
--       5 fence     string: the last token given out
--       6 gone      sorted set of grant ids whose claims are refused, by when that ends. One key for
--                   all: a name for each would be looked for at every claim, far from what is in use
--       7 ends      sorted set of shared grant ids, by when each stops being in the way
--       8 tokens    sorted set of shared grant ids, by first token
-- There may be thousands of shared grants and waiters. No operation but inspect reads them all.

stamp = stamp or micros(redis.call('TIME'))
local at = math.floor(stamp / 1000)

local MANY, VIEWS = 16, 4
-- All shared claims that are alive carry one limit, and the marker says which.
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

-- Whoever writes it from here has seen that somebody waits, or may: the release must look.
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

-- The record last: it makes the grant, and a key of another type fails before it is there.
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
  -- Ends of another type fail here, before anything is taken out.
  redis.call('ZSCORE', keys[7], id)
  redis.call('ZREM', keys[8], id)
  redis.call('ZREM', keys[7], id)
  redis.call('HDEL', keys[4], id)
end

-- The marker lives as long as the last of those it stands for, lock-delays included. With a limit, the
-- marker is written anew.
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

-- What is in the way: { mode = 'x', count = 1, grant }, { mode = 's', count, limit }, or { count = 0 }
-- for nothing. A grant has `left`, what is left of its life; its lock-delay follows. A holder that is
-- not ours is the grant { foreign = true }.
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
      -- Somebody took the expiry away by hand: the holder's next renewal brings it back.
      g.left = pttl < 0 and g.ttl or pttl - g.delay
    end
    return { mode = 'x', count = 1, grant = g }
  end
  -- Some of those that are over: whoever looks next takes more, and the count leaves them out.
  for _, id in ipairs(redis.call('ZRANGE', keys[7], '-inf', whole(at), 'BYSCORE', 'LIMIT', 0, MANY)) do
    forget_shared(keys, id)
  end
  local count = redis.call('ZCOUNT', keys[7], '(' .. whole(at), '+inf')
  if count > 0 then return { mode = 's', count = count, limit = limit } end
  redis.call('DEL', keys[1], keys[4], keys[7], keys[8])
  return { count = 0 }
end

-- The grant of this id if it is alive.
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

-- A new life for a grant that is there, from now on.
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

-- What is left of its life. One whose expiry somebody took away by hand has no end.
local function left_of(keys, g)
  if g.mode == 's' then return g.left end
  local pttl = redis.call('PTTL', keys[1])
  return pttl < 0 and 0 or pttl - g.delay
end

-- A repeat of the claim: a fresh life, which takes nothing back from a renewal for longer.
local function rearm(keys, g)
  if left_of(keys, g) < g.ttl then arm(keys, g, g.ttl) end
  return { 'granted', whole(g.token), g.tokens, g.ttl }
end

local function fits(present, mode, limit)
  if not present.mode then return true end
  if mode == 'x' or present.mode == 'x' then return false end
  return limit == 0 or present.count < limit
end

-- For people: mode, the token in use, label, what is left, whether revoked.
local function view_of(g)
  if g.foreign then return { 'x', '0', '(another program)', g.left, 0 } end
  return { g.mode, whole(g.token + g.index), g.label, g.left, tonumber(g.revoked) }
end

-- Some holders, those that end first. Every waiter is told at every heartbeat, so a few must do.
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
