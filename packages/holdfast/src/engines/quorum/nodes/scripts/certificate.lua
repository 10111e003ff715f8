-- Whether this node still has every grant that it acknowledged. A restarted node has another run_id, a
-- node that was a replica has another master_replid, and an emptied node has no certificate.

-- Plain search: Lua would try a pattern at every character of the INFO text.
local function field(section, name)
  local text = call('INFO', section)
  local _, last = string.find(text, name, 1, true)
  return string.sub(text, last + 1, last + 40)
end

local life
local function objection_of_this_life()
  local run, repl = field('server', 'run_id:'), field('replication', 'master_replid:')
  life = run .. ' ' .. repl .. ' '
  local held = call('GET', TAG .. ':certificate')
  if held == life .. TERMS then return false end
  if held and string.sub(held, 1, #life) == life then
    return { 'terms', string.sub(held, #life + 1) }
  end
  return { 'uncertified', run, repl, call('GET', TAG .. ':nonce') or '', held and 1 or 0 }
end

-- Gives nil where the certificate is good, else the answer for the operation. Read once for all
-- operations of a call, as long as none of them changes it.
local known
local function objection()
  if TERMS == '' then return nil end
  if known == nil then known = objection_of_this_life() end
  return known or nil
end

-- The first client that sees a quarantine names it. Emptying the node also removes the name.
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

-- Ends a quarantine after its full wait, if the nonce and the life of the node are still the same.
-- args  1 run_id  2 master_replid  3 nonce
-- Gives certified | terms terms | uncertified run_id replid nonce lapsed
function operations.certify(_, a)
  local why = objection()
  if not why then return { 'certified' } end
  if why[1] == 'terms' then return why end
  if why[2] ~= ARGV[a + 1] or why[3] ~= ARGV[a + 2] or why[4] ~= ARGV[a + 3] or why[4] == '' then
    return why
  end
  call('SET', TAG .. ':certificate', life .. TERMS)
  call('DEL', TAG .. ':nonce')
  known = nil
  return { 'certified' }
end
