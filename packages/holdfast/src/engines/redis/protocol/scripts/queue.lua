-- Those in line, and how they are let in.

local PASSED_OVER = 3000
-- What one call of the script does for others at most: it lets in so many waiters, and looks at so many.
-- Everybody else waits for the server meanwhile.
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
    -- The limit that all who live in line carry. A claim that carries it too need not look for theirs.
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

local function leave_line(keys, id)
  blocked[keys[1]] = nil
  -- A line of another type fails here, before anything is taken out.
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
    -- Records that are left from a marker that somebody deleted must not come back to life.
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

-- Counts a grant that was made, and takes its waiter out of the line.
local function let_in(keys, present, g)
  present.mode, present.count, present.views = g.mode, present.count + 1, nil
  if g.mode == 'x' then present.grant = g else present.limit = g.limit end
  leave_line(keys, g.id)
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

-- Makes the grant and tells the waiter's process; gives nil where that was not possible. A release
-- has a `reply`: its answer tells a waiter of the caller's own, which lives as surely as the caller does.
local function push_grant(keys, w, present, reply)
  local by_reply = reply and not reply.grant and w.channel == ARGV[1]
  if not by_reply and not is_heard(w.channel) then return nil end
  -- The grant first: a message about one that could then not be written would make two holders.
  local g = make_grant(keys, w, present, math.min(w.ttl, CLAIM_WINDOW))
  local message = table.concat({ w.id, w.beat, whole(g.token), g.tokens, g.life }, ' ')
  if by_reply then
    reply.grant = message
    return g
  end
  local told = redis.pcall(PUBLISH, w.channel, message)
  if type(told) == 'number' then return g end
  -- Without the right to publish there are no pushes, and heartbeats must do.
  unmake_grant(keys, g)
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

-- The caller goes on with what this call had to leave; until it does, heartbeats of those in line do.
local function leave_rest(keys)
  redis.pcall(PUBLISH, ARGV[1], 'more ' .. keys[1])
end

-- Lets in from the head whoever fits. A waiter that nobody listens for is passed over, not thrown
-- out: its own heartbeat brings it in. So is one that is late, unless nobody behind it can be let in:
-- else all waiters of a process that was stopped would have their turns, and a claim window each. The
-- caller is told by the answer to its call. Gives the caller's grant, if it was made, and whether
-- everybody who is still in line was passed over.
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
      -- Where nothing moves, there is nothing to go on with.
      if moved then leave_rest(keys) end
      break
    end
    looks_left = looks_left - 1
    local record = redis.call('HGET', keys[3], id)
    local w = record and read_waiter(id, record)
    if not w or is_silent(w) then
      leave_line(keys, id)
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
    -- An exclusive one was let in. Nobody fits beside it.
    if from == 0 then blocked[keys[1]] = present end
    return own, false
  end
  for _, w in ipairs(late) do
    if grants_left <= 0 or not fits(present, w.mode, w.limit) then break end
    admit(w)
  end
  return own, passed
end

-- Lets in whom the end of a grant or a place makes eligible. Where that fails, those in line hear of it
-- at their heartbeats. It is no failure of the one that has gone: its own part is done.
local function make_room(keys, present, reply)
  pcall(function() promote(keys, present or blockers(keys), nil, reply) end)
end
