-- Carries out operations one after the other on one node of a quorum.
-- KEYS  for each operation the key of its resource, or the node's own key
-- ARGV  1 the tag of the node's own keys  2 what all clients must agree on; '' asks for no certificate
--       3 the channel of changes  4 most microseconds that a fence may be ahead of this node's clock
--       5 ms after which an idle counter is forgotten
--       then for each operation its name and as many arguments as COUNTS says
-- Gives this node's time in microseconds, then an answer for each operation;
--       { 'error', message } where it failed
--
-- The files of this folder are one program, in the order that redis-node.ts gives.
--
-- keys  resource          hash: grant id -> record. One exclusive record, or any number of shared ones
--       {resource}:fence  string: the last token that this node has heard of
--       {resource}:gone:id string: attempts of this grant id that are refused, of calls up to which
--                         order, and until when
--       {resource}:line   sorted set: the queue, ids of waiters by ticket
--       {resource}:waits  hash: id -> until when the waiter counts, its mode, and its arrival time;
--                         '' -> when which waiter was called
--       tag:certificate   string: run_id, master_replid, and what all clients agree on
--       tag:nonce         string: names the quarantine that is under way

local COUNTS = { acquire = 12, renew = 5, release = 5, check = 2, revoke = 2, inspect = 0, mark = 1,
  certify = 3 }
local TAG, TERMS, CHANGES = ARGV[1], ARGV[2], ARGV[3]
local SKEW, IDLE = tonumber(ARGV[4]), ARGV[5]
-- Keys live longer than their values count, so the time in the value decides, not Redis's expiry.
local SLACK, WANTS = 1000, 2500

local call = redis.call
local time = call('TIME')
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local at = math.floor(us / 1000)

-- Only a part of the current millisecond is left: without one more, a grant could end too early.
local function ending(ttl)
  return at + ttl + 1
end

local function whole(number)
  return string.format('%.0f', number)
end

local function tagged(key, what)
  return '{' .. key .. '}:' .. what
end

-- order    of the latest call that set the end: a call with a smaller order comes too late
-- index    of the token in use
-- left     '1' where the holder left the grant behind, so that only time ends it
local function read(id, value)
  local mode, attempt, fence, tokens, delay, order, index, revoked, left, ends, born, label =
    string.match(value, '^(%a):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d):(%d):(%d+):(%d+):(.*)$')
  return { id = id, mode = mode, attempt = tonumber(attempt), fence = tonumber(fence),
    tokens = tonumber(tokens), delay = tonumber(delay), order = tonumber(order),
    index = tonumber(index), revoked = revoked, left = left, ends = tonumber(ends),
    born = tonumber(born), label = label }
end

-- alone: the hash has no other record that must be kept for longer.
local function write(key, r, alone)
  call('HSET', key, r.id, table.concat({ r.mode, r.attempt, whole(r.fence), r.tokens, r.delay,
    whole(r.order), r.index, r.revoked, r.left, whole(r.ends), whole(r.born), r.label }, ':'))
  local left = r.ends + r.delay - at + SLACK
  if alone or call('PTTL', key) < left then call('PEXPIRE', key, whole(left)) end
end

-- All records that are in the way, lock-delays included. Deletes the records that are over.
local function present(key)
  local found = {}
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    local r = read(all[i], all[i + 1])
    if r.ends + r.delay > at then found[#found + 1] = r else call('HDEL', key, r.id) end
  end
  return found
end

-- The grant with this id, if it is alive.
local function alive(key, id)
  local value = call('HGET', key, id)
  local r = value and read(id, value)
  return r and r.ends > at and r or nil
end

-- What is certainly left of its life: the current millisecond does not count.
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

-- A value starts with its own end. Gives the rest of the value, or nil once the end has passed.
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
