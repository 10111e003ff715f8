-- Carries out operations one after the other, each on the keys of its own resource. One that fails
-- does not keep the others from their answers.
-- KEYS  for each operation the first key of its resource; the others are named after it, in its slot.
--       On a Cluster these follow it, so that the server refuses while it has only some of them
-- ARGV  1 ms after which an idle fence is forgotten  2 the caller's channel  3 the channel of changes
--       4 how many keys each operation has: 1, or 6 on a Cluster
--       then for each operation its name and its arguments, as its header gives them
-- Gives an answer for each operation; { 'error', message } where it failed
--
-- The files of this folder, in their order, are one program: a loop over the operations. Its first
-- part, in this file, has what happens nearly always: nobody else holds the resource, and nobody waits
-- for it. It is written without functions, which a script would make anew at every call. Where it finds
-- no answer, or an error, the operation of the same name decides, in the second part, which is made
-- only when it is needed. The answers of the first part are short:
--   acquire, enqueue  the token: granted with the tokens and the ttl that were asked for
--   renew, release    1
-- The record of an exclusive grant begins with hf:x:<id>:<lock-delay>:<state>:<ttl>: so that one
-- comparison tells a plain grant of this holder from everything else. The state is 0 as long as
-- nobody can be waiting, 2 as soon as somebody may be, 1 when it was revoked.

local call, ARGV, sub, type = redis.pcall, ARGV, string.sub, type
-- The server's time in µs, the same for all operations of a call.
local stamp
local answers, count, a, decide = {}, 0, 5, nil

for i = 1, #KEYS, tonumber(ARGV[4]) do
  local key, name, id = KEYS[i], ARGV[a], ARGV[a + 1]
  local answer, size = nil, 2

  if name == 'release' then
    if ARGV[a + 2] == '0' then
      local value, plain = call('GET', key), 'hf:x:' .. id .. ':0:0:'
      if type(value) == 'string' and sub(value, 1, #plain) == plain then
        if call('DEL', key) == 1 then answer = 1 end
      end
    end

  elseif name == 'enqueue' or name == 'acquire' then
    size = 6
    if ARGV[a + 2] == 'x' and ARGV[a + 5] == '1' then
      local tag = '{' .. key .. '}'
      if call('EXISTS', key, tag .. ':queue', tag .. ':gone:' .. id) == 0 then
        if not stamp then
          local time = call('TIME')
          stamp = time[1] .. sub('00000' .. time[2], -6)
        end
        local fence = tag .. ':fence'
        local last = call('SET', fence, stamp, 'PX', ARGV[1], 'GET')
        if not last or (type(last) == 'string' and #last == #stamp and last < stamp) then
          local ttl, delay = ARGV[a + 3], ARGV[a + 4]
          local value = 'hf:x:' .. id .. ':' .. delay .. ':0:' .. ttl .. ':' .. stamp .. ':1:' ..
            ARGV[a + 6]
          if call('SET', key, value, 'PX', delay == '0' and ttl or ttl + delay).ok then
            answer = stamp
          end
        elseif type(last) == 'string' then
          -- It has run ahead of the clock: as it was, and the operation goes on from there.
          call('SET', fence, last, 'PX', ARGV[1])
        end
      end
    end

  elseif name == 'renew' then
    local value, ttl = call('GET', key), ARGV[a + 2]
    local head, tail = 'hf:x:' .. id .. ':0:', ':' .. ttl .. ':'
    if type(value) == 'string' and sub(value, 1, #head) == head and
      sub(value, #head + 1, #head + 1) ~= '1' and
      sub(value, #head + 2, #head + 1 + #tail) == tail then
      if call('PEXPIRE', key, ttl) == 1 then answer = 1 end
    end

  elseif name == 'withdraw' then
    size = 1
  elseif name == 'inspect' then
    size = 0
  end

  -- Everything from here to the last file is the second part.
  if not answer and not decide then
decide = (function()
local operations = {}
