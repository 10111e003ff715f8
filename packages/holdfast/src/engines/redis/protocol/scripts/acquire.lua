-- One claim: acquire is granted or busy; enqueue is granted, or waits in the queue for its turn.
-- args  1 grant id  2 mode: x; or s and the limit, s0 without a limit  3 ttl  4 lock-delay  5 tokens
--       6 label  7 only enqueue: its number among the heartbeats
-- Gives granted token tokens ttl | busy retryMs holders | queued position nextMs holders
--       | gone why | limit inUse

local FOREIGN_HEARTBEAT = 75

-- When the first waiter must ask again by itself: an expiry pushes nothing, and neither does the
-- release of another program.
local function next_heartbeat(keys, present)
  local g, ms = present.grant, HEARTBEAT
  if g then
    ms = g.foreign and FOREIGN_HEARTBEAT or g.left + g.delay
  elseif present.mode then
    local first = redis.call('ZRANGE', keys[7], '(' .. whole(at), '+inf', 'BYSCORE', 'LIMIT', 0, 1,
      'WITHSCORES')[2]
    if first then ms = first - at end
  end
  return math.min(HEARTBEAT, math.max(ms, 1))
end

-- Whether all waiters before this position are dead. Dead waiters keep their place for up to 10 s
-- and never ask, so the first live waiter behind them must. Past 16 the search stops: otherwise
-- every heartbeat would walk the whole queue.
local function is_first_alive(keys, position)
  if position > MANY then return false end
  for i = 0, position - 1 do
    local id = redis.call('ZRANGE', keys[2], i, i)[1]
    local record = redis.call('HGET', keys[3], id)
    local w = record and read_waiter(id, record)
    if w and not is_late(w) and has_listener(w.channel) then return false end
  end
  return true
end

local function queued(keys, id, present)
  local position = redis.call('ZRANK', keys[2], id)
  local next = is_first_alive(keys, position) and next_heartbeat(keys, present) or HEARTBEAT
  return { 'queued', position, next, holder_views(keys, present) }
end

local function granted(g, life)
  return { 'granted', whole(g.token), g.tokens, life }
end

-- The limit of the first live shared claim that is found; nil where there is none.
local function limit_of_live_claim(keys, present)
  local from, ids = 0, nil
  while present.mode == 's' do
    ids = redis.call('ZREVRANGE', keys[7], from, from + MANY - 1)
    for _, id in ipairs(ids) do
      local g = read_shared(keys, id)
      if g and g.left > 0 then return g.limit end
    end
    if #ids < MANY then break end
    from = from + MANY
  end
  from = 0
  repeat
    ids = redis.call('ZRANGE', keys[2], from, from + MANY - 1)
    for _, id in ipairs(ids) do
      local record = redis.call('HGET', keys[3], id)
      local w = record and read_waiter(id, record)
      if w and w.mode == 's' and not is_silent(w) then return w.limit end
    end
    from = from + MANY
  until #ids < MANY
end

-- The limit of the live shared claims, where it is another than this claim's; nil where the claim
-- may go on. All live shared claims have one limit. The marker stores it; without a marker, the
-- waiters' hash does. Only a claim that differs needs to look for a live claim.
local function other_limit(keys, w, present)
  local noted = present.limit or tonumber(redis.call('HGET', keys[3], 'limit') or nil)
  if noted == w.limit then return nil end
  local limit = limit_of_live_claim(keys, present)
  if limit and limit ~= w.limit then return limit end
  -- The stored limit is that of dead waiters, or of grants in their lock-delay. From now on it is
  -- this claim's.
  if present.limit then
    redis.call('SET', keys[1], MARKER .. w.limit, 'KEEPTTL')
    present.limit = w.limit
  end
  if redis.call('EXISTS', keys[2]) == 1 then redis.call('HSET', keys[3], 'limit', w.limit) end
end

local function claim(keys, args, waits)
  local w = { id = args[1], mode = string.sub(args[2], 1, 1), ttl = tonumber(args[3]),
    limit = tonumber(string.sub(args[2], 2)) or 0, delay = tonumber(args[4]),
    tokens = tonumber(args[5]), label = args[6], beat = tonumber(args[7] or 0), heard = at,
    passed = 0, channel = ARGV[1] }
  if redis.call('ZSCORE', keys[6], w.id) then return { 'gone', 'unknown' } end
  local known = alive(keys, w.id)
  if known then
    if known.absent then return { 'gone', 'unknown' } end
    if known.revoked == '1' then return { 'gone', 'revoked' } end
    return rearm(keys, known)
  end
  local present = blocked[keys[1]] or blockers(keys)
  local busy = function()
    return { 'busy', next_heartbeat(keys, present), holder_views(keys, present) }
  end
  if redis.call('ZSCORE', keys[2], w.id) then
    if not waits then return busy() end
    -- Somebody may have removed its record by hand.
    if not redis.call('HGET', keys[3], w.id) then write_waiter(keys, w) end
    return operations.heartbeat(keys, { w.id, w.beat })
  end
  local limit = w.mode == 's' and other_limit(keys, w, present)
  if limit then return { 'limit', limit } end
  -- If everybody in the queue was passed over, this claim may be granted before them.
  local _, passed
  if not blocked[keys[1]] then _, passed = promote(keys, present) end
  if passed and fits(present, w.mode, w.limit) then
    return granted(make_grant(keys, w, present, w.ttl), w.ttl)
  end
  if not waits then return busy() end
  local last = redis.call('ZREVRANGE', keys[2], 0, 0, 'WITHSCORES')[2]
  note_waiter(keys, w)
  redis.call('ZADD', keys[2], tonumber(last or 0) + 1, w.id)
  prolong(keys)
  local holder = present.grant
  if holder and holder.state == '0' then
    redis.call('SET', keys[1], exclusive_record(holder), 'KEEPTTL')
    holder.state = '2'
  end
  return queued(keys, w.id, present)
end

function operations.acquire(keys, args) return claim(keys, args, false) end
function operations.enqueue(keys, args) return claim(keys, args, true) end

-- The same for exclusive claims without lock-delay.
-- args  1 grant id  2 ttl:beat:tokens:label
local function plain(args)
  local ttl, beat, tokens, label = string.match(args[2], '^(%d+):(%d+):(%d+):(.*)$')
  return { args[1], 'x', ttl, '0', tokens, label, beat }
end

operations['?'] = function(keys, args) return claim(keys, plain(args), false) end
operations['+'] = function(keys, args) return claim(keys, plain(args), true) end
