-- Renewal and release of grants by their holder; check, revocation and inspection by others.

local function why_gone(keys, id)
  local present = blockers(keys)
  if not present.mode then return { 'gone', 'expired' } end
  local g = present.grant or read_shared(keys, id)
  if not g or g.id ~= id then return { 'gone', 'replaced' } end
  return { 'gone', g.revoked == '1' and g.left > 0 and 'revoked' or 'expired' }
end

-- args  1 grant id  2 ttl  3 index  4 order  5 1 to leave the grant behind, 0 to stay
-- Gives renewed ttl | gone why
function operations.renew(keys, args)
  local g, ttl, index = alive(keys, args[1]), tonumber(args[2]), tonumber(args[3])
  local order, leaves = tonumber(args[4]), args[5] == '1'
  if not g or g.absent and not leaves or g.revoked == '1' and index <= g.index then
    return why_gone(keys, args[1])
  end
  -- It arrives after a later renewal, or is a copy of the one that left the grant behind: it
  -- changes nothing.
  if order < g.order or order == g.order and g.absent then return { 'renewed', left_of(keys, g) } end
  -- The revocation was for an earlier holder, which has passed its lease on.
  if index > g.index then g.index, g.revoked = index, '0' end
  g.order, g.absent = order, leaves
  arm(keys, g, ttl)
  return { 'renewed', ttl }
end

-- The same for a renewal whose holder stays.
-- args  1 grant id  2 ttl:index:order
operations['='] = function(keys, args)
  local ttl, index, order = string.match(args[2], '^(%d+):(%d+):(%d+)$')
  return operations.renew(keys, { args[1], ttl, index, order, '0' })
end

-- Ends a grant, or removes the waiter where there is no grant, and promotes the next waiters. Gives
-- whether there was anything to end.
local function end_claim(keys, id, g, reply)
  local present = nil
  if g and g.mode == 'x' then
    redis.call('DEL', keys[1])
    present = { count = 0 }
  elseif g then
    forget_shared(keys, id)
    mark_shared(keys)
  elseif leave_queue(keys, id) == 0 then
    return false
  end
  promote_next(keys, present, reply)
  return true
end

-- Adds a tombstone, and removes some that are over, so that there are never many more than needed.
local function add_tombstone(gone, id, ms)
  redis.call('ZADD', gone, whole(at + ms), id)
  for _, old in ipairs(redis.call('ZRANGE', gone, 0, whole(at), 'BYSCORE', 'LIMIT', 0, MANY)) do
    redis.call('ZREM', gone, old)
  end
  redis.call('PEXPIRE', gone, math.max(ms, redis.call('PTTL', gone)))
end

-- args  1 grant id  2 tombstone ms, 0 for none
-- Gives released | gone why | the message that would be pushed to the caller, where the next holder is its
--       own waiter: the answer to one claim's release may carry another claim's grant
function operations.release(keys, args)
  local g, leaves_tombstone, reply = alive(keys, args[1]), args[2] ~= '0', {}
  -- A key of another type in place of the tombstones fails here, before anything is ended.
  if leaves_tombstone then redis.call('ZSCORE', keys[6], args[1]) end
  -- Nobody may release a grant that was left behind: only its expiry or a forced revocation ends
  -- it.
  local finished = not (g and g.absent) and end_claim(keys, args[1], g, reply)
  local answer = finished and (reply.grant or { 'released' }) or why_gone(keys, args[1])
  -- The tombstone is written last: a server that is out of memory lets a script write only after it
  -- has freed something.
  if leaves_tombstone then add_tombstone(keys[6], args[1], tonumber(args[2])) end
  return answer
end

-- The same without a tombstone.
-- args  1 grant id
operations['-'] = function(keys, args) return operations.release(keys, { args[1], '0' }) end

-- The live grant that has this token. The token ranges of grants do not overlap, so only one shared
-- grant can have it: the last one whose first token is not larger.
local function find_token(keys, token)
  local present = blockers(keys)
  local g = present.grant
  if present.mode == 's' then
    local id = redis.call('ZRANGE', keys[8], whole(token), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
    g = id and read_shared(keys, id)
  end
  if not g or g.foreign or g.left <= 0 then return nil end
  return token >= g.token and token < g.token + g.tokens and g or nil
end

-- args  1 mode  2 token
-- Gives 1 if the grant is live and not revoked, else 0
function operations.check(keys, args)
  local g = find_token(keys, tonumber(args[2]))
  return g and g.mode == args[1] and g.revoked == '0' and 1 or 0
end

-- args  1 token  2 force 1|0  3 the channel of changes
-- Gives revoked | gone. Of a grant's tokens only the one in use counts
function operations.revoke(keys, args)
  local token = tonumber(args[1])
  local g = find_token(keys, token)
  if not g or token ~= g.token + g.index then return { 'gone' } end
  if args[2] == '1' then
    end_claim(keys, g.id, g)
  else
    g.revoked = '1'
    if g.mode == 'x' then write_exclusive(keys, g, g.left + g.delay) else write_shared(keys, g) end
  end
  redis.pcall('PUBLISH', args[3], keys[1])
  return { 'revoked' }
end

-- Gives the holders, the waiters as mode label, and for how many ms a lock-delay keeps the resource closed
function operations.inspect(keys)
  local present = blockers(keys)
  local grants, closed, views, waiters = { present.grant }, 0, {}, {}
  if present.mode == 's' then
    for _, id in ipairs(redis.call('ZRANGE', keys[8], 0, -1)) do
      grants[#grants + 1] = read_shared(keys, id)
    end
  end
  for _, g in ipairs(grants) do
    if g.foreign or g.left > 0 then views[#views + 1] = view_of(g)
    else closed = math.max(closed, g.left + g.delay) end
  end
  for _, id in ipairs(redis.call('ZRANGE', keys[2], 0, -1)) do
    local record = redis.call('HGET', keys[3], id)
    local w = record and read_waiter(id, record)
    if w and not is_silent(w) then waiters[#waiters + 1] = { w.mode, w.label } end
  end
  return { views, waiters, closed }
end
