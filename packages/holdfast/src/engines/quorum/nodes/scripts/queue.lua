-- Those who wait, in the order of their tickets: times at which they began to, the same on all nodes. It
-- decides nothing but who makes arrival, so it may be lost. Whoever is silent for too long is passed over.

-- Others are let in when so many at the head do not conflict.
local MOST_LOOKED_AT = 16

local function leave_queue(key, id)
  call('ZREM', tagged(key, 'line'), id)
  call('HDEL', tagged(key, 'waits'), id)
end

-- arrival: how long it takes this one to come when it is called, in ms
local function enter_queue(key, id, mode, ticket, arrival)
  local queue, waits = tagged(key, 'line'), tagged(key, 'waits')
  call('ZADD', queue, whole(ticket), id)
  call('HSET', waits, id, whole(at + WANTS) .. ':' .. mode .. ':' .. arrival)
  call('PEXPIRE', queue, WANTS + SLACK)
  call('PEXPIRE', waits, WANTS + SLACK)
end

-- Who is to be let in before this claim: the first ahead of it that conflicts. Where nobody holds the
-- resource it is called, if it was not yet, and passed over if it has not come.
-- id '' and ticket 0: before anybody
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
        -- All readers that wait may come at once.
        redis.pcall('PUBLISH', CHANGES, theirs == 'x' and whole(rank) .. ' ' .. key or '0 ' .. key)
      end
      return one
    end
  end
end
