-- What happens nearly always: exclusive claims without lock-delay of programs that listen, and their
-- renewals and releases. Where this part finds no answer, or an error, the operation of the same name
-- decides in the second part. Its arguments are few: each costs both sides.
-- ARGV  +<id><ttl>:<beat>:<tokens>:<label>  enqueue, and the same with ? acquire, whose beat is 0
--       =<id><ttl>:<index>:<order>          renew
--       -<id>                               release
--       renew-many  1 ttl  2 index  3 order  4 grant ids of 32 characters each, one after the other
-- Gives + and ?     the token: granted, as it was asked for | q:position:nextMs:leftMs:token:label of the
--                   exclusive holder: in line
--       =           1: renewed, as it was asked for
--       -           1: released | the message that would be pushed to the caller, whose waiter is the
--                   next holder: so the answer to one claim's release may carry the grant of another
--       renew-many  1: all were renewed | which of them, from 0, and its answer to renew, and so on for
--                   those that are not plain; the others were renewed

-- Nothing here raises.
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
      -- The first in line, if it lives and somebody listens for it, is the next holder. One of the
      -- caller's own is told by the answer, and lives as surely as the caller does.
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
        -- The grant first: a message about one that could then not be written makes two holders.
        if token and ask('SET', key, record_of(first, after, '2', ttl, '0', '0', token .. ':' ..
          tokens .. ':' .. label), 'PX', life + after).ok then
          local message = first .. ' ' .. beat .. ' ' .. token .. ' ' .. tokens .. ' ' .. life
          if own or type(ask(PUBLISH, channel, message)) == 'number' then
            ask('ZREM', tag .. ':queue', first)
            ask('HDEL', tag .. ':waiters', first)
            -- A line that ends here and begins anew in this call must be kept alive anew.
            if prolonged then prolonged[key] = nil end
            answer = own and message or 1
          else
            -- Without the right to publish it stays as it was, and the operation knows better.
            ask('SET', key, value, 'PX', CLAIM_WINDOW)
          end
        end
      end
    end

  elseif mark == '+' or mark == '?' then
    id, terms = sub(name, 2, 33), sub(name, 34)
    local tag = '{' .. key .. '}'
    local gone = tag .. ':gone'
    -- One question for three keys: tombstones weigh more than the two others together.
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
      -- Behind an exclusive grant nobody else fits, so the line need not be looked at.
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
          -- Who lives in line keeps it alive by heartbeats. One of the dead may be about to be forgotten.
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
          -- Out of memory, a script may write once it has changed something without taking any. This
          -- record is as large as the one before it.
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

  -- Everything from here to the last file is the second part.
  if not answer and not decide then
decide = (function()
local operations = {}
