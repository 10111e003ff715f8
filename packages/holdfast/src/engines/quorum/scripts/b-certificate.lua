-- Whether this node still has what it acknowledged. A node that was restarted has another run_id; one
-- that followed another has another master_replid; one that was emptied has no certificate.

local identity
local function who()
  if not identity then
    identity = { run = string.match(call('INFO', 'server'), 'run_id:(%x+)'),
      repl = string.match(call('INFO', 'replication'), 'master_replid:(%x+)') }
  end
  return identity
end

-- Gives nil where the certificate is good, else the answer to whatever was asked.
local function objection()
  if TERMS == '' then return nil end
  local id = who()
  local life = id.run .. ' ' .. id.repl .. ' '
  local held = call('GET', TAG .. ':certificate')
  if held == life .. TERMS then return nil end
  if held and string.sub(held, 1, #life) == life then
    return { 'terms', string.sub(held, #life + 1) }
  end
  return { 'uncertified', id.run, id.repl, call('GET', TAG .. ':nonce') or '', held and 1 or 0 }
end

-- Whoever sees a quarantine first gives it a name: what empties the node takes the name away too.
-- args  1 nonce
-- Gives certified | terms terms | uncertified run_id replid nonce lapsed
function operations.mark(_, a)
  local why = objection()
  if not why then return { 'certified' } end
  if why[1] == 'terms' then return why end
  call('SET', TAG .. ':nonce', ARGV[a + 1], 'NX')
  why[4] = call('GET', TAG .. ':nonce')
  return why
end

-- Ends a quarantine that was waited out, if it is still the same one of the same life.
-- args  1 run_id  2 master_replid  3 nonce
-- Gives certified | terms terms | uncertified run_id replid nonce lapsed
function operations.certify(_, a)
  local why = objection()
  if not why then return { 'certified' } end
  if why[1] == 'terms' then return why end
  if why[2] ~= ARGV[a + 1] or why[3] ~= ARGV[a + 2] or why[4] ~= ARGV[a + 3] or why[4] == '' then
    return why
  end
  call('SET', TAG .. ':certificate', why[2] .. ' ' .. why[3] .. ' ' .. TERMS)
  call('DEL', TAG .. ':nonce')
  return { 'certified' }
end
