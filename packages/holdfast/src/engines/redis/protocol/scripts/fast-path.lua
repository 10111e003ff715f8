-- The most frequent operations: exclusive claims without lock-delay whose process listens, and their
-- renewals and releases. Where this part finds no answer, or meets an error, the operation of the same
-- name decides in the second part. The terms share one argument, because each argument costs the client
-- and the server time.
-- ARGV  +<id><ttl>:<beat>:<tokens>:<label>  enqueue, and the same with ? acquire, whose beat is 0
--       =<id><ttl>:<index>:<order>          renew
--       -<id>                               release
--       renew-many  1 ttl  2 index  3 order  4 grant ids of 32 characters each, one after the other
-- Gives + and ?     the token: granted as requested | q:position:nextMs:leftMs:token:label: queued;
--                   leftMs, token and label are those of the exclusive holder
--       =           1: renewed as requested
--       -           1: released | the message that would be pushed to the caller, where the next holder
--                   is its own waiter: the answer to one claim's release may carry another claim's grant
--       renew-many  1: all were renewed | a list of pairs, for the grants that were not simply renewed:
--                   the number of the grant, from 0, and its answer to renew. The others were renewed

-- pcall, so that nothing here raises an error.
local ask = redis.pcall

local i = 1
while i <= #KEYS do
  local key, name = KEYS[i], ARGV[a]
  local mark, id, terms = sub(name, 1, 1), nil, nil
  local answer, size, span, rest = nil, 0, STRIDE, nil
  if name ~= 'heartbeat' and name ~= 'enqueue' then blocked[key] = nil end

  if mark == '-' then
    id = sub(name, 2)
    local value, holder, delay, state = ask('GET', key), nil, nil, nil
    if type(value) == 'string' then holder, delay, state = match(value, HEAD) end
    if holder == id and delay == '0' and state == '0' then
      if ask('DEL', key) == 1 then answer = 1 end
    elseif holder == id and delay == '0' and state == '2' then
      -- The first waiter is the next holder, if it is alive and its process listens. A waiter of
      -- the caller hears of it by the answer to this call, and is certainly alive: the caller is.
      local tag = '{' .. key .. '}'
      local first = ask('ZRANGE', tag .. ':queue', 0, 0)[1]
      local record = first and ask('HGET', tag .. ':waiters', first)
      local mode, ttl, after, tokens, beat, heard, passed, channel, label, _
      if type(record) == 'string' then
        mode, _, ttl, after, tokens, beat, heard, passed, channel, label = match(record, WAITER)
      end
      stamp = stamp or micros(ask('TIME'))
      local silent = mode == 'x' and passed == '0' and sub(stamp, 1, -4) - heard
      local own = channel == ARGV[1]
      if silent and (own and silent <= WAITER_LIFE or
        silent <= STILL_THERE and (ask('PUBSUB', COUNT, channel)[2] or 0) > 0) then
        local token, life = take_tokens(stamp, tag .. ':fence', tokens, IDLE), math.min(ttl, CLAIM_WINDOW)
        -- The grant is written first: a message about a grant that then cannot be written makes two
        -- holders.
        if token and ask('SET', key, record_of(first, after, '2', ttl, '0', '0', token .. ':' ..
          tokens .. ':' .. label), 'PX', life + after).ok then
          local message = first .. ' ' .. beat .. ' ' .. token .. ' ' .. tokens .. ' ' .. life
          if own or type(ask(PUBLISH, channel, message)) == 'number' then
            ask('ZREM', tag .. ':queue', first)
            ask('HDEL', tag .. ':waiters', first)
            -- The queue may end here and begin again in this call: then it needs a new expiry.
            if prolonged then prolonged[key] = nil end
            answer = own and message or 1
          else
            -- This user may not publish. The old grant is put back, and the second part decides.
            ask('SET', key, value, 'PX', CLAIM_WINDOW)
          end
        end
      end
    end

  elseif mark == '+' or mark == '?' then
    id, terms = sub(name, 2, 33), sub(name, 34)
    local tag = '{' .. key .. '}'
    local gone = tag .. ':gone'
    -- One command asks for three keys. Tombstones are named three times: they count as 3, more than
    -- the two other keys together, so the sum says which keys exist.
    local present = ask('EXISTS', key, tag .. ':queue', gone, gone, gone)
    if type(present) == 'number' and present > 2 and not ask('ZSCORE', gone, id) then
      present = present - 3
    end
    local ttl, beat, tokens, label = match(terms, '^(%d+):(%d+):(%d+):(.*)$')
    if present == 0 then
      stamp = stamp or micros(ask('TIME'))
      local token = take_tokens(stamp, tag .. ':fence', tokens, IDLE)
      if token and ask('SET', key, record_of(id, '0', '0', ttl, '0', '0', token .. ':' .. tokens ..
        ':' .. label), 'PX', ttl).ok then answer = token end
    elseif (present == 1 or present == 2) and mark == '+' then
      -- Nobody fits beside an exclusive grant, so nobody in the queue can be promoted now.
      local value, queue, waiters = ask('GET', key), tag .. ':queue', tag .. ':waiters'
      local holder, delay, state, life, index, order, tail
      if type(value) == 'string' then
        holder, delay, state, life, index, order, tail = match(value, RECORD)
      end
      local token, many, whose = match(tail or '', REST)
      local plain = token and delay == '0' and (state == '0' or state == '2') and holder ~= id
      local left = plain and ask('PTTL', key) or 0
      if type(left) == 'number' and left > 0 then
        local last = 0
        if present == 2 then last = ask('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2] end
        if last and ask('ZADD', queue, 'NX', last + 1, id) == 1 then
          stamp = stamp or micros(ask('TIME'))
          local noted = ask('HSET', waiters, id, waiter_of('x', '0', ttl, '0', tokens, beat,
            sub(stamp, 1, -4), '0', ARGV[1], label))
          local position, soon, kept = 0, math.min(HEARTBEAT, left), 0
          if present == 2 then
            position, soon, kept = ask('ZRANK', queue, id), HEARTBEAT, ask('PTTL', queue)
          end
          -- Live waiters keep the queue alive by their heartbeats. A queue of dead waiters may be
          -- about to expire.
          if type(kept) ~= 'number' or kept < WAITER_LIFE then
            ask('PEXPIRE', queue, WAITER_LIFE * 2)
            ask('PEXPIRE', waiters, WAITER_LIFE * 2)
          end
          if state == '0' then
            ask('SET', key, record_of(holder, delay, '2', life, index, order, tail), 'KEEPTTL')
          end
          if index ~= '0' then token = string.format('%.0f', token + index) end
          if type(noted) ~= 'number' then
            ask('ZREM', queue, id)
          elseif type(position) == 'number' then
            answer = 'q:' .. position .. ':' .. soon .. ':' .. left .. ':' .. token .. ':' .. whose
          end
        end
      end
    end

  elseif mark == '=' or name == 'renew-many' then
    local ttl, index, order, ids, last
    if mark == '=' then
      id, terms, last = sub(name, 2, 33), sub(name, 34), 0
      ttl, index, order = match(terms, '^(%d+):(%d+):(%d+)$')
      ids = id
    else
      ttl, index, order, ids = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
      size, span = 4, #ids / 32
      last = span - 1
    end
    for j = 0, last do
      local one, renewed = KEYS[i + j], false
      local value = ask('GET', one)
      if type(value) == 'string' then
        local holder, delay, state, _, used, before, tail = match(value, RECORD)
        if holder == sub(ids, j * 32 + 1, j * 32 + 32) and delay == '0' and
          (state == '0' or state == '2') and order - before >= 0 and index - used >= 0 then
          local record = record_of(holder, '0', state, ttl, index, order, tail)
          -- A server that is out of memory refuses SET as the first write of a script. After a
          -- write that needs no memory, such as PEXPIRE, it allows more. This record is about
          -- as large as the old one.
          renewed = ask('SET', one, record, 'PX', ttl).ok or
            ask('PEXPIRE', one, ttl) == 1 and ask('SET', one, record, 'KEEPTTL').ok
        end
      end
      if not renewed then
        rest = rest or {}
        rest[#rest + 1] = j
      end
    end
    if not rest then answer = 1 end
    if mark == '=' then rest = nil end

  elseif name == 'renew' then
    size = 5
  elseif name == 'withdraw' then
    size = 1
  elseif name == 'acquire' then
    size = 6
  elseif name == 'enqueue' then
    size = 7
  elseif name == 'revoke' then
    size = 3
  elseif name ~= 'inspect' and name ~= 'promote' then
    size = 2
  end

  -- The second part begins here and ends in main.lua.
  if not answer and not decide then
decide = (function()
local operations = {}
