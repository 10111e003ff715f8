-- Heartbeats and withdrawals of waiters.

local function claim_own(keys, id)
  local g = alive(keys, id)
  if not g or g.absent or g.revoked == '1' then return nil end
  return rearm(keys, g)
end

-- Removes the waiter before this one, if it is dead. Promotion stops at a live head, so nothing
-- else would meet the dead waiters behind it.
local function drop_silent_neighbour(keys, id)
  local rank = redis.call('ZRANK', keys[2], id)
  if rank == 0 then return end
  local before = redis.call('ZRANGE', keys[2], rank - 1, rank - 1)[1]
  local record = redis.call('HGET', keys[3], before)
  if not record or is_silent(read_waiter(before, record)) then leave_queue(keys, before) end
end

-- args  1 grant id  2 number of this heartbeat
-- Gives granted token tokens ttl | queued position nextMs holders | unknown
function operations.heartbeat(keys, args)
  local id, beat = args[1], tonumber(args[2])
  local claimed = claim_own(keys, id)
  if claimed then return claimed end
  local record = redis.call('HGET', keys[3], id)
  if not record or not redis.call('ZSCORE', keys[2], id) then return { 'unknown' } end
  local w = read_waiter(id, record)
  local present = blocked[keys[1]] or blockers(keys)
  -- While this waiter counted as dead, claims with another limit may have come.
  if w.mode == 's' and is_silent(w) and other_limit(keys, w, present) then
    leave_queue(keys, id)
    return { 'unknown' }
  end
  -- Heartbeats may overtake each other. A grant's validity counts from the latest one that was run.
  w.beat, w.heard = math.max(w.beat, beat), at
  -- Its process listens again, so its grant is pushed at its turn. It must no longer get one
  -- without a message, which would block the resource if the process dies.
  if w.passed > 0 and has_listener(w.channel) then w.passed = 0 end
  write_waiter(keys, w)
  drop_silent_neighbour(keys, id)
  local own = not blocked[keys[1]] and promote(keys, present, id)
  if own then return granted(own, own.life) end
  return queued(keys, id, present)
end

-- args  1 grant id
-- Gives withdrawn | granted token tokens ttl
function operations.withdraw(keys, args)
  local claimed = claim_own(keys, args[1])
  if claimed then return claimed end
  -- It only leaves the queue: a withdrawal that is delivered twice must not end a grant in use.
  if leave_queue(keys, args[1]) == 1 then promote_next(keys) end
  return { 'withdrawn' }
end

-- Promotes the waiters that an earlier call had to leave.
-- Gives 1
function operations.promote(keys)
  promote(keys, blockers(keys))
  return 1
end
