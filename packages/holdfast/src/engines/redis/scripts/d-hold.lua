-- Renewal and release of grants by their holder, and by people.

local function why_gone(keys, id)
  for _, g in ipairs(blockers(keys)) do
    if g.id == id then return { 'gone', g.revoked == '1' and g.left > 0 and 'revoked' or 'expired' } end
    if g.foreign or g.id then return { 'gone', 'replaced' } end
  end
  return { 'gone', 'expired' }
end

-- args  1 grant id  2 ttl
-- Gives renewed ttl | gone why
function operations.renew(keys, args)
  local g = alive(keys, args[1])
  if not g or g.revoked == '1' then return why_gone(keys, args[1]) end
  local ttl = tonumber(args[2])
  arm(keys, g, ttl)
  return { 'renewed', ttl }
end

-- args  1 grant id  2 tombstone ms, 0 for none  3 resource
-- Gives released | gone why
function operations.release(keys, args)
  local id, tombstone = args[1], tonumber(args[2])
  if tombstone > 0 then redis.call('SET', keys[6], '1', 'PX', tombstone) end
  local g = alive(keys, id)
  if g then
    if g.mode == 'x' then
      redis.call('DEL', keys[1])
      if redis.call('EXISTS', keys[2]) == 0 then return { 'released' } end
      promote(keys, args[3], {})
    else
      redis.call('HDEL', keys[4], id)
      local rest = blockers(keys)
      mark_shared(keys, rest)
      promote(keys, args[3], rest)
    end
    return { 'released' }
  end
  if leave_line(keys, id) == 1 then
    promote(keys, args[3], blockers(keys))
    return { 'released' }
  end
  return why_gone(keys, id)
end

local function find_token(keys, token)
  for _, g in ipairs(blockers(keys)) do
    if not g.foreign and g.left > 0 and token >= g.token and token < g.token + g.tokens then
      return g
    end
  end
end

-- args  1 mode  2 token
-- Gives 1 live and unrevoked, 0 not
function operations.check(keys, args)
  local g = find_token(keys, tonumber(args[2]))
  return g and g.mode == args[1] and g.revoked == '0' and 1 or 0
end

-- args  1 token  2 force 1|0  3 resource  4 channel that hears of changes
-- Gives revoked | gone
function operations.revoke(keys, args)
  local g = find_token(keys, tonumber(args[1]))
  if not g then return { 'gone' } end
  if args[2] == '1' then
    operations.release(keys, { g.id, '0', args[3] })
  else
    g.revoked = '1'
    if g.mode == 'x' then write_exclusive(keys, g, g.left + g.delay) else write_shared(keys, g) end
  end
  redis.call('PUBLISH', args[4], args[3])
  return { 'revoked' }
end

-- Gives holders, waiters as mode label, ms for which a lock-delay keeps it closed
function operations.inspect(keys)
  local present = blockers(keys)
  local closed, waiters = 0, {}
  for _, g in ipairs(present) do
    if not g.foreign and g.left <= 0 then closed = math.max(closed, g.left + g.delay) end
  end
  for _, id in ipairs(redis.call('ZRANGE', keys[2], 0, -1)) do
    local record = redis.call('HGET', keys[3], id)
    if record then
      local w = read_waiter(id, record)
      waiters[#waiters + 1] = { w.mode, w.label }
    end
  end
  return { holder_views(present), waiters, closed }
end
