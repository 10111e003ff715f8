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
-- part, in this file, has what happens nearly always: exclusive claims without lock-delay of programs
-- that listen. It is written without functions, which a script would make anew at every call. Where it
-- finds no answer, or an error, the operation of the same name decides, in the second part, which is
-- made only when it is needed. Some answers of the first part are short:
--   acquire, enqueue  the token: granted with the tokens and the ttl that were asked for
--   renew, release    1
-- The record of an exclusive grant begins with hf:x:<id>:<lock-delay>:<state>:<ttl>: so that one
-- comparison tells a plain grant of this holder from everything else. The state is 0 as long as
-- nobody can be waiting, 2 as soon as somebody may be, 1 when it was revoked.

local CLAIM_WINDOW, WAITER_LIFE, HEARTBEAT = 3000, 10000, 1000
local call, ARGV, sub, match, type = redis.pcall, ARGV, string.sub, string.match, type
local stride = tonumber(ARGV[4])
-- On a Cluster PUBLISH counts only those who listen at this node, and tells everybody everywhere.
local PUBLISH, COUNT = 'PUBLISH', 'NUMSUB'
if stride > 1 then PUBLISH, COUNT = 'SPUBLISH', 'SHARDNUMSUB' end
-- The server's time in µs, the same for all operations of a call.
local stamp
local answers, count, a, decide = {}, 0, 5, nil

for i = 1, #KEYS, stride do
  local key, name, id = KEYS[i], ARGV[a], ARGV[a + 1]
  local answer, size = nil, 2

  if name == 'release' then
    local value, plain = call('GET', key), 'hf:x:' .. id .. ':0:'
    if ARGV[a + 2] == '0' and type(value) == 'string' and sub(value, 1, #plain) == plain then
      local state = sub(value, #plain + 1, #plain + 1)
      if state == '0' then
        if call('DEL', key) == 1 then answer = 1 end
      elseif state == '2' then
        -- The first in line, if it lives and somebody listens for it, is the next holder.
        local tag = '{' .. key .. '}'
        local head = call('ZRANGE', tag .. ':queue', 0, 0)[1]
        local record = head and call('HGET', tag .. ':waiters', head)
        local ttl, delay, tokens, beat, heard, channel, label
        if type(record) == 'string' then
          ttl, delay, tokens, beat, heard, channel, label =
            match(record, '^x:0:(%d+):(%d+):(%d+):(%d+):(%d+):0:([^:]*):(.*)$')
        end
        if ttl and not stamp then
          local time = call('TIME')
          stamp = time[1] .. sub('00000' .. time[2], -6)
        end
        if ttl and sub(stamp, 1, -4) - heard <= WAITER_LIFE and
          (call('PUBSUB', COUNT, channel)[2] or 0) > 0 then
          local fence, top = tag .. ':fence', stamp
          if tokens ~= '1' then top = string.format('%.0f', stamp + tokens - 1) end
          local last = call('SET', fence, top, 'PX', ARGV[1], 'GET')
          if not last or (type(last) == 'string' and #last == #stamp and last < stamp) then
            local life = math.min(ttl, CLAIM_WINDOW)
            -- The grant first: a message about one that could then not be written makes two holders.
            if call('SET', key, 'hf:x:' .. head .. ':' .. delay .. ':2:' .. ttl .. ':' .. stamp ..
              ':' .. tokens .. ':' .. label, 'PX', life + delay).ok then
              local told = call(PUBLISH, channel, head .. ' ' .. beat .. ' ' .. stamp .. ' ' ..
                tokens .. ' ' .. life)
              if type(told) == 'number' then
                call('ZREM', tag .. ':queue', head)
                call('HDEL', tag .. ':waiters', head)
                answer = 1
              else
                -- Without the right to publish it stays as it was, and the operation knows better.
                call('SET', key, value, 'PX', CLAIM_WINDOW)
              end
            end
          elseif type(last) == 'string' then
            call('SET', fence, last, 'PX', ARGV[1])
          end
        end
      end
    end

  elseif name == 'enqueue' or name == 'acquire' then
    size = 6
    local tag, ttl, delay, tokens = '{' .. key .. '}', ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]
    local queue, gone, present = tag .. ':queue', tag .. ':gone:' .. id, 1
    if ARGV[a + 2] == 'x' then present = call('EXISTS', key, queue, gone) end
    if present == 0 and tokens == '1' then
      if not stamp then
        local time = call('TIME')
        stamp = time[1] .. sub('00000' .. time[2], -6)
      end
      local fence = tag .. ':fence'
      local last = call('SET', fence, stamp, 'PX', ARGV[1], 'GET')
      if not last or (type(last) == 'string' and #last == #stamp and last < stamp) then
        if call('SET', key, 'hf:x:' .. id .. ':' .. delay .. ':0:' .. ttl .. ':' .. stamp .. ':1:' ..
          ARGV[a + 6], 'PX', delay == '0' and ttl or ttl + delay).ok then
          answer = stamp
        end
      elseif type(last) == 'string' then
        -- It has run ahead of the clock: as it was, and the operation goes on from there.
        call('SET', fence, last, 'PX', ARGV[1])
      end
    elseif name == 'enqueue' and ARGV[a + 2] == 'x' and present ~= 0 then
      -- Behind an exclusive grant nobody else fits, so the line need not be looked at.
      local value, holder, state, token, label = call('GET', key), nil, nil, nil, nil
      if type(value) == 'string' and call('EXISTS', gone) == 0 then
        holder, state, token, label = match(value, '^hf:x:(%x+):0:([02]):%d+:(%d+):%d+:(.*)$')
      end
      local left = holder and holder ~= id and call('PTTL', key) or 0
      if type(left) == 'number' and left > 0 then
        local last = call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2]
        if call('ZADD', queue, 'NX', (last or 0) + 1, id) == 1 then
          if not stamp then
            local time = call('TIME')
            stamp = time[1] .. sub('00000' .. time[2], -6)
          end
          call('HSET', tag .. ':waiters', id, 'x:0:' .. ttl .. ':' .. delay .. ':' .. tokens ..
            ':0:' .. sub(stamp, 1, -4) .. ':0:' .. ARGV[2] .. ':' .. ARGV[a + 6])
          -- Who was in line already keeps it alive by heartbeats, as this one will.
          if not last then
            call('PEXPIRE', queue, WAITER_LIFE * 2)
            call('PEXPIRE', tag .. ':waiters', WAITER_LIFE * 2)
          end
          if state == '0' then
            call('SET', key, 'hf:x:' .. holder .. ':0:2' .. sub(value, #holder + 10), 'KEEPTTL')
          end
          local position = call('ZRANK', queue, id)
          local soon = position == 0 and math.min(HEARTBEAT, left) or HEARTBEAT
          answer = { 'queued', position, soon, { { 'x', token, label, left, 0 } } }
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
