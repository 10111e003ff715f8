-- The queue of waiters, ordered by ticket. A ticket is the time at which the waiter began to wait, the
-- same on all nodes. The queue decides only who gives way, so losing it is safe. A waiter that is silent
-- for too long is passed over.

-- A claim is let in when this many waiters at the head do not conflict with it.
local MOST_LOOKED_AT = 16

local function leave_queue(key, id)
  call('ZREM', tagged(key, 'line'), id)
  call('HDEL', tagged(key, 'waits'), id)
end

-- arrival: how long this waiter takes to claim when it is called, in ms
local function enter_queue(key, id, mode, ticket, arrival)
  local queue, waits = tagged(key, 'line'), tagged(key, 'waits')
  call('ZADD', queue, whole(ticket), id)
  call('HSET', waits, id, whole(at + WANTS) .. ':' .. mode .. ':' .. arrival)
  call('PEXPIRE', queue, WANTS + SLACK)
  call('PEXPIRE', waits, WANTS + SLACK)
end

-- Finds the waiter that must be let in before this claim: the first one ahead that conflicts. Where
-- nobody holds the resource, that waiter is called; if it was called and did not claim in time, it is
-- passed over. With id '' and ticket 0, every waiter is ahead.
local function first_in_queue(key, id, mode, ticket, free)
  local queue, waits = tagged(key, 'line'), tagged(key, 'waits')
  local all = call('ZRANGE', queue, 0, MOST_LOOKED_AT - 1, 'WITHSCORES')
  local called = #all > 0 and call('HGET', waits, '') or ''
  local since, who = string.match(called, '^(%d+):(.*)$')
  for i = 1, #all, 2 do
    local one, rank = all[i], tonumber(all[i + 1])
    if one == id or (ticket > 0 and rank > ticket) then return nil end
    local ends, theirs, arrival = string.match(call('HGET', waits, one) or '', '^(%d+):(%a):(%d+)$')
    local late = free and who == one and at > tonumber(since) + tonumber(arrival or 0)
    if not ends or tonumber(ends) <= at or late then
      leave_queue(key, one)
    elseif mode == 'x' or theirs == 'x' then
      if free and who ~= one then
        call('HSET', waits, '', whole(at) .. ':' .. one)
        -- Shared waiters may all claim at once.
        redis.pcall('PUBLISH', CHANGES, theirs == 'x' and whole(rank) .. ' ' .. key or '0 ' .. key)
      end
      return one
    end
  end
end
