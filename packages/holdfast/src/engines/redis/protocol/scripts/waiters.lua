-- Waiters show that they are there, and leave.

local function claim_own(keys, id)
  local g = alive(keys, id)
  if not g or g.absent or g.revoked == '1' then return nil end
  return rearm(keys, g)
end

-- The dead behind a head that lives are met by nobody else: each waiter looks at the one before it.
local function drop_silent_neighbour(keys, id)
  local rank = redis.call('ZRANK', keys[2], id)
  if rank == 0 then return end
  local before = redis.call('ZRANGE', keys[2], rank - 1, rank - 1)[1]
  local record = redis.call('HGET', keys[3], before)
  if not record or is_silent(read_waiter(before, record)) then leave_line(keys, before) end
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
  -- While it was taken for dead, others may have come with another limit.
  if w.mode == 's' and is_silent(w) and other_limit(keys, w, present) then
    leave_line(keys, id)
    return { 'unknown' }
  end
  -- Heartbeats may overtake each other; validity counts from the latest that was carried out.
  w.beat, w.heard = math.max(w.beat, beat), at
  -- Listened for again, it is told at its turn. Nothing must be kept for it then, should it die.
  if w.passed > 0 and is_heard(w.channel) then w.passed = 0 end
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
  -- Out of the line only: a withdrawal that is delivered twice must not end a grant in use.
  if leave_line(keys, args[1]) == 1 then make_room(keys) end
  return { 'withdrawn' }
end

-- Goes on where a call had to leave the rest.
function operations.promote(keys)
  promote(keys, blockers(keys))
  return 1
end
