-- Renewal and release of grants by their holder, and by people.

local function why_gone(key, id)
  for _, r in ipairs(present(key)) do
    if r.id == id then return { 'gone', r.revoked == '1' and r.ends > at and 'revoked' or 'expired' } end
  end
  return { 'gone', call('EXISTS', key) == 1 and 'replaced' or 'expired' }
end

-- Never makes a record: only an existing record gets a new end.
-- args  1 grant id  2 ttl  3 order of the call  4 index of the token in use  5 leave 1|0
-- Gives renewed remaining-ms | gone why | what the certificate says
function operations.renew(key, a)
  local why = objection()
  if why then return why end
  local ttl, order = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  local index, leave = tonumber(ARGV[a + 4]), ARGV[a + 5]
  local r = alive(key, ARGV[a + 1])
  if not r or (r.left == '1' and leave ~= '1') then return why_gone(key, ARGV[a + 1]) end
  if r.revoked == '1' and index <= r.index then return why_gone(key, ARGV[a + 1]) end
  -- A late renewal changes nothing that a later renewal has set.
  if order < r.order then return { 'renewed', remaining(r) } end
  r.ends, r.order, r.left = ending(ttl), order, leave
  -- The revocation was for an earlier holder, which has passed the lease on.
  if index > r.index then r.index, r.revoked = index, '0' end
  write(key, r)
  return { 'renewed', remaining(r) }
end

-- Needs no certificate: a release is always right.
-- args  1 grant id  2 the last attempt to end  3 the order of the last call whose attempts end
--       4 tombstone ms, 0 for none
--       5 1 where the claim is over; 0 for one attempt, of which waiters are not notified
-- Gives released | gone why
function operations.release(key, a)
  local id, upto, order = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  local grave, over = tonumber(ARGV[a + 4]), ARGV[a + 5] == '1'
  local r = alive(key, id)
  -- A grant that was left behind has no holder, so nobody can release it.
  local ended = r and r.left == '0' and r.attempt <= upto and r.order <= order
  if ended then call('HDEL', key, id) end
  if over then
    leave_queue(key, id)
    local free = call('EXISTS', key) == 0 or #present(key) == 0
    if free and not first_in_queue(key, '', 'x', 0, true) and ended then
      redis.pcall('PUBLISH', CHANGES, '0 ' .. key)
    end
  end
  -- Last: a server that is out of memory lets a script write only after it has freed something.
  if grave > 0 then
    local before = timed(tagged(key, 'gone:' .. id)) or '0 0'
    local attempts, orders = string.match(before, '^(%d+) (%d+)$')
    set_timed(tagged(key, 'gone:' .. id), whole(math.max(upto, tonumber(attempts))) .. ' ' ..
      whole(math.max(order, tonumber(orders))), grave)
  end
  return ended and { 'released' } or why_gone(key, id)
end

local function find_token(key, token)
  for _, r in ipairs(present(key)) do
    if r.ends > at and token >= r.fence and token < r.fence + r.tokens then return r end
  end
end

-- args  1 mode  2 token
-- Gives checked 1|0: live and unrevoked, or not | what the certificate says
function operations.check(key, a)
  local why = objection()
  if why then return why end
  local r = find_token(key, tonumber(ARGV[a + 2]))
  return { 'checked', r and r.mode == ARGV[a + 1] and r.revoked == '0' and 1 or 0 }
end

-- Only the token in use can be revoked.
-- args  1 token  2 force 1|0
-- Gives revoked | gone why
function operations.revoke(key, a)
  local token = tonumber(ARGV[a + 1])
  local r = find_token(key, token)
  if not r or r.fence + r.index ~= token then return { 'gone', 'unknown' } end
  if ARGV[a + 2] == '1' then
    call('HDEL', key, r.id)
  else
    r.revoked = '1'
    write(key, r)
  end
  redis.pcall('PUBLISH', CHANGES, '0 ' .. key)
  return { 'revoked' }
end

-- Gives view holders | what the certificate says
function operations.inspect(key)
  local why = objection()
  if why then return why end
  return { 'view', views(present(key)) }
end
