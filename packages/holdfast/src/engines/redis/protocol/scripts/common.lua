-- Carries out operations one after the other, each on the keys of its own resource. One that fails
-- does not keep the others from their answers.
-- KEYS  for each operation the first key of its resource; the others are named after it, in its slot.
--       On a Cluster these follow it, so that the server refuses while it has only some of them
-- ARGV  the caller's channel, where its waiters hear of their grants; then for each operation its name
--       and its arguments, as its header gives them. Those that happen nearly always are written in one
--       argument: a mark, the grant id of 32 characters, and what else there is. One, renew-many, is
--       about many resources, and has the first key of each; it is not for a Cluster
-- Gives an answer for each operation, or the answer where there is one alone; { 'error', message }
-- where it failed
--
-- What is the same at every call stands before this text, in a line that program.ts writes:
--   STRIDE          how many keys each operation has: 1, or 8 on a Cluster
--   PUBLISH, COUNT  the commands to tell a channel and to count who listens. On a Cluster PUBLISH
--                   counts only those who listen at this node, and tells everybody everywhere
--   IDLE            ms after which an idle fence is forgotten
--
-- The files of this folder are one program, in the order that program.ts gives them: a loop over the
-- operations. Redis runs the whole text at every call, so each function in it is made anew at every
-- call. This file has what both parts of the loop need, in functions that use no local of the text: each
-- that they used would cost every call as much as a function. The first part, fast-path.lua, decides what
-- happens nearly always. The second part, all other files, can decide everything; its functions are
-- made only when an operation needs them.

local ARGV, sub, match, type = ARGV, string.sub, string.match, type

-- How long in ms a pushed grant lives until its first renewal, how long a waiter is remembered without a
-- heartbeat, how long it counts as there, and how often it sends one.
local CLAIM_WINDOW, WAITER_LIFE, STILL_THERE, HEARTBEAT = 3000, 10000, 2000, 1000

-- The record of an exclusive grant: hf:x:<id>:<lock-delay>:<state>:<ttl>:<index>:<order>:<rest>, and the
-- rest is <token>:<tokens>:<label>. Only these definitions know that.
--   state  0 nobody can be waiting  2 somebody may be  1 revoked  3 its holder has left it behind
--          4 revoked and left behind
--   index  which of its tokens is in use
--   order  that of the last renewal, also where nothing but the expiry changed: a renewal for another
--          ttl that was sent before it may still arrive
local HEAD = '^hf:x:(%x+):(%d+):(%d):'
local RECORD = '^hf:x:(%x+):(%d+):(%d):(%d+):(%d+):(%d+):(.*)$'
local REST = '^(%d+):(%d+):(.*)$'
local function record_of(id, delay, state, ttl, index, order, rest)
  return 'hf:x:' .. id .. ':' .. delay .. ':' .. state .. ':' .. ttl .. ':' .. index .. ':' .. order ..
    ':' .. rest
end

-- The record of a waiter. `heard` is when it last showed that it is there, in ms, `passed` when it was
-- first passed over, or 0; `channel` is where its process hears of its grant.
local WAITER = '^([xs]):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):([^:]*):(.*)$'
local function waiter_of(mode, limit, ttl, delay, tokens, beat, heard, passed, channel, label)
  return mode .. ':' .. limit .. ':' .. ttl .. ':' .. delay .. ':' .. tokens .. ':' .. beat .. ':' ..
    heard .. ':' .. passed .. ':' .. channel .. ':' .. label
end

-- The server's time in µs as text, of what TIME gives.
local function micros(time)
  return time[1] .. string.sub('00000' .. time[2], -6)
end

-- The fence rule. Tokens rise with the clock, so that a server that lost its memory goes on above what
-- it gave out. A fence that has run ahead of the clock is kept until the clock has caught up.
-- Gives the first of so many tokens as text, or nil and the error.
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

-- The server's time, the same for all operations of a call; read when the first one needs it.
local stamp
local answers, count, a, decide = {}, 0, 2, nil
-- By key, what keeps the first in line out, as one operation has found it: heartbeats and those who
-- join the line need not look again.
local blocked = {}
-- By key, the lines that this call keeps alive already; made by the second part.
local prolonged
