-- One claim: granted, or busy; with enqueue in line until it is its turn.
-- args  1 grant id  2 mode: x, or s with its limit, s0 without  3 ttl  4 lock-delay  5 tokens  6 label
--       7 of enqueue: its number among the heartbeats
-- Gives granted token tokens ttl | busy retryMs holders | queued position nextMs holders
--       | gone why | limit inUse

local FOREIGN_HEARTBEAT = 75

-- When the head must look by itself: expiry pushes nothing, and foreigners never do.
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

-- The dead before it keep their places for a while, and do not look. Behind very many of them nobody
-- does: it would be counted again at every heartbeat of everybody.
local function comes_first(keys, position)
  if position > MANY then return false end
  for i = 0, position - 1 do
    local id = redis.call('ZRANGE', keys[2], i, i)[1]
    local record = redis.call('HGET', keys[3], id)
    local w = record and read_waiter(id, record)
    if w and not is_late(w) and is_heard(w.channel) then return false end
  end
  return true
end

local function queued(keys, id, present)
  local position = redis.call('ZRANK', keys[2], id)
  local next = comes_first(keys, position) and next_heartbeat(keys, present) or HEARTBEAT
  return { 'queued', position, next, holder_views(keys, present) }
end

local function granted(g, life)
  return { 'granted', whole(g.token), g.tokens, life }
end

-- The limit of a shared claim that is alive, whichever is met first; nil where there is none.
local function limit_of_the_living(keys, present)
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

-- All shared claims that are alive carry one limit. While there is a marker it says which, and else
-- those in line have noted it: only a claim that differs needs to look for somebody alive.
local function other_limit(keys, w, present)
  local noted = present.limit or tonumber(redis.call('HGET', keys[3], 'limit') or nil)
  if noted == w.limit then return nil end
  local limit = limit_of_the_living(keys, present)
  if limit and limit ~= w.limit then return limit end
  -- What is noted was of the dead, or of lock-delays. From here on it is this one's.
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
    -- Somebody may have taken its record away by hand.
    if not redis.call('HGET', keys[3], w.id) then write_waiter(keys, w) end
    return operations.heartbeat(keys, { w.id, w.beat })
  end
  local limit = w.mode == 's' and other_limit(keys, w, present)
  if limit then return { 'limit', limit } end
  -- Those still in line may be out of reach for now, and this one fit beside the holders.
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

-- The same of exclusive claims without lock-delay.
-- args  1 grant id  2 ttl:beat:tokens:label
local function plain(args)
  local ttl, beat, tokens, label = string.match(args[2], '^(%d+):(%d+):(%d+):(.*)$')
  return { args[1], 'x', ttl, '0', tokens, label, beat }
end

operations['?'] = function(keys, args) return claim(keys, plain(args), false) end
operations['+'] = function(keys, args) return claim(keys, plain(args), true) end
