-- Carries out operations one after the other, each on the keys of its own resource. One that fails
-- does not keep the others from their answers.
-- KEYS  for each operation the first key of its resource; the others are named after it, in its slot.
--       On a Cluster these follow it, so that the server refuses while it has only some of them
-- ARGV  1 ms after which an idle fence is forgotten  2 the caller's channel  3 the channel of changes
--       4 how many keys each operation has: 1, or 6 on a Cluster
--       then for each operation its name and its arguments, as its header gives them
-- Gives an answer for each operation; { 'error', message } where it failed
--
-- The files of this folder, in their order, are one program. This one has what happens nearly always:
-- nobody else holds the resource, and nobody waits for it. Where that is not so, it gives nil, and the
-- operation of the same name decides, which is defined only when it is needed. Its answers are short:
--   acquire, enqueue  the token: granted with the tokens and the ttl that were asked for
--   renew, release    1
-- The record of an exclusive grant begins with hf:x:<id>:<lock-delay>:<state>:<ttl>: so that one
-- comparison tells a plain grant of this holder from everything else. The state is 0 as long as
-- nobody can be waiting, 2 as soon as somebody may be, 1 when it was revoked.

local call, ARGV, sub = redis.call, ARGV, string.sub

-- The server's time in µs, as text and as a number, and in ms. The same for all operations of a call.
local stamp, us, at

local function read_clock()
  local time = call('TIME')
  stamp = time[1] .. sub('00000' .. time[2], -6)
  us = tonumber(stamp)
  at = math.floor(us / 1000)
end

local function whole(number)
  return string.format('%.0f', number)
end

-- Tokens rise with the clock, so that a server that lost its memory goes on above what it gave out.
-- A fence that has run ahead of the clock is kept until the clock has caught up. Gives the first.
local function take_tokens(fence, count)
  local first = us
  local top = count == 1 and stamp or whole(us + count - 1)
  local last = call('SET', fence, top, 'PX', ARGV[1], 'GET')
  if last and tonumber(last) >= first then
    first = tonumber(last) + 1
    local ahead = math.ceil((first + count - us) / 1000)
    call('SET', fence, whole(first + count - 1), 'PX', whole(tonumber(ARGV[1]) + ahead))
    return whole(first)
  end
  return stamp
end

local function quick(name, key, a)
  local id = ARGV[a + 1]
  if name == 'release' then
    if ARGV[a + 2] ~= '0' then return nil end
    local value = call('GET', key)
    local plain = 'hf:x:' .. id .. ':0:0:'
    if not value or sub(value, 1, #plain) ~= plain then return nil end
    call('DEL', key)
    return 1
  end
  if name == 'renew' then
    local value, ttl = call('GET', key), ARGV[a + 2]
    local head, tail = 'hf:x:' .. id .. ':0:', ':' .. ttl .. ':'
    if not value or sub(value, 1, #head) ~= head or sub(value, #head + 1, #head + 1) == '1' or
      sub(value, #head + 2, #head + 1 + #tail) ~= tail then return nil end
    call('PEXPIRE', key, ttl)
    return 1
  end
  if (name ~= 'enqueue' and name ~= 'acquire') or ARGV[a + 2] ~= 'x' then return nil end
  local tag = '{' .. key .. '}'
  if call('EXISTS', key, tag .. ':queue', tag .. ':gone:' .. id) ~= 0 then return nil end
  local ttl, delay, tokens = ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]
  if not stamp then read_clock() end
  local token = take_tokens(tag .. ':fence', tonumber(tokens))
  local value = 'hf:x:' .. id .. ':' .. delay .. ':0:' .. ttl .. ':' .. token .. ':' .. tokens ..
    ':' .. ARGV[a + 6]
  call('SET', key, value, 'PX', delay == '0' and ttl or ttl + delay)
  return token
end

-- Everything from here to the last file is the body of this function.
local function define()
local operations = {}
if not stamp then read_clock() end
local STRIDE = tonumber(ARGV[4])
