-- Waiters show that they are there, and leave.

local function claim_own(keys, id)
  local g = alive(keys, id)
  if not g or g.revoked == '1' then return nil end
  return rearm(keys, g)
end

-- args  1 grant id  2 number of this heartbeat  3 resource
-- Gives granted token tokens ttl | queued position nextMs holders | unknown
function operations.heartbeat(keys, args)
  local id, beat = args[1], tonumber(args[2])
  local claimed = claim_own(keys, id)
  if claimed then return claimed end
  local record = redis.call('HGET', keys[3], id)
  if not record or not redis.call('ZSCORE', keys[2], id) then return { 'unknown' } end
  local w = read_waiter(id, record)
  -- Heartbeats may overtake each other; validity counts from the latest that was carried out.
  w.beat, w.heard = math.max(w.beat, beat), at
  write_waiter(keys, w)
  redis.call('PEXPIRE', keys[2], WAITER_LIFE * 2)
  redis.call('PEXPIRE', keys[3], WAITER_LIFE * 2)
  local present = blockers(keys)
  local own = promote(keys, args[3], present, id)
  if own then return granted(own, own.life) end
  return queued(keys, id, present)
end

-- args  1 grant id  2 resource
-- Gives withdrawn | granted token tokens ttl
function operations.withdraw(keys, args)
  local claimed = claim_own(keys, args[1])
  if claimed then return claimed end
  -- Out of the line only: a withdrawal that is delivered twice must not end a grant in use.
  if leave_line(keys, args[1]) == 1 then promote(keys, args[2], blockers(keys)) end
  return { 'withdrawn' }
end
