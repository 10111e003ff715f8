-- Carries out operations one after the other, each on the keys of its own resource. One that fails
-- does not keep the others from their answers.
-- KEYS  for each operation the first key of its resource; the others are named after it, in its slot.
--       On a Cluster these follow it, so that the server refuses while it has only some of them
-- ARGV  the caller's channel, where its waiters hear of their grants; then for each operation its name
--       and its arguments, as its header gives them. Those that happen nearly always are written in one
--       argument: a mark, the grant id of 32 characters, and what else there is. One, keep, is about
--       many resources, and has the first key of each; it is not for a Cluster
-- Gives an answer for each operation, or the answer where there is one alone; { 'error', message }
-- where it failed
--
-- What is the same at every call stands before this text, in a line that the commander writes:
--   STRIDE          how many keys each operation has: 1, or 8 on a Cluster
--   PUBLISH, COUNT  the commands to tell a channel and to count who listens. On a Cluster PUBLISH
--                   counts only those who listen at this node, and tells everybody everywhere
--   IDLE            ms after which an idle fence is forgotten
--
-- The files of this folder, in their order, are one program: a loop over the operations. Its first
-- part, in this file, has what happens nearly always: exclusive claims without lock-delay of programs
-- that listen. It is written without functions, which a script would make anew at every call, and
-- with few arguments, each of which costs both sides. Where it finds no answer, or an error, the
-- operation of the same name decides, in the second part, which is made only when it is needed.
-- Its answers are short:
--   + take, ? try  the token: granted, as it was asked for | q:position:nextMs:leftMs:token:label of
--                the exclusive holder: in line
--   = renew      1: renewed, as it was asked for
--   keep         1: all were renewed | which of them, from 0, and its answer to renew, and so on for
--                those that are not plain; the others were renewed
--   - give       1 | the message that would be pushed to the caller, whose waiter is the next holder
-- The record of an exclusive grant is hf:x:<id>:<lock-delay>:<state>:<ttl>:<index>:<order>:<token>:
-- <tokens>:<label>, so that one comparison tells a plain grant of this holder from everything else.
-- The state is 0 as long as nobody can be waiting, 2 as soon as somebody may be; 1 when the grant was
-- revoked, 3 when its holder has left it behind, 4 when both. The index says which of its tokens is in
-- use. The order is that of the last renewal, also where nothing but the expiry changed: a renewal for
-- another ttl that was sent before it may still arrive.

local CLAIM_WINDOW, WAITER_LIFE, STILL_THERE, HEARTBEAT = 3000, 10000, 2000, 1000
local call, ARGV, sub, match, type = redis.pcall, ARGV, string.sub, string.match, type
-- The server's time in µs, the same for all operations of a call.
local stamp
local answers, count, a, decide = {}, 0, 2, nil
-- By key, what keeps the first in line out, as one operation has found it: heartbeats and those who
-- join the line need not look again.
local blocked = {}

local i = 1
while i <= #KEYS do
  local key, name = KEYS[i], ARGV[a]
  local mark, id, terms = sub(name, 1, 1), nil, nil
  local answer, size, span, rest = nil, 0, STRIDE, nil
  if name ~= 'heartbeat' and name ~= 'enqueue' then blocked[key] = nil end

  -- -id
  if mark == '-' then
    id = sub(name, 2)
    local value, plain = call('GET', key), 'hf:x:' .. id .. ':0:'
    if type(value) == 'string' and sub(value, 1, #plain) == plain then
      local state = sub(value, #plain + 1, #plain + 1)
      if state == '0' then
        if call('DEL', key) == 1 then answer = 1 end
      elseif state == '2' then
        -- The first in line, if it lives and somebody listens for it, is the next holder. One of the
        -- caller's own is told by the answer, and lives as surely as the caller does.
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
        local silent = ttl and sub(stamp, 1, -4) - heard
        if ttl and (channel == ARGV[1] and silent <= WAITER_LIFE or
          silent <= STILL_THERE and (call('PUBSUB', COUNT, channel)[2] or 0) > 0) then
          local fence, top = tag .. ':fence', stamp
          if tokens ~= '1' then top = string.format('%.0f', stamp + tokens - 1) end
          local last = call('SET', fence, top, 'PX', IDLE, 'GET')
          if not last or (type(last) == 'string' and #last == #stamp and last < stamp) then
            local life = math.min(ttl, CLAIM_WINDOW)
            -- The grant first: a message about one that could then not be written makes two holders.
            if call('SET', key, 'hf:x:' .. head .. ':' .. delay .. ':2:' .. ttl .. ':0:0:' .. stamp ..
              ':' .. tokens .. ':' .. label, 'PX', life + delay).ok then
              local message = head .. ' ' .. beat .. ' ' .. stamp .. ' ' .. tokens .. ' ' .. life
              local own = channel == ARGV[1]
              if own or type(call(PUBLISH, channel, message)) == 'number' then
                call('ZREM', tag .. ':queue', head)
                call('HDEL', tag .. ':waiters', head)
                answer = own and message or 1
              else
                -- Without the right to publish it stays as it was, and the operation knows better.
                call('SET', key, value, 'PX', CLAIM_WINDOW)
              end
            end
          elseif type(last) == 'string' then
            -- As it was, until the clock has caught up: perhaps nobody can be let in.
            local ahead = math.max(0, (tonumber(last) or 0) - stamp)
            call('SET', fence, last, 'PX', string.format('%.0f', IDLE + math.ceil(ahead / 1000)))
          end
        end
      end
    end

  -- +idttl:beat:tokens:label, and the same with ? by one who does not wait, and has no heartbeats
  elseif mark == '+' or mark == '?' then
    id, terms = sub(name, 2, 33), sub(name, 34)
    local ttl, beat, tail = match(terms, '^(%d+):(%d+):(.*)$')
    local queue, gone = '{' .. key .. '}:queue', '{' .. key .. '}:gone'
    -- One question for three keys: tombstones weigh more than the two others together.
    local present = call('EXISTS', key, queue, gone, gone, gone)
    if type(present) == 'number' and present > 2 and not call('ZSCORE', gone, id) then
      present = present - 3
    end
    if present == 0 then
      if not stamp then
        local time = call('TIME')
        stamp = time[1] .. sub('00000' .. time[2], -6)
      end
      local fence, top = '{' .. key .. '}:fence', stamp
      if sub(tail, 1, 2) ~= '1:' then
        top = string.format('%.0f', stamp + match(tail, '^%d+') - 1)
      end
      local last = call('SET', fence, top, 'PX', IDLE, 'GET')
      if not last or (type(last) == 'string' and #last == #stamp and last < stamp) then
        if call('SET', key, 'hf:x:' .. id .. ':0:0:' .. ttl .. ':0:0:' .. stamp .. ':' .. tail,
          'PX', ttl).ok then
          answer = stamp
        end
      elseif type(last) == 'string' then
        -- It has run ahead of the clock: as it was, and the operation goes on from there.
        call('SET', fence, last, 'PX', IDLE)
      end
    elseif (present == 1 or present == 2) and mark == '+' then
      -- Behind an exclusive grant nobody else fits, so the line need not be looked at.
      local value, holder, state, index, token, label = call('GET', key), nil, nil, nil, nil, nil
      if type(value) == 'string' then
        holder, state, index, token, label =
          match(value, '^hf:x:(%x+):0:([02]):%d+:(%d+):%d+:(%d+):%d+:(.*)$')
      end
      local left = holder and holder ~= id and call('PTTL', key) or 0
      if type(left) == 'number' and left > 0 then
        local waiters, last = '{' .. key .. '}:waiters', 0
        if present == 2 then last = call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2] end
        if last and call('ZADD', queue, 'NX', last + 1, id) == 1 then
          if not stamp then
            local time = call('TIME')
            stamp = time[1] .. sub('00000' .. time[2], -6)
          end
          local tokens, own = match(tail, '^(%d+):(.*)$')
          local noted = call('HSET', waiters, id, 'x:0:' .. ttl .. ':0:' .. tokens .. ':' .. beat ..
            ':' .. sub(stamp, 1, -4) .. ':0:' .. ARGV[1] .. ':' .. own)
          local position, soon, kept = 0, math.min(HEARTBEAT, left), 0
          if present == 2 then
            position, soon, kept = call('ZRANK', queue, id), HEARTBEAT, call('PTTL', queue)
          end
          -- Who lives in line keeps it alive by heartbeats. One of the dead may be about to be forgotten.
          if type(kept) ~= 'number' or kept < WAITER_LIFE then
            call('PEXPIRE', queue, WAITER_LIFE * 2)
            call('PEXPIRE', waiters, WAITER_LIFE * 2)
          end
          if state == '0' then
            call('SET', key, 'hf:x:' .. holder .. ':0:2' .. sub(value, #holder + 10), 'KEEPTTL')
          end
          if index ~= '0' then token = string.format('%.0f', token + index) end
          if type(noted) ~= 'number' then
            call('ZREM', queue, id)
          elseif type(position) == 'number' then
            answer = 'q:' .. position .. ':' .. soon .. ':' .. left .. ':' .. token .. ':' .. label
          end
        end
      end
    end

  -- =idttl:index:order
  elseif mark == '=' then
    id, terms = sub(name, 2, 33), sub(name, 34)
    local ttl, index, order = match(terms, '^(%d+):(%d+):(%d+)$')
    local value, plain = call('GET', key), 'hf:x:' .. id .. ':0:'
    if type(value) == 'string' and sub(value, 1, #plain) == plain then
      local state, used, last, tail = match(value, '^([02]):%d+:(%d+):(%d+)(:.*)$', #plain + 1)
      if state and order - last >= 0 and index - used >= 0 then
        local record = plain .. state .. ':' .. ttl .. ':' .. index .. ':' .. order .. tail
        -- Out of memory, a script may write once it has changed something without taking any. This
        -- record is as large as the one before it.
        if call('SET', key, record, 'PX', ttl).ok or
          call('PEXPIRE', key, ttl) == 1 and call('SET', key, record, 'KEEPTTL').ok then
          answer = 1
        end
      end
    end

  -- args  1 ttl  2 index  3 order  4 grant ids of 32 characters each, one after the other
  elseif name == 'keep' then
    size = 4
    local ttl, index, order, ids = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
    local changed, last = ':' .. ttl .. ':' .. index .. ':' .. order, #ids / 32 - 1
    for j = 0, last do
      local one, kept = KEYS[i + j], false
      local value, plain = call('GET', one), 'hf:x:' .. sub(ids, j * 32 + 1, j * 32 + 32) .. ':0:'
      if type(value) == 'string' and sub(value, 1, #plain) == plain then
        local state, used, before, tail = match(value, '^([02]):%d+:(%d+):(%d+)(:.*)$', #plain + 1)
        if state and order - before >= 0 and index - used >= 0 then
          local record = plain .. state .. changed .. tail
          kept = call('SET', one, record, 'PX', ttl).ok or
            call('PEXPIRE', one, ttl) == 1 and call('SET', one, record, 'KEEPTTL').ok
        end
      end
      if not kept then
        rest = rest or {}
        rest[#rest + 1] = j
      end
    end
    span = last + 1
    if not rest then answer = 1 end

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
