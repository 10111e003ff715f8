-- One claim: takes the resource on this node and raises its fence counter, both or neither.

local function conflicts(key, id, mode)
  local own, others, free = nil, {}, true
  for _, r in ipairs(present(key)) do
    free = free and r.id == id
    if r.id == id and r.ends > at then own = r
    elseif r.id == id or mode == 'x' or r.mode == 'x' then
      others[#others + 1] = r
    end
  end
  return own, others, free
end

-- Whether a tombstone covers this attempt. The tombstone of an older call does not cover a newer call.
local function covers(gone, attempt, order)
  local upto, last = string.match(gone, '^(%d+) (%d+)$')
  return tonumber(upto) >= attempt and tonumber(last) >= order
end

-- args  1 grant id  2 attempt  3 mode  4 ttl  5 lock-delay  6 fence  7 tokens
--       8 0 for a claim; for a grant that joins this node, the counter that it may pass
--       9 ticket of a waiter, or 0  10 its arrival time in ms  11 order of the call  12 label
-- Gives accepted | known attempt fence tokens remaining-ms | busy counter holders | counter counter | skew
--       | gone why | what the certificate says
function operations.acquire(key, a)
  local why = objection()
  if why then return why end
  local id, attempt, mode = ARGV[a + 1], tonumber(ARGV[a + 2]), ARGV[a + 3]
  local ttl, delay = tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])
  local fence, tokens = tonumber(ARGV[a + 6]), tonumber(ARGV[a + 7])
  local ticket, order = tonumber(ARGV[a + 9]), tonumber(ARGV[a + 11])
  local kept = call('MGET', tagged(key, 'gone:' .. id), tagged(key, 'fence'))
  local gone = in_time(kept[1])
  if gone and covers(gone, attempt, order) then return { 'gone', 'unknown' } end
  local own, others, free = conflicts(key, id, mode)
  if own and own.revoked == '1' then return { 'gone', 'revoked' } end
  if own and own.left == '1' then return { 'gone', 'unknown' } end
  if own and (own.attempt >= attempt or own.order > order) then
    -- A repeat renews the ttl. It does not shorten what a longer renewal gave, and does not lengthen
    -- what a later renewal shortened. An older call does not replace the record of a newer call.
    if own.order <= order then
      own.ends, own.order = math.max(own.ends, ending(ttl)), order
      write(key, own)
    end
    return { 'known', own.attempt, whole(own.fence), own.tokens, remaining(own) }
  end
  local counter, past = tonumber(kept[2] or 0), tonumber(ARGV[a + 8])
  -- The clock stands in for a counter that this node may have forgotten: long enough after
  -- the loss, the clock is above every fence that was acknowledged here.
  if past == 0 then counter = math.max(counter, us - SKEW) end
  -- A grant that joins does not wait in the queue.
  if #others > 0 or past == 0 and first_in_queue(key, id, mode, ticket, free) then
    if ticket > 0 then enter_queue(key, id, mode, ticket, ARGV[a + 10]) end
    return { 'busy', whole(counter), views(others) }
  end
  if fence > us + SKEW then return { 'skew' } end
  -- A joining grant is older than the bids that its holder knows of, and those bids were not granted.
  if past == 0 and counter >= fence or past > 0 and counter > past then
    return { 'counter', whole(counter) }
  end
  call('SET', tagged(key, 'fence'), whole(math.max(counter, fence + tokens - 1)), 'PX', IDLE)
  -- The record of an earlier attempt may have been renewed for longer before this request arrived.
  local before = own or { ends = 0, order = 0, index = 0 }
  write(key, { id = id, mode = mode, attempt = attempt, fence = fence, tokens = tokens,
    delay = delay, order = math.max(before.order, order), index = before.index, revoked = '0',
    left = '0', ends = math.max(before.ends, ending(ttl)), born = at, label = ARGV[a + 12] },
    mode == 'x')
  -- A waiter that was called and came too late is called again after this grant.
  call('HDEL', tagged(key, 'waits'), '')
  return { 'accepted' }
end
