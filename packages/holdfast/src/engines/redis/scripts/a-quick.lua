-- Carries out operations one after the other, each on the keys of its own resource. One that fails
-- does not keep the others from their answers.
-- KEYS  six for each operation:
--       1 holder    string: the exclusive grant, or the marker of shared ones. The only truth: when
--                   it is gone, everything that was granted is. Others may SET NX it, and exclude us
--       2 queue     sorted set of grant ids, by arrival
--       3 waiters   hash, grant id -> record
--       4 shared    hash, grant id -> record
--       5 fence     string: the last token given out
--       6 tombstone string: an acquire of this grant id is refused
-- ARGV  for each operation its name, the number of its arguments, and these
-- Gives an answer for each operation; { 'error', message } where it failed
--
-- The files of this folder, in their order, are one program. This one has what happens nearly always:
-- nobody else holds the resource, and nobody waits for it. Each function gives nil where that is not
-- so, and then the operation of the same name decides, which is defined only when it is needed.
-- The record of an exclusive grant begins with hf:x:<id>:<lock-delay>:<revoked>:<ttl>: so that one
-- comparison tells a plain grant of this holder from everything else.

local call = redis.call
local time = call('TIME')
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local at = math.floor(us / 1000)

local function whole(number)
  return string.format('%.0f', number)
end

-- Tokens rise with the clock, so that a server that lost its memory goes on above what it gave out.
local function take_tokens(fence, count, idle)
  local first = us
  local last = call('SET', fence, whole(first + count - 1), 'PX', idle, 'GET')
  if last and tonumber(last) >= first then
    first = tonumber(last) + 1
    call('SET', fence, whole(first + count - 1), 'PX', idle)
  end
  return first
end

local quick = {}

function quick.acquire(k, a)
  if ARGV[a + 2] ~= 'x' then return nil end
  local key = KEYS[k]
  if call('EXISTS', key, KEYS[k + 1], KEYS[k + 5]) ~= 0 then return nil end
  local ttl, delay, tokens = ARGV[a + 4], ARGV[a + 5], ARGV[a + 6]
  local token = whole(take_tokens(KEYS[k + 4], tonumber(tokens), ARGV[a + 8]))
  local value = 'hf:x:' .. ARGV[a + 1] .. ':' .. delay .. ':0:' .. ttl .. ':' .. token .. ':' ..
    tokens .. ':' .. ARGV[a + 7]
  call('SET', key, value, 'PX', ttl + delay)
  return { 'granted', token, tonumber(tokens), tonumber(ttl) }
end

function quick.renew(k, a)
  local value = call('GET', KEYS[k])
  if not value then return nil end
  local plain = 'hf:x:' .. ARGV[a + 1] .. ':0:0:' .. ARGV[a + 2] .. ':'
  if string.sub(value, 1, #plain) ~= plain then return nil end
  call('PEXPIRE', KEYS[k], ARGV[a + 2])
  return { 'renewed' }
end

function quick.release(k, a)
  if ARGV[a + 2] ~= '0' then return nil end
  local value = call('GET', KEYS[k])
  if not value then return nil end
  local plain = 'hf:x:' .. ARGV[a + 1] .. ':0:'
  if string.sub(value, 1, #plain) ~= plain or call('EXISTS', KEYS[k + 1]) ~= 0 then return nil end
  call('DEL', KEYS[k])
  return { 'released' }
end

-- Everything from here to the last file is the body of this function.
local function define()
local operations = {}
