-- Renewal and release of grants by their holder, and by people.

local function why_gone(key, id)
  for _, r in ipairs(present(key)) do
    if r.id == id then return { 'gone', r.revoked == '1' and r.ends > at and 'revoked' or 'expired' } end
  end
  return { 'gone', call('EXISTS', key) == 1 and 'replaced' or 'expired' }
end

-- Never makes a record: only one that is there gets a new end.
-- args  1 grant id  2 ttl
-- Gives renewed | gone why | what the certificate says
function operations.renew(key, a)
  local why = objection()
  if why then return why end
  local r = alive(key, ARGV[a + 1])
  if not r or r.revoked == '1' then return why_gone(key, ARGV[a + 1]) end
  r.ttl = tonumber(ARGV[a + 2])
  r.ends = ending(r.ttl)
  write(key, r)
  return { 'renewed' }
end

-- Whatever the certificate says: giving back is always right.
-- args  1 grant id  2 the last attempt that is ended  3 tombstone ms, 0 for none
--       4 1 where the claim is over, 0 where only an attempt is: those who wait are not told then
-- Gives released | gone why
function operations.release(key, a)
  local id, upto, grave = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  local r = alive(key, id)
  local ended = r and r.attempt <= upto
  if ended then
    call('HDEL', key, id)
    if ARGV[a + 4] == '1' then redis.pcall('PUBLISH', CHANGES, key) end
  end
  if ARGV[a + 4] == '1' and timed(tagged(key, 'wants')) == id then
    call('DEL', tagged(key, 'wants'))
  end
  -- Last: a server that is out of memory lets a script write only after it has freed something.
  if grave > 0 then
    local before = tonumber(timed(tagged(key, 'gone:' .. id)) or 0)
    set_timed(tagged(key, 'gone:' .. id), whole(math.max(upto, before)), grave)
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

-- args  1 token  2 force 1|0
-- Gives revoked | gone why
function operations.revoke(key, a)
  local r = find_token(key, tonumber(ARGV[a + 1]))
  if not r then return { 'gone', 'unknown' } end
  if ARGV[a + 2] == '1' then
    call('HDEL', key, r.id)
  else
    r.revoked = '1'
    write(key, r)
  end
  redis.pcall('PUBLISH', CHANGES, key)
  return { 'revoked' }
end

-- Gives view holders | what the certificate says
function operations.inspect(key)
  local why = objection()
  if why then return why end
  return { 'view', views(present(key)) }
end
