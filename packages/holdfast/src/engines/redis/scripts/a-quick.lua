-- Carries out operations one after the other, each on the keys of its own resource. One that fails
-- does not keep the others from their answers.
-- KEYS  for each operation the first key of its resource; the others are named after it, in its slot.
--       On a Cluster these follow it, so that the server refuses while it has only some of them
-- ARGV  1 ms after which an idle fence is forgotten  2 the caller's channel  3 the channel of changes
--       4 how many keys each operation has: 1, or 6 on a Cluster
--       then for each operation its name and as many arguments as COUNTS says
-- Gives an answer for each operation; { 'error', message } where it failed
--
-- The files of this folder, in their order, are one program. This one has what happens nearly always:
-- nobody else holds the resource, and nobody waits for it. Each function gives nil where that is not
-- so, and then the operation of the same name decides, which is defined only when it is needed.
-- The record of an exclusive grant begins with hf:x:<id>:<lock-delay>:<revoked>:<ttl>: so that one
-- comparison tells a plain grant of this holder from everything else.

local COUNTS = { acquire = 6, enqueue = 6, renew = 2, release = 2, heartbeat = 2, withdraw = 1,
  check = 2, revoke = 2, inspect = 0 }
local IDLE, STRIDE = tonumber(ARGV[1]), tonumber(ARGV[4])

local call = redis.call
local time = call('TIME')
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local at = math.floor(us / 1000)

local function whole(number)
  return string.format('%.0f', number)
end

-- Tokens rise with the clock, so that a server that lost its memory goes on above what it gave out.
-- A fence that has run ahead of the clock is kept until the clock has caught up.
local function take_tokens(fence, count)
  local first = us
  local last = call('SET', fence, whole(first + count - 1), 'PX', IDLE, 'GET')
  if last and tonumber(last) >= first then
    first = tonumber(last) + 1
    local ahead = math.ceil((first + count - us) / 1000)
    call('SET', fence, whole(first + count - 1), 'PX', whole(IDLE + ahead))
  end
  return first
end

local quick = {}

function quick.acquire(key, a)
  if ARGV[a + 2] ~= 'x' then return nil end
  local tag = '{' .. key .. '}'
  if call('EXISTS', key, tag .. ':queue', tag .. ':gone:' .. ARGV[a + 1]) ~= 0 then return nil end
  local ttl, delay, tokens = ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]
  local token = whole(take_tokens(tag .. ':fence', tonumber(tokens)))
  local value = 'hf:x:' .. ARGV[a + 1] .. ':' .. delay .. ':0:' .. ttl .. ':' .. token .. ':' ..
    tokens .. ':' .. ARGV[a + 6]
  call('SET', key, value, 'PX', ttl + delay)
  return { 'granted', token, tonumber(tokens), tonumber(ttl) }
end

quick.enqueue = quick.acquire

function quick.renew(key, a)
  local value = call('GET', key)
  if not value then return nil end
  local plain = 'hf:x:' .. ARGV[a + 1] .. ':0:0:' .. ARGV[a + 2] .. ':'
  if string.sub(value, 1, #plain) ~= plain then return nil end
  call('PEXPIRE', key, ARGV[a + 2])
  return { 'renewed' }
end

function quick.release(key, a)
  if ARGV[a + 2] ~= '0' then return nil end
  local value = call('GET', key)
  if not value then return nil end
  local plain = 'hf:x:' .. ARGV[a + 1] .. ':0:'
  if string.sub(value, 1, #plain) ~= plain then return nil end
  if call('EXISTS', '{' .. key .. '}:queue') ~= 0 then return nil end
  call('DEL', key)
  return { 'released' }
end

-- Everything from here to the last file is the body of this function.
local function define()
local operations = {}
