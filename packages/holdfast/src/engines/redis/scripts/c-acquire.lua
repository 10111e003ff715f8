-- One claim: granted, or busy, or with a channel in line until it is its turn.
-- args  1 grant id  2 mode x|s  3 limit, 0 without  4 ttl  5 lock-delay  6 tokens  7 label
--       8 ms after which an idle fence is forgotten  9 channel, '' to not stand in line  10 resource
-- Gives granted token tokens ttl | busy retryMs holders | queued position nextMs holders
--       | gone why | limit inUse

local HEARTBEAT, FOREIGN_HEARTBEAT = 1000, 75

-- When the head must look by itself: expiry pushes nothing, and foreigners never do.
local function next_heartbeat(present)
  local next = HEARTBEAT
  for _, g in ipairs(present) do
    local ms = g.foreign and FOREIGN_HEARTBEAT or g.left + g.delay
    next = math.min(next, math.max(ms, 1))
  end
  return next
end

local function queued(keys, id, present)
  local position = redis.call('ZRANK', keys[2], id)
  local next = position == 0 and next_heartbeat(present) or HEARTBEAT
  return { 'queued', position, next, holder_views(present) }
end

local function granted(g, life)
  return { 'granted', whole(g.token), g.tokens, life }
end

function operations.acquire(keys, args)
  local w = { id = args[1], mode = args[2], limit = tonumber(args[3]), ttl = tonumber(args[4]),
    delay = tonumber(args[5]), tokens = tonumber(args[6]), label = args[7],
    idle = tonumber(args[8]), beat = 0, heard = at, channel = args[9] }
  if redis.call('EXISTS', keys[6]) == 1 then return { 'gone', 'unknown' } end
  local known = alive(keys, w.id)
  if known then
    if known.revoked == '1' then return { 'gone', 'revoked' } end
    return rearm(keys, known)
  end
  local present = blockers(keys)
  if redis.call('ZSCORE', keys[2], w.id) then
    if w.channel ~= '' then return queued(keys, w.id, present) end
    return { 'busy', next_heartbeat(present), holder_views(present) }
  end
  if w.mode == 's' then
    for _, g in ipairs(present) do
      if g.mode == 's' and g.limit ~= w.limit then return { 'limit', g.limit } end
    end
    for _, record in ipairs(redis.call('HVALS', keys[3])) do
      local other = read_waiter('', record)
      if other.mode == 's' and other.limit ~= w.limit then return { 'limit', other.limit } end
    end
  end
  promote(keys, args[10], present)
  if redis.call('EXISTS', keys[2]) == 0 and fits(present, w.mode, w.limit) then
    return granted(make_grant(keys, w, present, w.ttl), w.ttl)
  end
  if w.channel == '' then
    return { 'busy', next_heartbeat(present), holder_views(present) }
  end
  local last = redis.call('ZREVRANGE', keys[2], 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', keys[2], tonumber(last or 0) + 1, w.id)
  write_waiter(keys, w)
  -- Those before may be out of reach for now, and this one fit beside the holders.
  local own = promote(keys, args[10], present, w.id)
  if own then return granted(own, own.life) end
  redis.call('PEXPIRE', keys[2], WAITER_LIFE * 2)
  redis.call('PEXPIRE', keys[3], WAITER_LIFE * 2)
  return queued(keys, w.id, present)
end
