-- The waiters of a resource, and how they are promoted to holders.

local PASSED_OVER = 3000
-- How many waiters one call of the script promotes at most, and how many it looks at. The server
-- answers nobody else while a script runs.
local grants_left, looks_left = 64, 512

local function read_waiter(id, value)
  local mode, limit, ttl, delay, tokens, beat, heard, passed, channel, label =
    match(value, WAITER)
  return { id = id, mode = mode, limit = tonumber(limit), ttl = tonumber(ttl),
    delay = tonumber(delay), tokens = tonumber(tokens), beat = tonumber(beat),
    heard = tonumber(heard), passed = tonumber(passed), channel = channel, label = label }
end

local function is_silent(w)
  return at - w.heard > WAITER_LIFE
end

local function waiter_record(w)
  return waiter_of(w.mode, w.limit, w.ttl, w.delay, w.tokens, w.beat, whole(w.heard),
    whole(w.passed), w.channel, w.label)
end

prolonged = {}

local function note_waiter(keys, w)
  if w.mode == 'x' then
    redis.call('HSET', keys[3], w.id, waiter_record(w))
  else
    -- All live shared waiters have this limit. A claim with the same limit need not read their
    -- records.
    redis.call('HSET', keys[3], w.id, waiter_record(w), 'limit', w.limit)
  end
end

local function prolong(keys)
  if prolonged[keys[1]] then return end
  prolonged[keys[1]] = true
  redis.call('PEXPIRE', keys[2], WAITER_LIFE * 2)
  redis.call('PEXPIRE', keys[3], WAITER_LIFE * 2)
end

local function write_waiter(keys, w)
  note_waiter(keys, w)
  prolong(keys)
end

local function leave_queue(keys, id)
  blocked[keys[1]] = nil
  -- A key of another type in place of the queue fails here, before anything is removed.
  redis.call('ZSCORE', keys[2], id)
  redis.call('HDEL', keys[3], id)
  local left = redis.call('ZREM', keys[2], id)
  if redis.call('EXISTS', keys[2]) == 0 then
    redis.call('DEL', keys[3])
    prolonged[keys[1]] = nil
  end
  return left
end

local function make_grant(keys, w, present, life)
  blocked[keys[1]] = nil
  local token, failure = take_tokens(stamp, keys[5], w.tokens, IDLE)
  if not token then error(failure) end
  local g = { mode = w.mode, id = w.id, token = tonumber(token),
    tokens = w.tokens, ttl = w.ttl, delay = w.delay, order = 0, index = 0, revoked = '0',
    absent = false, limit = w.limit, label = w.label, left = life, life = life, ends = at + life }
  if g.mode == 'x' then
    write_exclusive(keys, g, life + g.delay)
  else
    -- If somebody deleted the marker by hand, its records are still there. They must not become
    -- valid again.
    if not present.mode then redis.call('DEL', keys[4], keys[7], keys[8]) end
    redis.call('ZADD', keys[8], whole(g.token), g.id)
    write_shared(keys, g)
    mark_shared(keys, present.limit ~= g.limit and g.limit or nil)
  end
  return g
end

local function unmake_grant(keys, g)
  if g.mode == 'x' then
    redis.call('DEL', keys[1])
  else
    forget_shared(keys, g.id)
    mark_shared(keys)
  end
end

-- Counts a grant that was made, and removes its waiter from the queue.
local function let_in(keys, present, g)
  present.mode, present.count, present.views = g.mode, present.count + 1, nil
  if g.mode == 'x' then present.grant = g else present.limit = g.limit end
  leave_queue(keys, g.id)
end

-- Whether anybody listens to the channel at this server. This is asked before publishing: replicas
-- pass a message on to their own listeners, and a message that was sent cannot be taken back.
local function has_listener(channel)
  local answer = redis.pcall('PUBSUB', COUNT, channel)
  return not answer.err and answer[2] > 0
end

-- Whether the waiter has missed two heartbeats. Its process may be stopped while its connection
-- still listens.
local function is_late(w)
  return w.channel ~= ARGV[1] and at - w.heard > STILL_THERE
end

-- Makes the grant and tells the waiter's process; gives nil where that is not possible. Only a
-- release has a `reply`: where the waiter is the caller's own, the answer tells of the grant. Such
-- a waiter is certainly alive, because the caller is.
local function push_grant(keys, w, present, reply)
  local by_reply = reply and not reply.grant and w.channel == ARGV[1]
  if not by_reply and not has_listener(w.channel) then return nil end
  -- The grant is written first: a message about a grant that then cannot be written makes two
  -- holders.
  local g = make_grant(keys, w, present, math.min(w.ttl, CLAIM_WINDOW))
  local message = table.concat({ w.id, w.beat, whole(g.token), g.tokens, g.life }, ' ')
  if by_reply then
    reply.grant = message
    return g
  end
  local told = redis.pcall(PUBLISH, w.channel, message)
  if type(told) == 'number' then return g end
  -- This user may not publish, so nothing is pushed. The waiter's heartbeat finds its turn instead.
  unmake_grant(keys, g)
end

-- Others must not overtake a waiter for ever only because its process does not listen. After
-- PASSED_OVER ms, if the waiter still sends heartbeats, it gets the grant without a message, and
-- its next heartbeat finds it. So the grant lives for several heartbeats, however short the ttl is.
-- Gives nil where the waiter is passed over once more.
local function keep_grant(keys, w, present)
  if w.passed == 0 then
    w.passed = at
    -- pcall: where the server is out of memory, the waiter is passed over without a note of it.
    redis.pcall('HSET', keys[3], w.id, waiter_record(w))
  end
  if at - w.passed < PASSED_OVER or at - w.heard > STILL_THERE then return nil end
  return make_grant(keys, w, present, CLAIM_WINDOW)
end

-- Asks the caller to promote those that this call had to leave. Until it does, the heartbeats of
-- the waiters promote them.
local function ask_to_continue(keys)
  redis.pcall(PUBLISH, ARGV[1], 'more ' .. keys[1])
end

-- Promotes waiters that fit, from the head of the queue. A waiter whose process does not listen is passed
-- over, not removed: its own heartbeat gets it the grant. A late waiter is passed over too, unless nobody
-- behind it can be promoted. Otherwise each waiter of a stopped process would be granted the resource, and
-- block it for a claim window. The caller's own heartbeat learns of its grant from the answer to the call.
-- Gives the caller's grant, if it was made, and whether everybody who is still queued was passed over.
local function promote(keys, present, caller, reply)
  local own, from, late, moved, passed = nil, 0, {}, false, true
  local function admit(w)
    local g = push_grant(keys, w, present, reply) or keep_grant(keys, w, present)
    if not g then return false end
    let_in(keys, present, g)
    grants_left, moved = grants_left - 1, true
    return true
  end
  local holder = present.grant
  while present.grant == holder do
    local id = redis.call('ZRANGE', keys[2], from, from)[1]
    if not id then break end
    if grants_left <= 0 or looks_left <= 0 then
      passed = false
      -- Where nothing changed, a further call would not change anything either.
      if moved then ask_to_continue(keys) end
      break
    end
    looks_left = looks_left - 1
    local record = redis.call('HGET', keys[3], id)
    local w = record and read_waiter(id, record)
    if not w or is_silent(w) then
      leave_queue(keys, id)
      moved = true
    elseif not fits(present, w.mode, w.limit) then
      if from == 0 then blocked[keys[1]] = present end
      return own, false
    elseif id == caller then
      own = make_grant(keys, w, present, w.ttl)
      let_in(keys, present, own)
    elseif is_late(w) then
      late[#late + 1] = w
      from = from + 1
    elseif not admit(w) then
      from = from + 1
    end
  end
  if present.grant ~= holder then
    -- An exclusive waiter was promoted. Nobody fits beside it.
    if from == 0 then blocked[keys[1]] = present end
    return own, false
  end
  for _, w in ipairs(late) do
    if grants_left <= 0 or not fits(present, w.mode, w.limit) then break end
    admit(w)
  end
  return own, passed
end

-- Promotes the waiters that the end of a grant, or of a waiter before them, makes eligible. Where
-- that fails, they find their turn by their heartbeats. The failure is not reported to the caller:
-- what it asked for is done.
local function promote_next(keys, present, reply)
  pcall(function() promote(keys, present or blockers(keys), nil, reply) end)
end
