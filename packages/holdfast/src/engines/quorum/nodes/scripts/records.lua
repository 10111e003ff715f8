-- Carries out operations one after the other on one node of a quorum.
-- KEYS  for each operation the key of its resource, or the node's own key
-- ARGV  1 the tag of the node's own keys  2 what all clients must agree on; '' asks for no certificate
--       3 the channel of changes  4 most microseconds that a fence may be ahead of this node's clock
--       5 ms after which an idle counter is forgotten
--       then for each operation its name and as many arguments as COUNTS says
-- Gives this node's time in microseconds, then an answer for each operation;
--       { 'error', message } where it failed
--
-- The files of this folder, in their order, are one program.
--
-- keys  resource          hash: grant id -> record. One exclusive record, or any number of shared ones
--       {resource}:fence  string: the last token that this node has heard of
--       {resource}:gone:id string: attempts of this grant id that are refused, of calls up to which
--                         order, and until when
--       {resource}:line   sorted set: ids that wait, by ticket
--       {resource}:waits  hash: id -> until when it counts, its mode, and how long it takes to come;
--                         '' -> when which one was called
--       tag:certificate   string: run_id, master_replid, and what all clients agree on
--       tag:nonce         string: names the quarantine that somebody is waiting out

local COUNTS = { acquire = 12, renew = 5, release = 5, check = 2, revoke = 2, inspect = 0, mark = 1,
  certify = 3 }
local TAG, TERMS, CHANGES = ARGV[1], ARGV[2], ARGV[3]
local SKEW, IDLE = tonumber(ARGV[4]), ARGV[5]
-- What is kept longer than it counts, so that the time in the value decides, and not Redis's own.
local SLACK, WANTS = 1000, 2500

local call = redis.call
local time = call('TIME')
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local at = math.floor(us / 1000)

-- Of a millisecond that has begun only a part is left: without one more, a grant could end too early.
local function ending(ttl)
  return at + ttl + 1
end

local function whole(number)
  return string.format('%.0f', number)
end

local function tagged(key, what)
  return '{' .. key .. '}:' .. what
end

-- order    of the latest call that set its end: one with a smaller number comes too late
-- index    which of its tokens is in use
-- left     '1' where its holder has gone and left it to time
local function read(id, value)
  local mode, attempt, fence, tokens, delay, order, index, revoked, left, ends, born, label =
    string.match(value, '^(%a):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d):(%d):(%d+):(%d+):(.*)$')
  return { id = id, mode = mode, attempt = tonumber(attempt), fence = tonumber(fence),
    tokens = tonumber(tokens), delay = tonumber(delay), order = tonumber(order),
    index = tonumber(index), revoked = revoked, left = left, ends = tonumber(ends),
    born = tonumber(born), label = label }
end

-- alone: nothing else is there that would have to be kept for longer.
local function write(key, r, alone)
  call('HSET', key, r.id, table.concat({ r.mode, r.attempt, whole(r.fence), r.tokens, r.delay,
    whole(r.order), r.index, r.revoked, r.left, whole(r.ends), whole(r.born), r.label }, ':'))
  local left = r.ends + r.delay - at + SLACK
  if alone or call('PTTL', key) < left then call('PEXPIRE', key, whole(left)) end
end

-- Everything in the way, lock-delays included. What is over is taken away.
local function present(key)
  local found = {}
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    local r = read(all[i], all[i + 1])
    if r.ends + r.delay > at then found[#found + 1] = r else call('HDEL', key, r.id) end
  end
  return found
end

-- The grant of this id if it is alive.
local function alive(key, id)
  local value = call('HGET', key, id)
  local r = value and read(id, value)
  return r and r.ends > at and r or nil
end

-- What is left of its life for certain: of the millisecond that has begun, nothing.
local function remaining(r)
  return r.ends - at - 1
end

local function view(r)
  return { r.mode, whole(r.fence), r.tokens, r.index, r.label, r.ends - at, r.delay, at - r.born,
    tonumber(r.revoked) }
end

local function views(records)
  local seen = {}
  for i, r in ipairs(records) do seen[i] = view(r) end
  return seen
end

-- A value with an end of its own: the rest of it while it counts.
local function in_time(value)
  if not value then return nil end
  local ends, rest = string.match(value, '^(%d+):(.*)$')
  return tonumber(ends) > at and rest or nil
end

local function timed(key)
  return in_time(call('GET', key))
end

local function set_timed(key, rest, ms)
  call('SET', key, whole(at + ms) .. ':' .. rest, 'PX', whole(ms + SLACK))
end

local operations = {}
