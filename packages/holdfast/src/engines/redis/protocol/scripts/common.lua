-- Runs operations one after the other, each on the keys of its own resource. An operation that fails
-- does not stop the others.
-- KEYS  for each operation the first key of its resource. The names of the other keys are made from it,
--       with a hash tag that puts them into the same slot. On a Cluster the other keys follow the first
--       one, so that the server refuses the call while a moving slot has only some of them here
-- ARGV  the caller's channel, where its waiters hear of their grants; then for each operation its name
--       and its arguments, as the header of the operation says. The most frequent operations are one
--       argument: a mark, the grant id of 32 characters, and the other terms. The operation renew-many
--       is about many resources and has the first key of each; it is not used on a Cluster
-- Gives a list with an answer for each operation; for a single operation its answer, without a list.
--       The answer of an operation that failed is { 'error', message }
--
-- script.ts writes a line of constants before this text:
--   STRIDE          how many keys each operation has: 1, or 8 on a Cluster
--   PUBLISH, COUNT  the commands that send to a channel and count its listeners. On a Cluster these are
--                   the sharded ones: a plain PUBLISH reaches all nodes, but counts only the listeners
--                   at this node
--   IDLE            after how many ms an idle fence is forgotten
--
-- The files of this folder are one script, in the order that script.ts gives them: a loop over the
-- operations. Redis runs the whole text at every call, so every call creates every function that it
-- reaches. This file has what both parts of the loop need. Its functions avoid local variables of
-- the text, because each such variable would cost every call as much as one more function. The
-- first part, fast-path.lua, decides the most frequent operations. The second part, all other
-- files, can decide every operation; its functions are created only when an operation needs them.

local ARGV, sub, match, type = ARGV, string.sub, string.match, type

-- All in ms: how long a pushed grant lives until its first renewal, how long a waiter without
-- heartbeats is remembered, how long it counts as present, and how often it sends a heartbeat.
local CLAIM_WINDOW, WAITER_LIFE, STILL_THERE, HEARTBEAT = 3000, 10000, 2000, 1000

-- The record of an exclusive grant: hf:x:<id>:<lock-delay>:<state>:<ttl>:<index>:<order>:<rest>, and the
-- rest is <token>:<tokens>:<label>. Only these definitions know the format.
--   state  0 nobody can be waiting  2 somebody may be waiting  1 revoked  3 left behind by its holder
--          4 revoked and left behind
--   index  which token of the grant is in use
--   order  the order of the last renewal. It is stored even where only the expiry changed, because an
--          older renewal, for another ttl, may still arrive
local HEAD = '^hf:x:(%x+):(%d+):(%d):'
local RECORD = '^hf:x:(%x+):(%d+):(%d):(%d+):(%d+):(%d+):(.*)$'
local REST = '^(%d+):(%d+):(.*)$'
local function record_of(id, delay, state, ttl, index, order, rest)
  return 'hf:x:' .. id .. ':' .. delay .. ':' .. state .. ':' .. ttl .. ':' .. index .. ':' .. order ..
    ':' .. rest
end

-- The record of a waiter. `heard` is the time of its last heartbeat in ms. `passed` is when it was
-- first passed over, or 0. On `channel` its process hears of its grant.
local WAITER = '^([xs]):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):([^:]*):(.*)$'
local function waiter_of(mode, limit, ttl, delay, tokens, beat, heard, passed, channel, label)
  return mode .. ':' .. limit .. ':' .. ttl .. ':' .. delay .. ':' .. tokens .. ':' .. beat .. ':' ..
    heard .. ':' .. passed .. ':' .. channel .. ':' .. label
end

-- Turns the answer of TIME into µs, as text.
local function micros(time)
  return time[1] .. string.sub('00000' .. time[2], -6)
end

-- The fence rule. Tokens follow the clock, so a server that lost its data still gives out larger tokens
-- than before. A fence that is ahead of the clock is kept until the clock has caught up.
-- Gives the first of `count` new tokens as text, or nil and the error.
local function take_tokens(now, fence, count, idle)
  local top = count == '1' and now or string.format('%.0f', now + count - 1)
  local last = redis.pcall('SET', fence, top, 'PX', idle, 'GET')
  if not last then return now end
  if type(last) ~= 'string' then return nil, last end
  last = tonumber(last)
  if not last then return nil, { err = 'ERR the fence is no number' } end
  if last < tonumber(now) then return now end
  local ahead = math.ceil((last + 1 + count - now) / 1000)
  local kept = redis.pcall('SET', fence, string.format('%.0f', last + count), 'PX',
    string.format('%.0f', idle + ahead))
  if kept.err then return nil, kept end
  return string.format('%.0f', last + 1)
end

-- The server's time, the same for all operations of a call. It is read when the first one needs it.
local stamp
local answers, count, a, decide = {}, 0, 2, nil
-- By key: what keeps the first waiter out, once an operation of this call has found it. Later
-- heartbeats and enqueues of the call need not look again.
local blocked = {}
-- By key: the queues whose expiry this call has already extended. The second part creates the
-- table.
local prolonged
