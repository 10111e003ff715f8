-- What the keys of one resource hold, and how to read and write it. Every operation gets `keys` and
-- `args` of its own; `at` is the server's time in ms, `us` in microseconds.
--
-- keys  1 holder    string: the exclusive grant, or the marker of shared ones. The only truth: when
--                   it is gone, everything that was granted is. Others may SET NX it, and exclude us
--       2 queue     sorted set of grant ids, by arrival
--       3 waiters   hash, grant id -> record
--       4 shared    hash, grant id -> record
--       5 fence     string: the last token given out
--       6 gone      sorted set of grant ids whose claims are refused, by when that ends. One key for
--                   all: a name for each would be looked for at every claim, far from what is in use

if not stamp then
  local time = redis.call('TIME')
  stamp = time[1] .. sub('00000' .. time[2], -6)
end
local us = tonumber(stamp)
local at = math.floor(us / 1000)

local MARKER = 'hf:s'
local PASSED_OVER = 3000

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
  return table.concat({ 'hf:x', g.id, g.delay, state_of(g, '2'), g.ttl, g.index, whole(g.order),
    whole(g.token), g.tokens, g.label }, ':')
end

local function write_exclusive(keys, g, px)
  redis.call('SET', keys[1], exclusive_record(g), 'PX', px)
end

local function read_exclusive(value)
  local id, delay, state, ttl, index, order, token, tokens, label =
    string.match(value, '^hf:x:(%x+):(%d+):(%d):(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$')
  if not id then return nil end
  return read_state({ mode = 'x', id = id, token = tonumber(token), tokens = tonumber(tokens),
    ttl = tonumber(ttl), delay = tonumber(delay), order = tonumber(order), index = tonumber(index),
    label = label, limit = 0 }, state)
end

local function write_shared(keys, g)
  redis.call('HSET', keys[4], g.id, table.concat({ whole(g.token), g.tokens, g.ttl, g.delay,
    state_of(g, '0'), g.limit, whole(g.ends), g.index, whole(g.order), g.label }, ':'))
end

local function read_shared(id, value)
  local token, tokens, ttl, delay, state, limit, ends, index, order, label =
    string.match(value, '^(%d+):(%d+):(%d+):(%d+):(%d):(%d+):(%d+):(%d+):(%d+):(.*)$')
  return read_state({ mode = 's', id = id, token = tonumber(token), tokens = tonumber(tokens),
    ttl = tonumber(ttl), delay = tonumber(delay), limit = tonumber(limit), ends = tonumber(ends),
    order = tonumber(order), index = tonumber(index), label = label }, state)
end

-- The marker lives as long as the last of those it stands for, lock-delays included.
local function mark_shared(keys, grants)
  local last = 0
  for _, g in ipairs(grants) do last = math.max(last, g.ends + g.delay) end
  if last > at then
    redis.call('SET', keys[1], MARKER, 'PX', last - at)
    redis.call('PEXPIRE', keys[4], last - at)
  else
    redis.call('DEL', keys[1], keys[4])
  end
end

-- Everything in the way: each grant with `left`, what is left of its life; its lock-delay follows.
-- A holder that is not ours is { foreign = true }.
local function blockers(keys)
  local value = redis.call('GET', keys[1])
  if not value then return {} end
  if value ~= MARKER then
    local pttl = redis.call('PTTL', keys[1])
    local g = read_exclusive(value)
    if not g then return { { foreign = true, mode = 'x', left = pttl, delay = 0 } } end
    -- Somebody took the expiry away by hand: the holder's next renewal brings it back.
    g.left = pttl < 0 and g.ttl or pttl - g.delay
    return { g }
  end
  local found, over = {}, false
  local all = redis.call('HGETALL', keys[4])
  for i = 1, #all, 2 do
    local g = read_shared(all[i], all[i + 1])
    g.left = g.ends - at
    if g.left + g.delay > 0 then found[#found + 1] = g
    else
      redis.call('HDEL', keys[4], g.id)
      over = true
    end
  end
  if over or #found == 0 then mark_shared(keys, found) end
  return found
end

-- The grant of this id if it is alive.
local function alive(keys, id)
  local value = redis.call('GET', keys[1])
  if not value then return nil end
  local g
  if value == MARKER then
    local record = redis.call('HGET', keys[4], id)
    if not record then return nil end
    g = read_shared(id, record)
    g.left = g.ends - at
  else
    g = read_exclusive(value)
    if not g or g.id ~= id then return nil end
    local pttl = g.delay > 0 and redis.call('PTTL', keys[1]) or -1
    g.left = pttl < 0 and 1 or pttl - g.delay
  end
  return g.left > 0 and g or nil
end

-- A new life for a grant that is there, from now on.
local function arm(keys, g, ttl)
  local life = ttl
  g.ttl = ttl
  if g.mode == 'x' then
    write_exclusive(keys, g, life + g.delay)
  else
    g.ends = at + life
    write_shared(keys, g)
    local rest = blockers(keys)
    mark_shared(keys, rest)
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

-- Tokens rise with the clock, so that a server that lost its memory goes on above what it gave out.
-- A fence that has run ahead of the clock is kept until the clock has caught up.
local function take_tokens(fence, count)
  local first, idle = us, tonumber(IDLE)
  local last = redis.call('SET', fence, whole(first + count - 1), 'PX', idle, 'GET')
  if last and tonumber(last) >= first then
    first = tonumber(last) + 1
    local ahead = math.ceil((first + count - us) / 1000)
    redis.call('SET', fence, whole(first + count - 1), 'PX', whole(idle + ahead))
  end
  return first
end

local function fits(present, mode, limit)
  if #present == 0 then return true end
  if mode == 'x' or present[1].mode == 'x' then return false end
  return limit == 0 or #present < limit
end

local function read_waiter(id, value)
  local mode, limit, ttl, delay, tokens, beat, heard, passed, channel, label =
    string.match(value, '^([xs]):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):([^:]*):(.*)$')
  return { id = id, mode = mode, limit = tonumber(limit), ttl = tonumber(ttl),
    delay = tonumber(delay), tokens = tonumber(tokens), beat = tonumber(beat),
    heard = tonumber(heard), passed = tonumber(passed), channel = channel, label = label }
end

local function is_silent(w)
  return at - w.heard > WAITER_LIFE
end

-- `heard` is when it last showed that it is there, `passed` when it was first passed over, or 0.
local function waiter_record(w)
  return table.concat({ w.mode, w.limit, w.ttl, w.delay, w.tokens, w.beat, whole(w.heard),
    whole(w.passed), w.channel, w.label }, ':')
end

local function write_waiter(keys, w)
  redis.call('HSET', keys[3], w.id, waiter_record(w))
  redis.call('PEXPIRE', keys[2], WAITER_LIFE * 2)
  redis.call('PEXPIRE', keys[3], WAITER_LIFE * 2)
end

local function leave_line(keys, id)
  redis.call('HDEL', keys[3], id)
  return redis.call('ZREM', keys[2], id)
end

local function make_grant(keys, w, present, life)
  local g = { mode = w.mode, id = w.id, token = take_tokens(keys[5], w.tokens),
    tokens = w.tokens, ttl = w.ttl, delay = w.delay, order = 0, index = 0, revoked = '0',
    absent = false, limit = w.limit, label = w.label, left = life, life = life, ends = at + life }
  if g.mode == 'x' then
    write_exclusive(keys, g, life + g.delay)
  else
    -- Records that are left from a marker that somebody deleted must not come back to life.
    if #present == 0 then redis.call('DEL', keys[4]) end
    write_shared(keys, g)
    present[#present + 1] = g
    mark_shared(keys, present)
    present[#present] = nil
  end
  return g
end

local function unmake_grant(keys, g, present)
  if g.mode == 'x' then
    redis.call('DEL', keys[1])
  else
    redis.call('HDEL', keys[4], g.id)
    mark_shared(keys, present)
  end
end

-- Whether anybody listens here. Asked before anything is said: replicas tell their own listeners
-- what is published, and what they were told cannot be taken back.
local function is_heard(channel)
  local answer = redis.pcall('PUBSUB', COUNT, channel)
  return not answer.err and answer[2] > 0
end

-- Whether it has missed two heartbeats; its process may have been stopped, and still be listened for.
local function is_late(w)
  return w.channel ~= ARGV[1] and at - w.heard > STILL_THERE
end

-- Makes the grant and tells the waiter's process; gives nil where that was not possible.
local function push_grant(keys, w, present)
  if not is_heard(w.channel) then return nil end
  -- The grant first: a message about one that could then not be written would make two holders.
  local g = make_grant(keys, w, present, math.min(w.ttl, CLAIM_WINDOW))
  local told = redis.pcall(PUBLISH, w.channel,
    table.concat({ w.id, w.beat, whole(g.token), g.tokens, g.life }, ' '))
  if type(told) == 'number' then return g end
  -- Without the right to publish there are no pushes, and heartbeats must do.
  unmake_grant(keys, g, present)
end

-- Others must not overtake a waiter for ever because nobody listens for it. After a while, if it is
-- still there, it gets the grant without a word, and its next heartbeat finds it; so the grant lives
-- for some heartbeats, however short the ttl is. Gives nil where it is passed over once more.
local function keep_grant(keys, w, present)
  if w.passed == 0 then
    w.passed = at
    -- Out of memory, it is passed over and not remembered.
    redis.pcall('HSET', keys[3], w.id, waiter_record(w))
  end
  if at - w.passed < PASSED_OVER or at - w.heard > STILL_THERE then return nil end
  return make_grant(keys, w, present, CLAIM_WINDOW)
end

-- Lets in from the head whoever fits. A waiter that nobody listens for is passed over, not thrown
-- out: its own heartbeat brings it in. So is one that is late, unless nobody behind it can be let in:
-- else all waiters of a process that was stopped would have their turns, and a claim window each. The
-- caller is told by the answer to its call. Gives the caller's grant, if it was made.
local function promote(keys, present, caller)
  local own, from, late = nil, 0, {}
  while true do
    local id = redis.call('ZRANGE', keys[2], from, from)[1]
    if not id then break end
    local record = redis.call('HGET', keys[3], id)
    local w = record and read_waiter(id, record)
    if not w or is_silent(w) then
      leave_line(keys, id)
    elseif not fits(present, w.mode, w.limit) then
      return own
    elseif id == caller then
      own = make_grant(keys, w, present, w.ttl)
      present[#present + 1] = own
      leave_line(keys, id)
    elseif is_late(w) then
      late[#late + 1] = w
      from = from + 1
    else
      local g = push_grant(keys, w, present) or keep_grant(keys, w, present)
      if g then
        present[#present + 1] = g
        leave_line(keys, id)
      else
        from = from + 1
      end
    end
  end
  for _, w in ipairs(late) do
    if not fits(present, w.mode, w.limit) then break end
    local g = push_grant(keys, w, present) or keep_grant(keys, w, present)
    if g then
      present[#present + 1] = g
      leave_line(keys, w.id)
    end
  end
  return own
end

-- For people: mode, the token in use, label, what is left, whether revoked.
local function holder_views(present)
  local views = {}
  for _, g in ipairs(present) do
    if g.foreign then
      views[#views + 1] = { 'x', '0', '(another program)', g.left, 0 }
    elseif g.left > 0 then
      views[#views + 1] = { g.mode, whole(g.token + g.index), g.label, g.left, tonumber(g.revoked) }
    end
  end
  return views
end
